package tracker

import (
	"fmt"
	"reflect"

	json "github.com/goccy/go-json"
)

// PatchOAuthClientIn changes an OAuth client. Absent fields stay as they are.
type PatchOAuthClientIn struct {
	ID           string          `path:"id"`
	Name         Opt[string]     `json:"name" rules:"min=1,max=200"`
	RedirectURIs Opt[[]string]   `json:"redirectUris" rules:"max=20" items:"uri,max=2048"`
	Scopes       Opt[[]string]   `json:"scopes" rules:"max=50" items:"min=1,max=200"`
	Permissions  json.RawMessage `json:"permissions" rules:"strings" form:"permissions"`
}

// Validate checks what the tags can't express.
func (in *PatchOAuthClientIn) Validate(faults *Faults) {
	if !faults.Has("permissions") {
		permissionFaults(in.Permissions, faults)
	}
	scopeFaults(in.Scopes.Value, faults)
}

// PatchOAuthClient changes an OAuth client. Its existing access tokens lose a removed
// permission, too; they don't get an added one.
var PatchOAuthClient = NewCommand[PatchOAuthClientIn, OAuthClient]("PatchOAuthClient", "Change an OAuth client", Needs{Level: Admin}, patchOAuthClient, Audits(auditOAuthClient))

func patchOAuthClient(tx *Tx, in *PatchOAuthClientIn) (Reply, error) {
	row, err := recordIn(&tx.View, &oauthClients, in.ID, "OAuth client")
	if err != nil {
		return Reply{}, err
	}
	secret, err := recordIn(&tx.View, &oauthSecrets, in.ID, "OAuth client")
	if err != nil {
		return Reply{}, err
	}
	c, s := row.Value, secret.Value
	c.Name = in.Name.Or(c.Name)
	if in.RedirectURIs.Set {
		c.RedirectURIs = orNone(in.RedirectURIs.Value)
	}
	if in.Scopes.Set {
		c.Scopes = orNone(in.Scopes.Value)
		s.Scopes = c.Scopes
	}
	if len(in.Permissions) > 0 {
		if s.Permissions, c.Permissions, err = tx.clientPermissions(in.Permissions); err != nil {
			return Reply{}, err
		}
	}
	if !reflect.DeepEqual(s, secret.Value) {
		if _, err := oauthSecrets.Update(tx, secret, &s); err != nil {
			return Reply{}, fmt.Errorf("change an OAuth client's permissions: %w", err)
		}
	}
	if reflect.DeepEqual(c, row.Value) {
		return jsonReply(Done, &c)
	}
	body, err := oauthClients.Update(tx, row, &c)
	if err != nil {
		return Reply{}, fmt.Errorf("change an OAuth client: %w", err)
	}
	return Reply{Body: body}, nil
}
