package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"
)

// defaultClientPermissions are a client's permissions if its creation names none
// (Decision 10).
const defaultClientPermissions = "read"

// CreateOAuthClientIn is a new OAuth client.
type CreateOAuthClientIn struct {
	Name         string   `json:"name" rules:"required,min=1,max=200"`
	RedirectURIs []string `json:"redirectUris" rules:"max=20" items:"uri,max=2048" absent:"[]"`
	Scopes       []string `json:"scopes" rules:"max=50" items:"min=1,max=200" absent:"[]"`
	// Permissions is a comma-separated string of words, or an array of words.
	Permissions json.RawMessage `json:"permissions" rules:"strings" form:"permissions" absent:"\"read\""`
}

// Validate checks what the tags can't express.
func (in *CreateOAuthClientIn) Validate(faults *Faults) {
	if !faults.Has("permissions") {
		permissionFaults(in.Permissions, faults)
	}
	scopeFaults(in.Scopes, faults)
}

// CreateOAuthClient adds an OAuth client. Its secret is in the answer, and stored as a
// hash.
var CreateOAuthClient = NewCommand[CreateOAuthClientIn, CreatedOAuthClient]("CreateOAuthClient", "Create an OAuth client", Needs{Level: Admin}, createOAuthClient, WithSecret, Answers(Created), Audits(auditOAuthClient))

func createOAuthClient(tx *Tx, in *CreateOAuthClientIn) (Reply, error) {
	p, stored, err := tx.clientPermissions(in.Permissions)
	if err != nil {
		return Reply{}, err
	}
	sponsor, via, err := tx.responsible()
	if err != nil {
		return Reply{}, err
	}
	if err := tx.countRecord(oauthClientTable, 1); err != nil {
		return Reply{}, err
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, fmt.Errorf("make a client's id: %w", err)
	}
	var secret [secretLen]byte
	if err := tx.Secret(secret[:]); err != nil {
		return Reply{}, fmt.Errorf("make a client's secret: %w", err)
	}
	text, credential := newCredential(OAuthSecret, tx.Workspace(), id, secret)
	c := OAuthClient{
		ID: OAuthClientID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()), Name: in.Name,
		RedirectURIs: orNone(in.RedirectURIs), Scopes: orNone(in.Scopes), Permissions: stored, CreatedAt: At(tx.now),
	}
	if _, err := oauthClients.Insert(tx, &c); err != nil {
		return Reply{}, fmt.Errorf("add an OAuth client: %w", err)
	}
	secretRow := oauthSecret{ID: c.ID, Hash: credential.Hash[:], Permissions: p, Scopes: c.Scopes, Sponsor: sponsor, Via: via}
	if _, err := oauthSecrets.Insert(tx, &secretRow); err != nil {
		return Reply{}, fmt.Errorf("add an OAuth client's secret: %w", err)
	}
	return jsonReply(Created, CreatedOAuthClient{OAuthClient: c, ClientID: clientIdentifier(tx.Workspace(), id), ClientSecret: text})
}
