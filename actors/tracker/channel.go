package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ChannelID names a support channel.
type ChannelID string

// ChannelType says what a support channel leads to, and with it which config it has.
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

// channelPlain is another name by which a creation may call helpdesk3.
const channelPlain ChannelType = "plain"

// SupportChannel is a place where people write to the workspace. Its record is what
// clients get, so the secrets of its config are masked in it; what they are is in
// channelSecrets.
type SupportChannel struct {
	Type           ChannelType       `json:"type" enum:"email,chatapp1,chatapp2,chatapp3,chat,capture,api,helpdesk1,helpdesk2,helpdesk3"`
	ID             ChannelID         `json:"id"`
	OrganizationID WorkspaceID       `json:"organizationId"`
	Name           string            `json:"name"`
	IsActive       bool              `json:"isActive"`
	Config         map[string]string `json:"config"`
	CreatedAt      Timestamp         `json:"createdAt"`
	UpdatedAt      Timestamp         `json:"updatedAt"`
}

var channels = storage.Table[SupportChannel]{
	ID:   channelTable,
	Name: "channel",
	Key:  func(k storage.Key, c *SupportChannel) storage.Key { return newestKey(k, c.ID) },
}

// channelSecret is what a channel's config keeps from everyone but the service. It
// is a record of its own, so that no answer, event or log line made from the
// channel can show it; it can't be hashed, being used to talk to others.
type channelSecret struct {
	Channel ChannelID         `json:"channel"`
	Secrets map[string]string `json:"secrets"`
}

var channelSecrets = storage.Table[channelSecret]{
	ID:   channelSecretTable,
	Name: "channelSecret",
	Key:  func(k storage.Key, s *channelSecret) storage.Key { return newestKey(k, s.Channel) },
}

// channelSecretOf reads a channel's secrets; nil when it has none.
func (v *View) channelSecretOf(id ChannelID) (*storage.Row[channelSecret], error) {
	row, err := channelSecrets.Get(v, newestKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("read a channel's secrets: %w", err)
	}
	return row, nil
}

// setChannelSecrets puts a channel's secrets in place of those it had; none at all
// have no record.
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

// channelFor finds the active channel that a source's tickets belong to: the one
// whose id it is, or the oldest of the type it names; nil when there is none.
func (v *View) channelFor(source string) (found *ChannelID, err error) {
	if id, ok := storage.ParseID(source); ok {
		row, err := channels.Get(v, storage.Key(nil).Newest(id))
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
			found = &c.ID // the last is the oldest
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for a channel: %w", err)
	}
	return found, nil
}

// checkChannels proves that a channel's secrets are masked where it is shown, that
// no others are kept, and that its config is that of its type.
func checkChannels(v *storage.View, say sayer) error {
	err := channels.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := channels.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		c := &row.Value
		if string(c.OrganizationID) != v.Workspace().String() {
			say(channels.Name, pk, "says it belongs to workspace %s", c.OrganizationID)
		}
		var faults Faults
		configFaults(c.Type, c.Config, &faults)
		if !faults.Empty() {
			say(channels.Name, pk, "its config is not one of %s", c.Type)
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
				say(channels.Name, pk, "what it shows of %s is not what is kept", key)
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
			say(channelSecrets.Name, pk, "there is no such channel")
		}
		return true, err
	})
}
