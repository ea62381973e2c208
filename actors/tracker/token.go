package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Token is a workspace token as lists show it; its secret is shown once, in the
// answer to its creation.
type Token struct {
	ID             TokenID     `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	Permissions    string      `json:"permissions"`
	ActorID        string      `json:"actorId"`
	ActorType      ActorType   `json:"actorType" enum:"user,agent"`
	// CreatedByID is the user or agent who made the token; null for tokens made before
	// it was kept.
	CreatedByID *string    `json:"createdById"`
	CreatedAt   Timestamp  `json:"createdAt"`
	ExpiresAt   *Timestamp `json:"expiresAt"`
	// LastUsedAt is up to an hour behind.
	LastUsedAt *Timestamp `json:"lastUsedAt"`
}

// CreatedToken is a token with its secret, the text to send as a credential.
type CreatedToken struct {
	Token
	Secret string `json:"token"`
}

// storedToken is what is kept of a token beside its grant.
type storedToken struct {
	ID             TokenID     `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	Permissions    string      `json:"permissions"`
	CreatedAt      Timestamp   `json:"createdAt"`
}

// tokenGrant is what a token is good for, and the hash of its secret. It lies
// beside the token and never leaves the service.
type tokenGrant struct {
	ID          TokenID     `json:"id"`
	Hash        []byte      `json:"hash"`
	ActorType   ActorType   `json:"actorType"`
	ActorID     string      `json:"actorId"`
	Provider    string      `json:"provider,omitempty"`
	Permissions Permissions `json:"permissions"`
	Confined    bool        `json:"confined"`
	CreatedByID string      `json:"createdById,omitempty"`
	ExpiresAt   *Timestamp  `json:"expiresAt,omitempty"`
	// Sponsor is the member whose leaving ends the token; see Principal.Sponsor.
	Sponsor UserID `json:"sponsor,omitempty"`
}

var tokens = storage.Table[storedToken]{
	ID:      tokenTable,
	Name:    "token",
	Key:     func(k storage.Key, t *storedToken) storage.Key { return tokenKey(k, t.ID) },
	Touches: TouchesAccess,
}

// sponsored stands for an actor's type in the entries of tokens by their sponsor.
const sponsored ActorType = "sponsored"

var tokenGrants = storage.Table[tokenGrant]{
	ID:   grantTable,
	Name: "grant",
	Key:  func(k storage.Key, g *tokenGrant) storage.Key { return tokenKey(k, g.ID) },
	Indexes: []storage.Index[tokenGrant]{{
		ID:   grantByActor,
		Name: "actor",
		Entries: func(e *storage.Entries, g *tokenGrant) {
			e.Add(actorKey(e.Key(), g.ActorType, g.ActorID))
			if g.Sponsor != "" {
				e.Add(actorKey(e.Key(), sponsored, string(g.Sponsor)))
			}
		},
	}},
	Touches: TouchesAccess,
}

func tokenKey(k storage.Key, id TokenID) storage.Key {
	raw, _ := storage.ParseID(id)
	return k.Newest(raw)
}

func actorKey(k storage.Key, kind ActorType, id string) storage.Key {
	return k.Str(string(kind)).Str(id)
}

// mint makes a token in this workspace. grant says what it is good for; its id and
// hash are filled in, and an agent's without an id gets the token's.
func (tx *Tx) mint(name, permissions string, grant tokenGrant) (*CreatedToken, error) {
	if err := tx.tally(tokenTable, 1); err != nil {
		return nil, err
	}
	id, err := tx.NewID()
	if err != nil {
		return nil, err
	}
	var secret [secretLen]byte
	if err := tx.Secret(secret[:]); err != nil {
		return nil, fmt.Errorf("make a token's secret: %w", err)
	}
	text, credential := newCredential(WorkspaceToken, tx.Workspace(), id, secret)
	t := storedToken{
		ID: TokenID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()),
		Name: name, Permissions: permissions, CreatedAt: At(tx.now),
	}
	grant.ID, grant.Hash = t.ID, credential.Hash[:]
	if grant.ActorID == "" {
		grant.ActorID = string(t.ID)
	}
	if _, err := tokens.Insert(tx, &t); err != nil {
		return nil, fmt.Errorf("add a token: %w", err)
	}
	if _, err := tokenGrants.Insert(tx, &grant); err != nil {
		return nil, fmt.Errorf("add a token's grant: %w", err)
	}
	return &CreatedToken{Token: t.shown(&grant), Secret: text}, nil
}

// shown gives a token as clients see it, but for its last use.
func (t *storedToken) shown(g *tokenGrant) Token {
	return Token{
		ID: t.ID, OrganizationID: t.OrganizationID, Name: t.Name, Permissions: t.Permissions,
		ActorID: g.ActorID, ActorType: g.ActorType, CreatedByID: textOrNil(g.CreatedByID),
		CreatedAt: t.CreatedAt, ExpiresAt: g.ExpiresAt,
	}
}

// permissionsText reads a permissions field: a string, or an array of strings that
// are joined by commas; "" when it is absent.
func permissionsText(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 {
		return "", true
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return text, true
	}
	var words []string
	if raw[0] != '[' || json.Unmarshal(raw, &words) != nil {
		return "", false
	}
	for i, w := range words {
		if i > 0 {
			text += ","
		}
		text += w
	}
	return text, true
}
