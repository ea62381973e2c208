package tracker

// RotateWebhookSecretIn identifies the webhook subscription that gets a new secret.
type RotateWebhookSecretIn struct {
	ID WebhookID `path:"id"`
	// Secret is the new one; absent: one is generated.
	Secret string `json:"secret" rules:"max=255" form:"webhookSecret"`
}

// RotateWebhookSecret sets a new secret of a webhook. The previous one signs, too, for
// 24 hours; the one before it no longer does.
var RotateWebhookSecret = NewCommand[RotateWebhookSecretIn, WebhookWithSecret]("RotateWebhookSecret", "Replace a webhook's secret", Needs{Level: Admin}, rotateWebhookSecret, WithSecret, Audits(auditWebhook))

func rotateWebhookSecret(tx *Tx, in *RotateWebhookSecretIn) (Reply, error) {
	row, id, err := tx.webhookByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	old, err := tx.webhookSecret(id)
	if err != nil {
		return Reply{}, err
	}
	if in.Secret == old.Secret {
		return Reply{}, Conflict("This is the webhook's secret already.", "Leave secret out to have a new one made.")
	}
	secret, err := tx.newWebhookSecret(in.Secret)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.setWebhookSecret(id, webhookSecret{Secret: secret, Previous: old.Secret, Until: At(tx.now.Add(rotationGrace))}); err != nil {
		return Reply{}, err
	}
	tx.audit(auditWebhook, "secret_rotated", string(in.ID), nil)
	return jsonReply(Done, &WebhookWithSecret{row.Value, secret})
}
