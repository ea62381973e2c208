package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// SCIMScopes are what a SCIM connection may do (Decision 48), and what an operation
// of a SCIM base asks for: one of them.
type SCIMScopes uint8

// The scopes.
const (
	SCIMUsersRead SCIMScopes = 1 << iota
	SCIMUsersWrite
	SCIMGroupsRead
	SCIMGroupsWrite
	// SCIMAny is what the operations that describe the base ask for.
	SCIMAny = SCIMUsersRead | SCIMUsersWrite | SCIMGroupsRead | SCIMGroupsWrite
)

// scimScopeWords are the scopes by their names. One that writes does not let look
// around: it shows what was written and no more.
var scimScopeWords = map[string]SCIMScopes{
	"scim.users.read":   SCIMUsersRead,
	"scim.users.write":  SCIMUsersWrite,
	"scim.groups.read":  SCIMGroupsRead,
	"scim.groups.write": SCIMGroupsWrite,
}

func scimScopesOf(words []string) (scopes SCIMScopes) {
	for _, word := range words {
		scopes |= scimScopeWords[word]
	}
	return scopes
}

// AdmitSCIM tells whether a caller may ask for an operation when one of the two is
// SCIM's. A SCIM token is nothing anywhere else, and nothing else is good for a
// SCIM base; the operator is let in everywhere.
func (c *Caller) AdmitSCIM(op *Op) error {
	switch {
	case c.Root:
		return nil
	case op.SCIM == 0 || c.SCIM == 0:
		return Unauthorized()
	case c.SCIM&op.SCIM == 0:
		return Forbidden("The connection does not have the scope for this.", "Make a connection with "+op.SCIM.String()+" among its scopes.")
	}
	return nil
}

// String gives the scopes' names.
func (s SCIMScopes) String() string {
	var words []string
	for _, word := range [...]string{"scim.users.read", "scim.users.write", "scim.groups.read", "scim.groups.write"} {
		if scimScopeWords[word]&s != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// SCIMConnectionID names a SCIM connection.
type SCIMConnectionID string

// scimConnection is an identity provider's access to the members and teams. Of its
// token only the hash is kept.
type scimConnection struct {
	ID        SCIMConnectionID `json:"connectionId"`
	Scopes    []string         `json:"scopes"`
	Hash      []byte           `json:"hash"`
	CreatedAt Timestamp        `json:"createdAt"`
	ExpiresAt Timestamp        `json:"expiresAt"`
}

var scimConnections = storage.Table[scimConnection]{
	ID:      scimConnectionTable,
	Name:    "scimConnection",
	Key:     func(k storage.Key, c *scimConnection) storage.Key { return newestKey(k, c.ID) },
	Touches: TouchesAccess,
}

// authenticateSCIM tells which connection a SCIM token stands for.
func authenticateSCIM(v *storage.View, c Credential) (Principal, error) {
	row, err := scimConnections.Get(v, storage.Key(nil).Newest(c.ID))
	if err != nil {
		return Principal{}, fmt.Errorf("read a SCIM connection: %w", err)
	}
	if row == nil || !c.matches(row.Value.Hash) {
		return Principal{}, Unauthorized()
	}
	id := c.ID.String()
	return Principal{
		Type: ActorSystem, ID: id, Kind: SCIMToken, Token: id, Home: c.Home, Confined: true,
		Expires: row.Value.ExpiresAt.Time(), SCIM: scimScopesOf(row.Value.Scopes),
	}, nil
}
