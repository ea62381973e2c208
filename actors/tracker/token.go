package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Token is a workspace token in the form that clients see. Its secret is shown once, in
// the answer to its creation.
type Token struct {
	ID             TokenID     `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	Permissions    string      `json:"permissions"`
	ActorID        string      `json:"actorId"`
	ActorType      ActorType   `json:"actorType" enum:"user,agent"`
	// CreatedByID is the user or agent who made the token; null for tokens older than
	// this field.
	CreatedByID *string    `json:"createdById"`
	CreatedAt   Timestamp  `json:"createdAt"`
	ExpiresAt   *Timestamp `json:"expiresAt"`
	// LastUsedAt may be up to an hour old.
	LastUsedAt *Timestamp `json:"lastUsedAt"`
}

// CreatedToken is a token with its secret, the text to send as a credential.
type CreatedToken struct {
	Token
	Secret string `json:"token"`
}

// storedToken is the stored form of a token, without its grant.
type storedToken struct {
	ID             TokenID     `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	Permissions    string      `json:"permissions"`
	CreatedAt      Timestamp   `json:"createdAt"`
}

// tokenGrant holds the rights of a token and the hash of its secret. It is stored
// beside the token, and clients never see it.
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
	// Sponsor is the member with whose membership the token ends; see
	// Principal.Sponsor.
	Sponsor UserID `json:"sponsor,omitempty"`
	// Via are the other members on whom the token depends; see Principal.Via.
	Via []UserID `json:"via,omitempty"`
	// Console marks a console session, and OpenedWith is the token that opened it; empty
	// if an identity provider did.
	Console    bool    `json:"console,omitempty"`
	OpenedWith TokenID `json:"openedWith,omitempty"`
}

var tokens = storage.Table[storedToken]{
	Changed: audited(auditToken, func(t *storedToken) string { return string(t.ID) }),
	ID:      tokenTable,
	Name:    "token",
	Key:     func(k storage.Key, t *storedToken) storage.Key { return tokenKey(k, t.ID) },
	Dirty:   DirtyAccess,
}

var _ = declareTable(&tokens, newestFirst, atMost(10_000, "tokens"))

// sponsored is used as the actor type in index entries of tokens by their sponsor.
const sponsored ActorType = "sponsored"

// auditedGrant is the part of a grant that clients see of the token, for the audit.
type auditedGrant struct {
	ID          TokenID    `json:"id"`
	ActorID     string     `json:"actorId"`
	ActorType   ActorType  `json:"actorType"`
	CreatedByID *string    `json:"createdById"`
	ExpiresAt   *Timestamp `json:"expiresAt"`
}

func (g *tokenGrant) audited() *auditedGrant {
	if g == nil {
		return nil
	}
	return &auditedGrant{g.ID, g.ActorID, g.ActorType, textOrNil(g.CreatedByID), g.ExpiresAt}
}

var tokenGrants = storage.Table[tokenGrant]{
	Changed: func(w storage.Writer, old, new *tokenGrant) error {
		return audited(auditToken, func(g *auditedGrant) string { return string(g.ID) })(w, old.audited(), new.audited())
	},
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
			if g.Console {
				e.Add(actorKey(e.Key(), consoleOf(g.ActorType), g.ActorID))
			}
			if g.OpenedWith != "" {
				e.Add(actorKey(e.Key(), openedWith, string(g.OpenedWith)))
			}
		},
	}},
	Dirty: DirtyAccess,
}

var _ = declareTable(&tokenGrants)

func tokenKey(k storage.Key, id TokenID) storage.Key {
	raw, _ := storage.ParseID(id)
	return k.DescID(raw)
}

func actorKey(k storage.Key, kind ActorType, id string) storage.Key {
	return k.Str(string(kind)).Str(id)
}

// addToken makes a token in this workspace. grant has its rights; addToken sets the id and
// hash, and an empty actor id to the token's id.
func (tx *Tx) addToken(name, permissions string, grant tokenGrant) (*CreatedToken, error) {
	if err := tx.countRecord(tokenTable, 1); err != nil {
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

// shown returns a token in the form that clients see, without its last use.
func (t *storedToken) shown(g *tokenGrant) Token {
	return Token{
		ID: t.ID, OrganizationID: t.OrganizationID, Name: t.Name, Permissions: t.Permissions,
		ActorID: g.ActorID, ActorType: g.ActorType, CreatedByID: textOrNil(g.CreatedByID),
		CreatedAt: t.CreatedAt, ExpiresAt: g.ExpiresAt,
	}
}

// permissionsText returns the text of a permissions field: a string, or an array of
// strings that are joined by commas; "" if the field is absent.
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
