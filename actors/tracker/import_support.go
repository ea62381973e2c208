package tracker

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"switchyard/storage"
)

// takeChannel adds a support channel. Of its secrets the file has what is shown, which is
// kept in their place until somebody sets them again.
func takeChannel(im *importing, data []byte) error {
	var c SupportChannel
	if err := im.decode(data, &c); err != nil {
		return err
	}
	if c.Config == nil {
		c.Config = map[string]string{}
	}
	secrets := map[string]string{}
	for key, value := range c.Config {
		switch {
		case ignoresKey(c.Type, key):
			return im.refuse("data.config.%s is not part of the config of the type %s.", key, c.Type)
		case isLonger(value, maxConfigText):
			return im.refuse("data.config.%s must be at most %d characters long.", key, maxConfigText)
		case key == "ingestionMode" && !slices.Contains(ingestionModes, value):
			return im.refuse("data.config.%s must be one of %s.", key, strings.Join(ingestionModes, ", "))
		}
		if !slices.Contains(channelSecretKeys, key) {
			continue
		}
		if secrets[key] = value; mask(value) != value {
			secrets[key] = "*****" + value // long enough to be shown with its end
		}
		c.Config[key] = mask(secrets[key])
	}
	if err := restore(im, &channels, &c); err != nil {
		return err
	}
	return im.tx.setChannelSecrets(c.ID, nil, secrets)
}

// takeInboundSecret gives a source a new secret, which nobody knows: the source is
// refused until somebody sets one.
func takeInboundSecret(im *importing, data []byte) error {
	var shown InboundSource
	if err := im.decode(data, &shown); err != nil {
		return err
	}
	if fault := sourceFault(shown.Source); fault != "" {
		return im.refuse("data.source: %s", fault)
	}
	hash, err := im.noSecret()
	if err != nil {
		return err
	}
	secret := inboundSecretPrefix + base64.StdEncoding.EncodeToString(hash)
	return restore(im, &inboundSecrets, &inboundSecret{Source: shown.Source, Secret: secret, CreatedAt: shown.CreatedAt, UpdatedAt: shown.UpdatedAt})
}

// lookAtTicket checks the texts that calls of providers give a ticket, and sets the number of
// its messages, which are counted as they come.
func lookAtTicket(im *importing, t *Ticket) error {
	if isLonger(t.Subject, maxSubject) || isLonger(t.From, maxFrom) || t.ThreadID != nil && isLonger(*t.ThreadID, maxThread) {
		return im.refuse("data.subject, data.from and data.threadId must be at most %d, %d and %d characters long.", maxSubject, maxFrom, maxThread)
	}
	t.MessageCount = 0
	return im.awaitIssue(t.IssueID)
}

func takeTicketMessage(im *importing, data []byte) error {
	var m TicketMessage
	if err := im.decode(data, &m); err != nil {
		return err
	}
	id, _ := storage.ParseID(m.TicketID)
	if err := im.needNewer(string(m.ID), id); err != nil {
		return err
	}
	row, err := tickets.Get(im.tx, storage.Key(nil).DescID(id))
	if err != nil {
		return fmt.Errorf("read a ticket: %w", err)
	}
	if row == nil || row.Value.MessageCount >= maxTicketMessages {
		return im.refuse("There is no ticket %s before this line with room for a message.", m.TicketID)
	}
	if err := restore(im, &ticketMessages, &m); err != nil {
		return err
	}
	t := row.Value
	t.MessageCount++
	if _, err := tickets.Update(im.tx, row, &t); err != nil {
		return fmt.Errorf("store a ticket: %w", err)
	}
	return nil
}

// maxImportEvents is the number of types of events that a subscription can have.
const maxImportEvents = 50

// takeWebhook adds a subscription with a new secret, which its owner rotates to learn one.
func takeWebhook(im *importing, data []byte) error {
	var w Webhook
	if err := im.decode(data, &w); err != nil {
		return err
	}
	if err := im.checkWebhookURL(w.URL); err != nil {
		return err
	}
	if len(w.Events) > maxImportEvents { // each event of the workspace is compared with all of them
		return im.refuse("data.events must have at most %d types.", maxImportEvents)
	}
	if w.Events == nil {
		w.Events = []string{}
	}
	if err := restore(im, &webhooks, &w); err != nil {
		return err
	}
	secret, err := im.tx.newWebhookSecret("")
	if err != nil {
		return err
	}
	id, _ := storage.ParseID(w.ID)
	return im.tx.setWebhookSecret(id, webhookSecret{Secret: secret})
}

// checkWebhookURL refuses the URLs that the creation of a webhook refuses, also those that the
// service had allowed where the file comes from.
func (im *importing) checkWebhookURL(url string) error {
	if fault := cmp.Or(webhookURLFault(url), im.tx.buffer.policy.fault(url)); fault != "" {
		return im.refuse("data.url: %s", fault)
	}
	err := im.tx.roomAtHost(webhookHost(url))
	if told := (*Error)(nil); errors.As(err, &told) {
		return im.refuse("%s", told.Message)
	}
	return err
}

// takeDelivery adds a delivery that is over. It trims the subscription's deliveries as they come:
// the next result of a delivery would remove all that are too many in one batch.
func takeDelivery(im *importing, data []byte) error {
	var d WebhookDelivery
	if err := im.decode(data, &d); err != nil {
		return err
	}
	webhook, _ := storage.ParseID(d.SubscriptionID)
	if err := im.needNewer(d.ID, webhook); err != nil {
		return err
	}
	there, err := im.tx.Has(webhookTable, storage.Key(nil).DescID(webhook))
	if err != nil {
		return fmt.Errorf("look for a webhook: %w", err)
	}
	if !there || d.Status == DeliveryPending {
		return im.refuse("data must be a delivery that is over, of a subscription before this line.")
	}
	if err := restore(im, &deliveries, &d); err != nil {
		return err
	}
	if err := im.tx.addTo(deliveryCount, webhook, 1); err != nil {
		return err
	}
	return im.tx.trimDeliveries(webhook)
}
