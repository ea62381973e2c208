package tracker

import (
	"fmt"
	"slices"
	"time"
)

// CreateSCIMConnectionIn is a new SCIM connection.
type CreateSCIMConnectionIn struct {
	SCIMBase
	Scopes []string `json:"scopes" rules:"required,min=1,max=16" enum:"scim.users.read,scim.users.write,scim.groups.read,scim.groups.write"`
	// ExpiresInDays defaults to 365.
	ExpiresInDays int `json:"expiresInDays" rules:"min=1,max=365" default:"365"`
}

// CreatedSCIMConnection is a connection with its token, which only this answer shows.
type CreatedSCIMConnection struct {
	ConnectionID SCIMConnectionID `json:"connectionId"`
	// ProvisioningDomainID is the workspace's id: all its connections provision the
	// same users and groups, so that one can replace another.
	ProvisioningDomainID string `json:"provisioningDomainId"`
	Token                string `json:"token"`
	BaseURL              string `json:"baseUrl"`
}

// CreateSCIMConnection gives an identity provider access.
var CreateSCIMConnection = NewCommand[CreateSCIMConnectionIn, CreatedSCIMConnection]("CreateScimConnection", "Create a SCIM connection", Needs{Level: Admin}, createSCIMConnection, WithSecret, Answers(Created), Audits(auditSCIMConnection))

func createSCIMConnection(tx *Tx, in *CreateSCIMConnectionIn) (Reply, error) {
	if err := tx.countRecord(scimConnectionTable, 1); err != nil {
		return Reply{}, err
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, fmt.Errorf("make a connection's id: %w", err)
	}
	var secret [secretLen]byte
	if err := tx.Secret(secret[:]); err != nil {
		return Reply{}, fmt.Errorf("make a connection's secret: %w", err)
	}
	text, credential := newCredential(SCIMToken, tx.Workspace(), id, secret)
	days := in.ExpiresInDays
	if days == 0 {
		days = 365
	}
	scopes := slices.Clone(in.Scopes)
	slices.Sort(scopes)
	c := scimConnection{
		ID: SCIMConnectionID(id.String()), Scopes: slices.Compact(scopes), Hash: credential.Hash[:],
		CreatedAt: At(tx.now), ExpiresAt: At(tx.now.Add(time.Duration(days) * 24 * time.Hour)),
	}
	if _, err := scimConnections.Insert(tx, &c); err != nil {
		return Reply{}, fmt.Errorf("add a SCIM connection: %w", err)
	}
	workspace := tx.Workspace().String()
	return jsonReply(Created, CreatedSCIMConnection{
		ConnectionID: c.ID, ProvisioningDomainID: workspace, Token: text, BaseURL: in.url(&tx.View),
	})
}
