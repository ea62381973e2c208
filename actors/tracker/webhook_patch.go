package tracker

import (
	"fmt"
	"slices"
)

// PatchWebhookIn changes a webhook subscription. Absent fields stay as they are.
type PatchWebhookIn struct {
	ID          WebhookID     `path:"id"`
	URL         Opt[string]   `json:"url" rules:"min=1,max=2048" form:"webhookURL"`
	Events      Opt[[]string] `json:"events" rules:"min=1,max=50" items:"min=1,max=64" form:"eventPattern"`
	Description Opt[string]   `json:"description" rules:"nullable,max=1000"`
	IsActive    Opt[bool]     `json:"isActive"`
}

// PatchWebhook changes a webhook subscription. Pending deliveries go to a new address.
// If it becomes inactive, nothing is delivered, and pending deliveries end (Decision
// 46).
var PatchWebhook = NewCommand[PatchWebhookIn, Webhook]("PatchWebhook", "Change a webhook subscription", Needs{Level: Admin}, patchWebhook, Audits(auditWebhook))

func patchWebhook(tx *Tx, in *PatchWebhookIn) (Reply, error) {
	row, id, err := tx.webhookByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	w := row.Value
	if in.URL.Set && in.URL.Value != w.URL {
		if err := tx.webhookURL(in.URL.Value, w.URL); err != nil {
			return Reply{}, err
		}
		w.URL = in.URL.Value
	}
	if in.Events.Set {
		w.Events = tidyPatterns(in.Events.Value)
	}
	assign(&w.Description, &in.Description)
	if in.IsActive.Set {
		w.IsActive, w.DisabledReason = in.IsActive.Value, nil
	}
	if sameWebhook(&w, &row.Value) {
		return jsonReply(Done, &w)
	}
	// An activated webhook has no failures yet, nor has a new address.
	if w.IsActive && !row.Value.IsActive || w.URL != row.Value.URL {
		if err := tx.SetCounter(webhookFailures, id, 0); err != nil {
			return Reply{}, err
		}
	}
	w.UpdatedAt = At(tx.now)
	body, err := webhooks.Update(tx, row, &w)
	if err != nil {
		return Reply{}, fmt.Errorf("change a webhook: %w", err)
	}
	return Reply{Body: body}, nil
}

func sameWebhook(a, b *Webhook) bool {
	same := func(x, y *string) bool { return x == y || x != nil && y != nil && *x == *y }
	return a.URL == b.URL && slices.Equal(a.Events, b.Events) && same(a.Description, b.Description) &&
		a.IsActive == b.IsActive && (a.DisabledReason == nil) == (b.DisabledReason == nil)
}
