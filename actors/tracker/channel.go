package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ChannelID is the id of a support channel.
type ChannelID string

// ChannelType is the type of a support channel; it determines the keys of the config.
type ChannelType string

// The types of channels.
const (
	ChannelEmail     ChannelType = "email"
	ChannelChatapp1  ChannelType = "chatapp1"
	ChannelChatapp2  ChannelType = "chatapp2"
	ChannelChatapp3  ChannelType = "chatapp3"
	ChannelChat      ChannelType = "chat"
	ChannelCapture   ChannelType = "capture"
	ChannelAPI       ChannelType = "api"
	ChannelHelpdesk1 ChannelType = "helpdesk1"
	ChannelHelpdesk2 ChannelType = "helpdesk2"
	ChannelHelpdesk3 ChannelType = "helpdesk3"
)

// EnumValues implements Enumerated.
func (ChannelType) EnumValues() []string {
	return enumTexts([]ChannelType{ChannelEmail, ChannelChatapp1, ChannelChatapp2, ChannelChatapp3, ChannelChat, ChannelCapture, ChannelAPI, ChannelHelpdesk1, ChannelHelpdesk2, ChannelHelpdesk3})
}

// channelPlain is another name for helpdesk3 in the creation of a channel.
const channelPlain ChannelType = "plain"

// SupportChannel is a place where people write to the workspace. Clients get its record as
// stored, so the secrets of its config are masked in it; channelSecrets has them in full.
type SupportChannel struct {
	Type           ChannelType       `json:"type"`
	ID             ChannelID         `json:"id"`
	OrganizationID WorkspaceID       `json:"organizationId"`
	Name           string            `json:"name"`
	IsActive       bool              `json:"isActive"`
	Config         map[string]string `json:"config"`
	CreatedAt      Timestamp         `json:"createdAt"`
	UpdatedAt      Timestamp         `json:"updatedAt"`
}

var channels = storage.Table[SupportChannel]{
	Changed: audited(auditChannel, func(c *SupportChannel) string { return string(c.ID) }),
	ID:      channelTable,
	Name:    "channel",
	Key:     func(k storage.Key, c *SupportChannel) storage.Key { return newestKey(k, c.ID) },
}

var _ = declareTable(&channels, newestFirst, atMost(1_000, "support channels"))

// channelSecret holds the secrets of a channel's config, which only the service uses.
// They have a record of their own, so that no answer, event or log line made from the
// channel can show them. They can't be hashed: they authenticate the service to others.
type channelSecret struct {
	Channel ChannelID         `json:"channel"`
	Secrets map[string]string `json:"secrets"`
}

var channelSecrets = storage.Table[channelSecret]{
	ID:   channelSecretTable,
	Name: "channelSecret",
	Key:  func(k storage.Key, s *channelSecret) storage.Key { return newestKey(k, s.Channel) },
}

var _ = declareTable(&channelSecrets)

// channelSecretOf returns a channel's secrets, or nil if it has none.
func (v *View) channelSecretOf(id ChannelID) (*storage.Row[channelSecret], error) {
	row, err := channelSecrets.Get(v, newestKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("read a channel's secrets: %w", err)
	}
	return row, nil
}

// setChannelSecrets replaces a channel's secrets; a channel without secrets has no
// record of them.
func (tx *Tx) setChannelSecrets(id ChannelID, old *storage.Row[channelSecret], secrets map[string]string) (err error) {
	s := channelSecret{Channel: id, Secrets: secrets}
	switch {
	case len(secrets) == 0 && old == nil:
	case len(secrets) == 0:
		err = channelSecrets.Delete(tx, old)
	case old == nil:
		_, err = channelSecrets.Insert(tx, &s)
	default:
		_, err = channelSecrets.Update(tx, old, &s)
	}
	if err != nil {
		return fmt.Errorf("keep a channel's secrets: %w", err)
	}
	return nil
}

// channelFor returns the active channel that a source's tickets belong to: the channel
// whose id the source is, or the oldest of the type that it names; nil if there is
// none.
func (v *View) channelFor(source string) (found *ChannelID, err error) {
	if id, ok := storage.ParseID(source); ok {
		row, err := channels.Get(v, storage.Key(nil).DescID(id))
		if err != nil || row == nil || !row.Value.IsActive {
			return nil, err
		}
		return &row.Value.ID, nil
	}
	if channelKeys[ChannelType(source)] == nil {
		return nil, nil
	}
	err = channels.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		var c struct {
			ID       ChannelID   `json:"id"`
			Type     ChannelType `json:"type"`
			IsActive bool        `json:"isActive"`
		}
		if err := json.Unmarshal(rec.JSON(), &c); err != nil {
			return false, err
		}
		if c.IsActive && string(c.Type) == source {
			found = &c.ID // the last one is the oldest
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for a channel: %w", err)
	}
	return found, nil
}

// checkChannels checks that the shown config has the masks of the stored secrets, and
// that it fits the channel's type.
func checkChannels(v *storage.View, report reporter) error {
	err := channels.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := channels.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		c := &row.Value
		if string(c.OrganizationID) != v.Workspace().String() {
			report(channels.Name, pk, "says it belongs to workspace %s", c.OrganizationID)
		}
		var faults Faults
		configFaults(c.Type, c.Config, &faults)
		if !faults.Empty() {
			report(channels.Name, pk, "its config is not one of %s", c.Type)
		}
		secrets, err := channelSecrets.Get(v, pk)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		kept := map[string]string{}
		if secrets != nil {
			kept = secrets.Value.Secrets
		}
		for _, key := range channelSecretKeys {
			secret, there := kept[key]
			if shown, set := c.Config[key]; set != there || set && shown != mask(secret) {
				report(channels.Name, pk, "its masked %s does not match the stored secret", key)
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return v.Rows(channelSecretTable, nil, nil, func(pk, _ []byte) (bool, error) {
		there, err := v.Has(channelTable, pk)
		if err == nil && !there {
			report(channelSecrets.Name, pk, "there is no such channel")
		}
		return true, err
	})
}
