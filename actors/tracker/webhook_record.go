package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// retryAfter is how long a delivery waits after each failure (Decision 46); after
// one failure more it has failed.
var retryAfter = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

const (
	// failingMost is how long a webhook may do nothing but fail.
	failingMost = 5 * 24 * time.Hour
	// deliveriesKept are the deliveries that are over, of each webhook, that are kept;
	// deliveriesSlack is by how many more the clearing is put off.
	deliveriesKept  = 1000
	deliveriesSlack = 250
)

// DeliveryOutcome is what became of one try.
type DeliveryOutcome struct {
	Webhook, Delivery storage.ID
	// Retry: the delivery was among the retries; else in the outbox.
	Retry bool
	// EventID, EventType and Sequence are its event's.
	EventID, EventType string
	Sequence           uint64
	At                 time.Time
	// Tried: a request was sent, or sending it failed; else the delivery ended for
	// another reason, which Error says.
	Tried bool
	// StatusCode is the answer's; 0 for none.
	StatusCode int
	// Error says what went wrong; empty for success.
	Error string
	// Final: it is not to be tried again. Gone: nothing is, for this webhook.
	Final, Gone bool
}

// DeliveryOutcomes are tries of one workspace.
type DeliveryOutcomes struct {
	Outcomes []DeliveryOutcome
	// Repeated: they may have been recorded before. Else, as long as the webhook is
	// there, so are its rows in the outbox: nothing but a record takes one out of it.
	Repeated bool
	// Stale tells that another dispatcher has taken over, whose records these would
	// contradict: it makes the same deliveries again. nil: there can be none.
	Stale func() bool
}

// RecordDeliveries notes what became of tries. It is the dispatcher's, and repeats
// do nothing: a try whose delivery has moved on since is passed over.
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
			continue // deleted with its deliveries
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
	if err := tx.failed(o); err != nil {
		return err
	}
	if o.Final || o.Gone || d.Attempts > len(retryAfter) {
		d.Status = DeliveryFailed
		return tx.finishDelivery(o, d, retry)
	}
	due, err := tx.nextTry(d.Attempts)
	if err != nil {
		return err
	}
	d.NextAttemptAt = &due
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

// tried finds the delivery of an outcome; nil when it is not where it was.
func (tx *Tx) tried(o *DeliveryOutcome, repeated bool) (*WebhookDelivery, *storage.Row[WebhookDelivery], error) {
	if o.Retry {
		row, err := retries.Get(tx, deliveryPK(o.Webhook, o.Delivery))
		if err != nil || row == nil {
			return nil, nil, err
		}
		d := row.Value
		return &d, row, nil
	}
	if repeated {
		row, err := tx.Value(outboxTable, outboxKey(o.Webhook, o.Delivery), nil)
		if err != nil || row == nil {
			return nil, nil, err
		}
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

// finishDelivery moves a delivery to those that are over.
func (tx *Tx) finishDelivery(o *DeliveryOutcome, d *WebhookDelivery, retry *storage.Row[WebhookDelivery]) (err error) {
	if retry != nil {
		err = retries.Delete(tx, retry)
	} else {
		err = tx.leaveOutbox(o)
	}
	if err != nil {
		return err
	}
	if err := tx.addTo(pendingTally, o.Webhook, -1); err != nil {
		return err
	}
	if _, err := deliveries.Insert(tx, d); err != nil {
		return fmt.Errorf("end a delivery: %w", err)
	}
	return tx.addTo(deliveryTally, o.Webhook, 1)
}

// succeeded ends a webhook's row of failures.
func (tx *Tx) succeeded(webhook storage.ID) error {
	since, err := tx.Counter(webhookFailures, webhook)
	if err != nil || since == 0 {
		return err
	}
	return tx.SetCounter(webhookFailures, webhook, 0)
}

// failed disables the webhook when it is gone, or has done nothing but fail for too
// long.
func (tx *Tx) failed(o *DeliveryOutcome) error {
	if o.Gone {
		return tx.disableWebhook(o.Webhook, DisabledGone)
	}
	if !o.Tried {
		return nil
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

// nextTry gives when a delivery is tried again after so many attempts: the
// schedule's time, give or take a fifth, so that what failed together doesn't come
// back together.
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

// trimDeliveries drops the oldest deliveries that are over, beyond those kept.
func (tx *Tx) trimDeliveries(webhook storage.ID) error {
	n, err := tx.Counter(deliveryTally, webhook)
	if err != nil || n <= deliveriesKept+deliveriesSlack {
		return err
	}
	drop := make([]storage.Key, 0, n-deliveriesKept)
	var at uint64
	err = tx.Rows(deliveryTable, webhook[:], nil, func(fields, _ []byte) (bool, error) {
		if at++; at > deliveriesKept {
			drop = append(drop, append(storage.Key(nil), fields...))
		}
		return at < n, nil // and not on over what was dropped before
	})
	if err != nil {
		return fmt.Errorf("read a webhook's deliveries: %w", err)
	}
	for _, key := range drop { // they are in no index
		if err := tx.Writer().DeleteValue(deliveryTable, key); err != nil {
			return err
		}
	}
	return tx.addTo(deliveryTally, webhook, -len(drop))
}
