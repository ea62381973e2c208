package tracker

import (
	"encoding/binary"
	"fmt"

	"switchyard/storage"
)

// RedeliverIn identifies a delivery.
type RedeliverIn struct {
	ID         WebhookID `path:"id"`
	DeliveryID string    `path:"deliveryId"`
}

// Redeliver makes a new attempt of a delivery now, under its id, in any status. If it
// fails, the delivery continues with the schedule of its number of attempts.
var Redeliver = NewCommand[RedeliverIn, WebhookDelivery]("Redeliver", "Try a delivery again", Needs{Level: Admin}, redeliver, Answers(Accepted))

func redeliver(tx *Tx, in *RedeliverIn) (Reply, error) {
	hook, webhook, err := tx.webhookByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	id, ok := storage.ParseID(in.DeliveryID)
	if !ok {
		return Reply{}, NotFound("delivery")
	}
	if !hook.Value.IsActive {
		return Reply{}, inactiveWebhook()
	}
	queued, err := tx.Value(outboxTable, outboxKey(webhook, id), nil)
	if err != nil {
		return Reply{}, err
	}
	if len(queued) == 8 { // its first attempt is still to come
		d, err := queuedDelivery(&tx.View.View, webhook, id, binary.BigEndian.Uint64(queued))
		if err != nil {
			return Reply{}, err
		}
		return jsonReply(Accepted, d)
	}
	pk := deliveryPK(webhook, id)
	waiting, err := retries.Get(tx, pk)
	if err != nil {
		return Reply{}, err
	}
	over, err := deliveries.Get(tx, pk)
	if err != nil {
		return Reply{}, err
	}
	var d WebhookDelivery
	switch {
	case waiting != nil:
		d = waiting.Value
	case over != nil:
		d = over.Value
	default:
		return Reply{}, NotFound("delivery")
	}
	if err := tx.stillKept(webhook, id, &d); err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	d.Status, d.NextAttemptAt, d.DeliveredAt, d.FinishedAt = DeliveryPending, &now, nil, nil
	if waiting != nil {
		_, err = retries.Update(tx, waiting, &d)
	} else {
		err = tx.reopen(webhook, over, &d)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("put a delivery among the retries: %w", err)
	}
	tx.Writer().MarkDirty(DirtyWebhooks) // the delivery has another time
	return jsonReply(Accepted, &d)
}

// reopen moves a finished delivery to the retries.
func (tx *Tx) reopen(webhook storage.ID, over *storage.Row[WebhookDelivery], d *WebhookDelivery) error {
	n, err := tx.Next(pendingCount, webhook)
	if err != nil {
		return err
	}
	if n > maxPending {
		return Conflict("Too many deliveries of the webhook are waiting.", "Wait until its receiver has accepted some.")
	}
	if err := deliveries.Delete(tx, over); err != nil {
		return err
	}
	if err := tx.addTo(deliveryCount, webhook, -1); err != nil {
		return err
	}
	_, err = retries.Insert(tx, d)
	return err
}

// stillKept returns CONFLICT for a delivery whose event was swept, and for one that came with an
// import: its event stayed behind, and the sequence number is that of another event here, if of
// any.
func (tx *Tx) stillKept(webhook, id storage.ID, d *WebhookDelivery) error {
	var sequence uint64
	if d.EventSequence != nil {
		sequence = *d.EventSequence
	}
	event, kept, err := readDeliveryEvent(&tx.View.View, webhook, id, sequence, nil)
	if err == nil && (!kept || event.ID != d.EventID) {
		err = Conflict("The delivery's event is no longer kept: events are for 30 days.", "Read the resource itself; there is nothing left to deliver.")
	}
	return err
}
