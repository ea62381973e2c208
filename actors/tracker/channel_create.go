package tracker

import (
	"fmt"
	"maps"
)

// CreateChannelIn is a new support channel.
type CreateChannelIn struct {
	Type   ChannelType       `json:"type" rules:"required" enum:"email,chatapp1,chatapp2,chatapp3,chat,capture,api,helpdesk1,helpdesk2,helpdesk3,plain"`
	Name   string            `json:"name" rules:"required,min=1,max=200"`
	Config map[string]string `json:"config" rules:"max=16"`
	// IsActive channels accept messages.
	IsActive bool `json:"isActive" default:"true"`
}

// Validate checks what the tags can't express.
func (in *CreateChannelIn) Validate(faults *Faults) {
	if in.Type == channelPlain {
		in.Type = ChannelHelpdesk3
	}
	if channelKeys[in.Type] != nil {
		maps.DeleteFunc(in.Config, func(key, _ string) bool { return ignoresKey(in.Type, key) })
		configFaults(in.Type, in.Config, faults)
	}
}

// CreateChannel adds a support channel. Only this answer shows the secrets of its
// config.
var CreateChannel = NewCommand[CreateChannelIn, SupportChannel]("CreateSupportChannel", "Create a support channel", Needs{Level: Admin}, createChannel, WithSecret, Answers(Created), Audits(auditChannel))

func createChannel(tx *Tx, in *CreateChannelIn) (Reply, error) {
	id, err := tx.newRecordID(channelTable)
	if err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	shown, secrets := splitConfig(in.Config)
	c := SupportChannel{
		Type: in.Type, ID: ChannelID(id), OrganizationID: WorkspaceID(tx.Workspace().String()), Name: in.Name, IsActive: in.IsActive,
		Config: shown, CreatedAt: now, UpdatedAt: now,
	}
	if _, err := channels.Insert(tx, &c); err != nil {
		return Reply{}, fmt.Errorf("add a channel: %w", err)
	}
	if err := tx.setChannelSecrets(c.ID, nil, secrets); err != nil {
		return Reply{}, err
	}
	c.Config = joinConfig(shown, secrets)
	return jsonReply(Created, &c)
}
