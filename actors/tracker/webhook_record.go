package tracker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// retryAfter are the pauses after each failed attempt (Decision 46); after one more
// failure the delivery has failed.
var retryAfter = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

const (
	// failingMost is the time after which a webhook whose every attempt fails is
	// disabled.
	failingMost = 5 * 24 * time.Hour
	// deliveriesKept is the number of finished deliveries that each webhook keeps. They
	// are trimmed when there are deliveriesSlack more.
	deliveriesKept  = 1000
	deliveriesSlack = 250
)

// DeliveryOutcome is the result of one attempt.
type DeliveryOutcome struct {
	Webhook, Delivery storage.ID
	// Retry is set if the delivery was in retries; otherwise it was in the outbox.
	Retry bool
	// Due is the time at which the retry was due. It differs from that of a try that was
	// asked for meanwhile.
	Due time.Time
	// EventID, EventType and Sequence are those of its event.
	EventID, EventType string
	Sequence           uint64
	// URL is the address that the webhook had for the attempt.
	URL string
	At  time.Time
	// Tried is set if a request was sent, or sending it failed. Otherwise the delivery
	// ended for another reason, which is in Error.
	Tried bool
	// StatusCode is that of the response; 0 without one.
	StatusCode int
	// Error is the reason of a failure; empty for success.
	Error string
	// Gone is set if the receiver answered 410, which disables the webhook.
	Gone bool
	// Final ends the delivery. Disabled ends it unless the webhook is active again: no attempt
	// was made, since the webhook was inactive or a receiver had answered 410 before.
	Final, Disabled bool
}

// DeliveryOutcomes are results of one workspace.
type DeliveryOutcomes struct {
	Outcomes []DeliveryOutcome
	// Repeated is set if the results may have been recorded before.
	Repeated bool
	// Stale reports that another dispatcher has taken over, which makes the same
	// deliveries again, so that these results must not be recorded; nil if there can be
	// none.
	Stale func() bool
}

// RecordDeliveries records the results of the dispatcher's attempts. Repeats have no
// effect: the result of a delivery that has changed since is ignored. A failure does not
// replace the try that Redeliver promised during the attempt.
var RecordDeliveries = NewCommand[DeliveryOutcomes, None]("RecordDeliveries", "Record deliveries", Needs{}, recordDeliveries)

