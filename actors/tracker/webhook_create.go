package tracker

import "fmt"

// CreateWebhookIn is a new webhook subscription.
type CreateWebhookIn struct {
	URL         string        `json:"url" rules:"required,min=1,max=2048" form:"webhookURL"`
	Events      Opt[[]string] `json:"events" rules:"min=1,max=50" items:"min=1,max=64" form:"eventPattern" absent:"[\"*\"]"`
	Description Opt[string]   `json:"description" rules:"nullable,max=1000"`
	// Secret signs the deliveries; absent: one is generated.
	Secret string `json:"secret" rules:"max=255" form:"webhookSecret"`
}

// CreateWebhook subscribes an address to the workspace's events. Only this answer and
// that of a rotation have the secret (Decision 45).
var CreateWebhook = NewCommand[CreateWebhookIn, WebhookWithSecret]("CreateWebhook", "Subscribe a URL to events", Needs{Level: Admin}, createWebhook, WithSecret, Answers(Created), Audits(auditWebhook))

func createWebhook(tx *Tx, in *CreateWebhookIn) (Reply, error) {
	if err := tx.webhookURL(in.URL, ""); err != nil {
		return Reply{}, err
	}
	if err := tx.countRecord(webhookTable, 1); err != nil {
		return Reply{}, err
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, err
	}
	w := Webhook{
		ID: WebhookID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()),
		URL: in.URL, Events: []string{"*"}, Description: in.Description.Ptr(), IsActive: true,
		CreatedAt: At(tx.now), UpdatedAt: At(tx.now),
	}
	if in.Events.Set {
		w.Events = tidyPatterns(in.Events.Value)
	}
	secret, err := tx.newWebhookSecret(in.Secret)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.setWebhookSecret(id, webhookSecret{Secret: secret}); err != nil {
		return Reply{}, err
	}
	if _, err := webhooks.Insert(tx, &w); err != nil {
		return Reply{}, fmt.Errorf("add a webhook: %w", err)
	}
	return jsonReply(Created, &WebhookWithSecret{w, secret})
}
