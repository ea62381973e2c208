package tracker

// WebhookByIDIn identifies a webhook subscription.
type WebhookByIDIn struct {
	ID WebhookID `path:"id"`
}

// WebhookByID reads one webhook subscription, without its secret.
var WebhookByID = NewQuery[WebhookByIDIn, Webhook]("WebhookByID", "Get a webhook subscription", Needs{Level: Admin}, webhookByID)

func webhookByID(v *View, in *WebhookByIDIn) (Reply, error) {
	row, _, err := v.webhookByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &row.Value)
}
