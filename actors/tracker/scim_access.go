package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// SCIMScopes are the scopes of a SCIM connection (Decision 48), or those of which an
// operation of a SCIM base requires one.
type SCIMScopes uint8

// The scopes.
const (
	SCIMUsersRead SCIMScopes = 1 << iota
	SCIMUsersWrite
	SCIMGroupsRead
	SCIMGroupsWrite
	// SCIMAny is required by the operations that describe the base.
	SCIMAny = SCIMUsersRead | SCIMUsersWrite | SCIMGroupsRead | SCIMGroupsWrite
)

// scimScopeWords maps names to scopes. A write scope does not include reading: it shows
// no more than the result of the write.
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

// AdmitSCIM checks that a caller may call an operation if either the operation or the
// caller belongs to SCIM. A SCIM token is valid for SCIM operations only, and other
// tokens are not valid for these, except for the operator's.
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

// String returns the scopes' names.
func (s SCIMScopes) String() string {
	var words []string
	for _, word := range [...]string{"scim.users.read", "scim.users.write", "scim.groups.read", "scim.groups.write"} {
		if scimScopeWords[word]&s != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// SCIMConnectionID is the id of a SCIM connection.
type SCIMConnectionID string

// scimConnection is an identity provider's access to the members and teams. Only the
// hash of its token is stored.
type scimConnection struct {
	ID        SCIMConnectionID `json:"connectionId"`
	Scopes    []string         `json:"scopes"`
	Hash      []byte           `json:"hash"`
	CreatedAt Timestamp        `json:"createdAt"`
	ExpiresAt Timestamp        `json:"expiresAt"`
}

var scimConnections = storage.Table[scimConnection]{
	Changed: audited(auditSCIMConnection, func(c *scimConnection) string { return string(c.ID) }),
	ID:      scimConnectionTable,
	Name:    "scimConnection",
	Key:     func(k storage.Key, c *scimConnection) storage.Key { return newestKey(k, c.ID) },
	Dirty:   DirtyAccess,
}

var _ = declareTable(&scimConnections, newestFirst, atMost(100, "SCIM connections"))

// authenticateSCIM returns the principal of a SCIM token.
func authenticateSCIM(v *storage.View, c Credential) (Principal, error) {
	row, err := scimConnections.Get(v, storage.Key(nil).DescID(c.ID))
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
