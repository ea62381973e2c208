package tracker

import (
	"maps"

	json "github.com/goccy/go-json"
)

// PatchChannelIn changes a support channel. Its type can't be changed. In the config a
// value replaces, null removes, and absent keys stay.
type PatchChannelIn struct {
	ID       string          `path:"id"`
	Name     Opt[string]     `json:"name" rules:"min=1,max=200"`
	Config   json.RawMessage `json:"config" rules:"object"`
	IsActive Opt[bool]       `json:"isActive"`
}

// Validate checks what the tags can't express. patchChannel checks the config against
// the channel's type.
func (in *PatchChannelIn) Validate(faults *Faults) {
	if len(in.Config) > 0 && !faults.Has("config") {
		readConfigPatch(in.Config, faults)
	}
}

// PatchChannel changes a support channel.
var PatchChannel = NewCommand[PatchChannelIn, SupportChannel]("PatchSupportChannel", "Change a support channel", Needs{Level: Admin}, patchChannel, Audits(auditChannel))

func patchChannel(tx *Tx, in *PatchChannelIn) (Reply, error) {
	row, err := recordIn(&tx.View, &channels, in.ID, "support channel")
	if err != nil {
		return Reply{}, err
	}
	kept, err := tx.channelSecretOf(row.Value.ID)
	if err != nil {
		return Reply{}, err
	}
	var old map[string]string
	if kept != nil {
		old = kept.Value.Secrets
	}
	c := row.Value
	c.Name = in.Name.Or(c.Name)
	c.IsActive = in.IsActive.Or(c.IsActive)
	config := joinConfig(c.Config, old)
	var faults Faults
	if len(in.Config) > 0 {
		readConfigPatch(in.Config, &faults).apply(c.Type, config)
	}
	configFaults(c.Type, config, &faults)
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	shown, secrets := splitConfig(config)
	c.Config = shown
	if !maps.Equal(secrets, old) { // masks can be equal
		c.UpdatedAt = At(tx.now)
	}
	if err := tx.setChannelSecrets(c.ID, kept, secrets); err != nil {
		return Reply{}, err
	}
	return changeRecord(tx, &channels, row, &c, &c.UpdatedAt)
}
