package tracker

import (
	"fmt"

	"switchyard/storage"
)

// WebhookID is the id of a webhook subscription.
type WebhookID string

// Webhook is a subscription: an address that the workspace's events are sent to.
type Webhook struct {
	ID             WebhookID   `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	URL            string      `json:"url"`
	// Events are the subscribed types: names, "issue.*" for a family, "*" for all.
	Events      []string `json:"events"`
	Description *string  `json:"description"`
	IsActive    bool     `json:"isActive"`
	// DisabledReason is the reason why the service made the webhook inactive; null if
	// it did not.
	DisabledReason *DisabledReason `json:"disabledReason"`
	CreatedAt      Timestamp       `json:"createdAt"`
	UpdatedAt      Timestamp       `json:"updatedAt"`
}

// WebhookWithSecret is a webhook with its secret, which is shown when the secret is
// set.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret"`
}

// DisabledReason is the reason why the service stopped delivering to a webhook.
type DisabledReason string

// The reasons.
const (
	// DisabledGone: the receiver answered 410.
	DisabledGone DisabledReason = "gone"
	// DisabledFailing: every attempt within five days failed.
	DisabledFailing DisabledReason = "failing"
	// DisabledBacklog: too many deliveries were pending.
	DisabledBacklog DisabledReason = "backlog"
)

// webhooks are listed newest first. The index tells a shard's dispatcher which
// workspaces have webhooks when it starts.
var webhooks = storage.Table[Webhook]{
	Changed: audited(auditWebhook, func(w *Webhook) string { return string(w.ID) }),
	ID:      webhookTable,
	Name:    "webhook",
	Key: func(k storage.Key, w *Webhook) storage.Key {
		id, _ := storage.ParseID(w.ID)
		return k.DescID(id)
	},
	Indexes: []storage.Index[Webhook]{{
		ID:        webhookByShard,
		Name:      "shard",
		ShardWide: true,
		Entries:   func(e *storage.Entries, _ *Webhook) { e.Add(e.Key()) },
	}},
	Dirty: DirtyWebhooks,
}

var _ = declareTable(&webhooks, newestFirst, atMost(MaxWebhooks, "webhook subscriptions"))

// webhookByID returns a webhook, or NOT_FOUND.
func (v *View) webhookByID(id WebhookID) (*storage.Row[Webhook], storage.ID, error) {
	raw, ok := storage.ParseID(id)
	if !ok {
		return nil, raw, NotFound("webhook subscription")
	}
	row, err := webhooks.Get(v, storage.Key(nil).DescID(raw))
	if err != nil {
		return nil, raw, fmt.Errorf("read a webhook: %w", err)
	}
	if row == nil {
		return nil, raw, NotFound("webhook subscription")
	}
	return row, raw, nil
}

// disableWebhook makes a webhook inactive on the service's own decision.
func (tx *Tx) disableWebhook(id storage.ID, reason DisabledReason) error {
	row, err := webhooks.Get(tx, storage.Key(nil).DescID(id))
	if err != nil {
		return fmt.Errorf("read a webhook: %w", err)
	}
	if row == nil || !row.Value.IsActive {
		return nil
	}
	w := row.Value
	w.IsActive, w.DisabledReason, w.UpdatedAt = false, &reason, At(tx.now)
	if _, err := webhooks.Update(tx, row, &w); err != nil {
		return fmt.Errorf("disable a webhook: %w", err)
	}
	return nil
}
