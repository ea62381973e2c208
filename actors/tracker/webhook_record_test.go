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

// A result of a delivery that is not waiting counts nothing: its workspace may have been deleted
// and imported again during the attempt, with the webhook and without the delivery.
func TestRecordDeliveries_NotWaiting(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	w.create(CreateIssueIn{})
	w.create(CreateIssueIn{})
	waiting := w.outbox(hook.ID)
	w.record(hook.ID, false, "", waiting[0])
	for _, failure := range []string{"no", ""} {
		w.record(hook.ID, false, failure, waiting[0])
		w.verify()
	}
	w.record(hook.ID, false, "", waiting[1])
	w.verify()
	if all := w.pages(hook.ID, "", 10); len(all) != 2 || all[0].Status != DeliverySucceeded || all[1].Status != DeliverySucceeded || all[1].Attempts != 1 {
		t.Errorf("deliveries %+v", all)
	}
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

// A try that was begun to a former URL disables nothing, and its delivery is made to the new one.
func TestRecordDeliveries_OfAFormerURL(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	raw, _ := storage.ParseID(hook.ID)
	w.create(CreateIssueIn{})
	w.create(CreateIssueIn{})
	under := w.outbox(hook.ID)
	w.run(&w.ann, PatchWebhook, &PatchWebhookIn{ID: hook.ID, URL: Some("https://example.com/new")})
	gone := func(p PendingDelivery, url string, tried bool) DeliveryOutcome {
		o := DeliveryOutcome{Webhook: raw, Delivery: p.ID, Sequence: p.Sequence, URL: url, Retry: !p.Due.IsZero(), Due: p.Due, EventID: "e", EventType: "issue.created", At: w.now, Tried: tried, Gone: tried, Final: !tried, Disabled: !tried, Error: "gone"}
		if tried {
			o.StatusCode = 410
		}
		return o
	}
	// The second delivery was not tried any more, after the answer to the first.
	w.run(&System, RecordDeliveries, &DeliveryOutcomes{Outcomes: []DeliveryOutcome{gone(under[0], hook.URL, true), gone(under[1], hook.URL, false)}})
	w.verify()
	now := func() Webhook {
		reply, err := w.ask(&w.ann, WebhookByID, &WebhookByIDIn{ID: hook.ID})
		if err != nil {
			t.Fatal(err)
		}
		return decode[Webhook](t, reply.Body)
	}
	if !now().IsActive {
		t.Fatal("the answer of the former URL disabled the webhook")
	}
	for i, d := range w.pages(hook.ID, "", 10) { // newest first
		if d.Status != DeliveryPending || d.NextAttemptAt == nil || d.Attempts != i {
			t.Errorf("delivery %+v", d)
		}
	}
	v := storage.NewView(w.db, 1, w.workspace)
	list, _, err := ListRetries(&v, raw, w.now.Add(time.Hour), 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d retries, %v", len(list), err)
	}
	w.run(&System, RecordDeliveries, &DeliveryOutcomes{Outcomes: []DeliveryOutcome{gone(list[0], "https://example.com/new", true)}})
	if is := now(); is.IsActive || *is.DisabledReason != DisabledGone {
		t.Errorf("after the answer of the new URL: %+v", is)
	}
	w.verify()
}

// The five days of failures that disable a webhook are those of its present URL.
func TestRecordDeliveries_FailuresOfAFormerURL(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	fail := func(url string) {
		w.create(CreateIssueIn{})
		for _, p := range w.outbox(hook.ID) {
			in := w.failure(hook.ID, p)
			in.Outcomes[0].Retry, in.Outcomes[0].URL = false, url
			w.run(&System, RecordDeliveries, in)
		}
	}
	active := func() bool {
		reply, err := w.ask(&w.ann, WebhookByID, &WebhookByIDIn{ID: hook.ID})
		if err != nil {
			t.Fatal(err)
		}
		return decode[Webhook](t, reply.Body).IsActive
	}
	fail(hook.URL)
	w.now = w.now.Add(failingMost - time.Minute)
	const moved = "https://example.com/new"
	w.run(&w.ann, PatchWebhook, &PatchWebhookIn{ID: hook.ID, URL: Some(moved)})
	fail(hook.URL) // begun before
	w.now = w.now.Add(2 * time.Minute)
	fail(moved)
	w.now = w.now.Add(failingMost - time.Second)
	fail(moved)
	if !active() {
		t.Error("failures of the former URL count")
	}
	w.now = w.now.Add(time.Minute)
	fail(moved)
	if active() {
		t.Error("failures of the new URL don't count")
	}
	w.verify()
}
