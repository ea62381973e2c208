package tracker

import "switchyard/storage"

// WebhookList is the answer to ListWebhooks.
type WebhookList struct {
	Subscriptions []Webhook `json:"subscriptions"`
	NextCursor    string    `json:"nextCursor,omitempty"`
}

// ListWebhooks lists the webhook subscriptions, newest first, without secrets.
var ListWebhooks = NewQuery[PageIn, WebhookList]("ListWebhooks", "List webhook subscriptions", Needs{Level: Admin}, listWebhooks, FromSnapshot)

func listWebhooks(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "subscriptions", &webhooks, func(storage.Record) bool { return true })
}
