package tracker

// PingWebhook sends an event of type webhook.test to one webhook, independent of its
// subscribed types. The event is not in the event log and has the sequence 0.
var PingWebhook = NewCommand[WebhookByIDIn, WebhookDelivery]("TestWebhook", "Send a test event to a webhook", Needs{Level: Admin}, pingWebhook, Answers(Accepted))

func pingWebhook(tx *Tx, in *WebhookByIDIn) (Reply, error) {
	row, id, err := tx.webhookByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if !row.Value.IsActive {
		return Reply{}, inactiveWebhook()
	}
	waiting, err := tx.Counter(pendingCount, id)
	if err != nil {
		return Reply{}, err
	}
	if waiting >= maxPending {
		return Reply{}, Conflict("Too many deliveries of the webhook are waiting.", "Wait until its receiver has accepted some.")
	}
	delivery, err := tx.queueDelivery(id, 0)
	if err != nil {
		return Reply{}, err
	}
	d, err := queuedDelivery(&tx.View.View, id, delivery, 0)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Accepted, d)
}

func inactiveWebhook() error {
	return Conflict("The webhook subscription is not active.", "Send isActive true in a PATCH first.")
}