func recordDeliveries(tx *Tx, in *DeliveryOutcomes) (Reply, error) {
	if in.Stale != nil && in.Stale() {
		return Reply{}, Moved("Another dispatcher has taken over.")
	}
	there := map[storage.ID]bool{}
	for i := range in.Outcomes {
		o := &in.Outcomes[i]
		known, seen := there[o.Webhook]
		if !seen {
			var err error
			if known, err = tx.Has(webhookSecrets, o.Webhook[:]); err != nil {
				return Reply{}, err
			}
			there[o.Webhook] = known
		}
		if !known {
			continue // deleted together with its deliveries
		}
		if err := tx.recordDelivery(o, in.Repeated); err != nil {
			return Reply{}, err
		}
	}
	for webhook := range there {
		if err := tx.trimDeliveries(webhook); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, nil
}

func (tx *Tx) recordDelivery(o *DeliveryOutcome, repeated bool) error {
	d, retry, err := tx.tried(o, repeated)
	if err != nil || d == nil {
		return err
	}
	var promised *Timestamp
	if retry != nil && !o.isDueOf(d) {
		promised = d.NextAttemptAt
	}
	if o.Disabled {
		active, err := tx.isActiveWebhook(o.Webhook)
		if err != nil {
			return err
		}
		if active {
			now := At(tx.now)
			tx.Writer().MarkDirty(DirtyWebhooks) // the dispatcher did not know that it is active
			return tx.tryAgain(o, d, retry, cmp.Or(promised, &now))
		}
	}
	if o.Tried {
		at := At(o.At)
		d.Attempts++
		d.LastAttemptAt, d.LastStatusCode = &at, nil
		if o.StatusCode != 0 {
			d.LastStatusCode = &o.StatusCode
		}
	}
	d.LastError, d.NextAttemptAt = nil, nil
	if o.Error == "" {
		d.Status, d.DeliveredAt = DeliverySucceeded, d.LastAttemptAt
		if err := tx.succeeded(o.Webhook); err != nil {
			return err
		}
		return tx.finishDelivery(o, d, retry)
	}
	text := brief(o.Error)
	d.LastError = &text
	moved, err := tx.movedSince(o)
	if err != nil {
		return err
	}
	if !moved {
		if err := tx.failed(o); err != nil {
			return err
		}
	}
	if o.Gone && !moved || promised == nil && (o.Final || d.Attempts > len(retryAfter)) {
		d.Status = DeliveryFailed
		return tx.finishDelivery(o, d, retry)
	}
	if promised == nil {
		due, err := tx.nextTry(d.Attempts)
		if err != nil {
			return err
		}
		promised = &due
	}
	return tx.tryAgain(o, d, retry, promised)
}

// tryAgain puts a delivery among the retries, due at a time.
func (tx *Tx) tryAgain(o *DeliveryOutcome, d *WebhookDelivery, retry *storage.Row[WebhookDelivery], due *Timestamp) (err error) {
	d.NextAttemptAt = due
	if retry != nil {
		_, err = retries.Update(tx, retry, d)
	} else if err = tx.leaveOutbox(o); err == nil {
		_, err = retries.Insert(tx, d)
	}
	if err != nil {
		return fmt.Errorf("put a delivery among the retries: %w", err)
	}
	return nil
}

// isDueOf reports whether a delivery among the retries is still due at the time at which
// the attempt was. The time differs if the delivery was redelivered during the attempt, or
// if its result was recorded before.
func (o *DeliveryOutcome) isDueOf(d *WebhookDelivery) bool {
	return d.NextAttemptAt != nil && d.NextAttemptAt.Time().Equal(o.Due)
}

// tried returns the delivery of an outcome. It returns nil if the delivery is over, or if
// it has changed since the attempt and the outcome may have been recorded before. A changed
// delivery stays among the retries then, so that it is tried again rather than lost. A
// delivery may also be unknown: during the attempt its workspace was deleted and imported
// again, with the webhook but without what was to be delivered.
func (tx *Tx) tried(o *DeliveryOutcome, repeated bool) (*WebhookDelivery, *storage.Row[WebhookDelivery], error) {
	if o.Retry {
		row, err := retries.Get(tx, deliveryPK(o.Webhook, o.Delivery))
		if err != nil || row == nil {
			return nil, nil, err
		}
		d := row.Value
		if repeated && !o.isDueOf(&d) {
			return nil, nil, nil
		}
		return &d, row, nil
	}
	if row, err := tx.Value(outboxTable, outboxKey(o.Webhook, o.Delivery), nil); err != nil || row == nil {
		return nil, nil, err
	}
	d := &WebhookDelivery{
		ID: o.Delivery.String(), SubscriptionID: WebhookID(o.Webhook.String()), EventID: o.EventID, EventType: o.EventType,
		Status: DeliveryPending, CreatedAt: idTime(o.Delivery),
	}
	if o.Sequence != 0 {
		d.EventSequence = &o.Sequence
	}
	return d, nil, nil
}

func outboxKey(webhook, id storage.ID) storage.Key {
	return storage.Key(make([]byte, 0, 32)).ID(webhook).ID(id)
}

func (tx *Tx) leaveOutbox(o *DeliveryOutcome) error {
	return tx.Writer().DeleteValue(outboxTable, outboxKey(o.Webhook, o.Delivery))
}

// finishDelivery moves a delivery to the finished ones.
func (tx *Tx) finishDelivery(o *DeliveryOutcome, d *WebhookDelivery, retry *storage.Row[WebhookDelivery]) (err error) {
	if retry != nil {
		err = retries.Delete(tx, retry)
	} else {
		err = tx.leaveOutbox(o)
	}
	if err != nil {
		return err
	}
	if err := tx.addTo(pendingCount, o.Webhook, -1); err != nil {
		return err
	}
	if now := At(tx.now); !o.Tried {
		d.FinishedAt = &now
	}
	if _, err := deliveries.Insert(tx, d); err != nil {
		return fmt.Errorf("end a delivery: %w", err)
	}
	return tx.addTo(deliveryCount, o.Webhook, 1)
}

// succeeded ends the time of failures of a webhook.
func (tx *Tx) succeeded(webhook storage.ID) error {
	since, err := tx.Counter(webhookFailures, webhook)
	if err != nil || since == 0 {
		return err
	}
	return tx.SetCounter(webhookFailures, webhook, 0)
}

// movedSince reports whether the webhook has got another address since an attempt. The failure says
// nothing about the new one, to which the delivery goes next.
func (tx *Tx) movedSince(o *DeliveryOutcome) (bool, error) {
	row, err := webhooks.Get(tx, storage.Key(nil).DescID(o.Webhook))
	if err != nil {
		return false, fmt.Errorf("read a webhook: %w", err)
	}
	return row != nil && o.URL != "" && row.Value.URL != o.URL, nil
}

// isActiveWebhook reports whether a webhook is active.
func (tx *Tx) isActiveWebhook(id storage.ID) (bool, error) {
	row, err := webhooks.Get(tx, storage.Key(nil).DescID(id))
	if err != nil {
		return false, fmt.Errorf("read a webhook: %w", err)
	}
	return row != nil && row.Value.IsActive, nil
}

// failed disables the webhook if it is gone, or if every attempt has failed for too
// long.
func (tx *Tx) failed(o *DeliveryOutcome) error {
	if !o.Tried {
		return nil
	}
	if o.Gone {
		return tx.disableWebhook(o.Webhook, DisabledGone)
	}
	since, err := tx.Counter(webhookFailures, o.Webhook)
	if err != nil {
		return err
	}
	if since == 0 {
		return tx.SetCounter(webhookFailures, o.Webhook, uint64(tx.now.UnixMilli()))
	}
	if tx.now.Sub(time.UnixMilli(int64(since))) >= failingMost {
		return tx.disableWebhook(o.Webhook, DisabledFailing)
	}
	return nil
}

// nextTry returns the time of the next attempt after so many: the schedule's pause with
// a random deviation of up to a fifth, so that deliveries that failed together are not
// retried together.
func (tx *Tx) nextTry(attempts int) (Timestamp, error) {
	wait := retryAfter[max(attempts, 1)-1]
	var raw [8]byte
	if err := tx.Secret(raw[:]); err != nil {
		return "", err
	}
	spread := uint64(wait) / 5
	wait += time.Duration(binary.BigEndian.Uint64(raw[:])%(2*spread+1)) - time.Duration(spread)
	return At(tx.now.Add(wait)), nil
}

// trimDeliveries removes the oldest finished deliveries beyond those that are kept.
func (tx *Tx) trimDeliveries(webhook storage.ID) error {
	n, err := tx.Counter(deliveryCount, webhook)
	if err != nil || n <= deliveriesKept+deliveriesSlack {
		return err
	}
	drop := make([]*storage.Row[WebhookDelivery], 0, n-deliveriesKept)
	var at uint64
	err = deliveries.Scan(tx, webhook[:], nil, func(_ []byte, rec storage.Record) (bool, error) {
		if at++; at > deliveriesKept {
			row, err := deliveries.Decode(rec)
			if err != nil {
				return false, err
			}
			drop = append(drop, row)
		}
		return at < n, nil // do not iterate over the tombstones of earlier trims
	})
	if err != nil {
		return fmt.Errorf("read a webhook's deliveries: %w", err)
	}
	for _, row := range drop {
		if err := deliveries.Delete(tx, row); err != nil {
			return fmt.Errorf("trim a webhook's deliveries: %w", err)
		}
	}
	return tx.addTo(deliveryCount, webhook, -len(drop))
}
