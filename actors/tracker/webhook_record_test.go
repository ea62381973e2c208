package tracker

import (
	"testing"
	"time"

	"switchyard/storage"
)

// retry returns the only delivery of a webhook that is among the retries, and advances the
// clock to its due time.
func (w *issueFixture) retry(id WebhookID) PendingDelivery {
	w.Helper()
	raw, _ := storage.ParseID(id)
	v := storage.NewView(w.db, 1, w.workspace)
	list, _, err := ListRetries(&v, raw, w.now.Add(48*time.Hour), 10)
	if err != nil || len(list) != 1 {
		w.Fatalf("%d retries, %v", len(list), err)
	}
	if list[0].Due.After(w.now) {
		w.now = list[0].Due
	}
	return list[0]
}

// failure is the result of an attempt that the receiver refused.
func (w *issueFixture) failure(id WebhookID, p PendingDelivery) *DeliveryOutcomes {
	raw, _ := storage.ParseID(id)
	return &DeliveryOutcomes{Outcomes: []DeliveryOutcome{{
		Webhook: raw, Delivery: p.ID, Sequence: p.Sequence, Retry: true, Due: p.Due, At: w.now, Tried: true, StatusCode: 500, Error: "no",
	}}}
}

// A failed retry whose result is recorded twice counts once, and a delivery that was
// redelivered after its result was recorded is not ended by the repeat.
func TestRecordDeliveries_RepeatedRetry(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	w.create(CreateIssueIn{})
	w.record(hook.ID, false, "no", w.outbox(hook.ID)...)
	in := w.failure(hook.ID, w.retry(hook.ID))
	for range 3 {
		w.run(&System, RecordDeliveries, in)
		w.verify()
		in.Repeated = true
	}
	if d := w.pages(hook.ID, "", 10)[0]; d.Attempts != 2 || d.Status != DeliveryPending {
		t.Errorf("after a failure that was recorded again: %+v", d)
	}
	in = w.failure(hook.ID, w.retry(hook.ID))
	in.Outcomes[0].StatusCode, in.Outcomes[0].Error = 200, ""
	w.run(&System, RecordDeliveries, in)
	w.run(&w.ann, Redeliver, &RedeliverIn{ID: hook.ID, DeliveryID: in.Outcomes[0].Delivery.String()})
	in.Repeated = true
	w.run(&System, RecordDeliveries, in)
	if d := w.pages(hook.ID, "", 10)[0]; d.Attempts != 3 || d.Status != DeliveryPending {
		t.Errorf("redelivered, then its success recorded again: %+v", d)
	}
	w.verify()
}

// The try that Redeliver promises during an attempt is made, even if that attempt fails as
// the last of the schedule.
func TestRecordDeliveries_RedeliveredDuringTheAttempt(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	w.create(CreateIssueIn{})
	w.record(hook.ID, false, "no", w.outbox(hook.ID)...)
	for attempts := 2; attempts <= len(retryAfter)+1; attempts++ {
		under := w.retry(hook.ID)
		if attempts == 2 || attempts > len(retryAfter) {
			promise := decode[WebhookDelivery](t, w.run(&w.ann, Redeliver, &RedeliverIn{ID: hook.ID, DeliveryID: under.ID.String()}).Body)
			w.run(&System, RecordDeliveries, w.failure(hook.ID, under))
			d := w.pages(hook.ID, "", 10)[0]
			if d.Status != DeliveryPending || d.Attempts != attempts || d.NextAttemptAt == nil || *d.NextAttemptAt != *promise.NextAttemptAt || d.LastError == nil {
				t.Fatalf("attempt %d: %+v", attempts, d)
			}
			continue
		}
		w.run(&System, RecordDeliveries, w.failure(hook.ID, under))
	}
	// The promised try is the tenth. A failure of it is the end, for it is not promised again.
	w.run(&System, RecordDeliveries, w.failure(hook.ID, w.retry(hook.ID)))
	if d := w.pages(hook.ID, "", 10)[0]; d.Status != DeliveryFailed || d.Attempts != len(retryAfter)+2 {
		t.Errorf("after the promised try: %+v", d)
	}
	w.verify()
	// A success during the attempt is the delivery that was asked for.
	id := w.pages(hook.ID, "", 10)[0].ID
	w.run(&w.ann, Redeliver, &RedeliverIn{ID: hook.ID, DeliveryID: id})
	in := w.failure(hook.ID, w.retry(hook.ID))
	in.Outcomes[0].StatusCode, in.Outcomes[0].Error = 200, ""
	w.run(&w.ann, Redeliver, &RedeliverIn{ID: hook.ID, DeliveryID: id})
	w.run(&System, RecordDeliveries, in)
	if d := w.pages(hook.ID, "", 10)[0]; d.Status != DeliverySucceeded || d.NextAttemptAt != nil {
		t.Errorf("after a success: %+v", d)
	}
	w.verify()
}
