package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

func (w *issueFixture) subscribe(events ...string) WebhookWithSecret {
	w.Helper()
	in := &CreateWebhookIn{URL: "https://example.com/hook"}
	if len(events) > 0 {
		in.Events = Some(events)
	}
	return decode[WebhookWithSecret](w, w.run(&w.ann, CreateWebhook, in).Body)
}

// outbox returns the pending first attempts of a webhook.
func (w *issueFixture) outbox(id WebhookID) []PendingDelivery {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	return outbox(w, &v, id)
}

func outbox(t tester, v *storage.View, id WebhookID) []PendingDelivery {
	t.Helper()
	raw, _ := storage.ParseID(id)
	list, err := ListOutbox(v, raw, storage.ID{}, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// wantAll checks that the outbox of a webhook, which existed from the start, has every
// event once and in order.
func wantAll(t tester, v *storage.View, id WebhookID) {
	t.Helper()
	events, err := v.Number(eventSequence, make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	queued := outbox(t, v, id)
	for i, p := range queued {
		if p.Sequence != uint64(i+1) {
			t.Fatalf("delivery %d is of event %d", i+1, p.Sequence)
		}
	}
	if uint64(len(queued)) != events {
		t.Fatalf("%d deliveries of %d events", len(queued), events)
	}
}

// record records the results of attempts.
func (w *issueFixture) record(id WebhookID, retry bool, failure string, of ...PendingDelivery) {
	w.Helper()
	raw, _ := storage.ParseID(id)
	v := storage.NewView(w.db, 1, w.workspace)
	in := &DeliveryOutcomes{}
	for _, p := range of {
		event, err := ReadDeliveryEvent(&v, raw, p, nil)
		if err != nil {
			w.Fatal(err)
		}
		o := DeliveryOutcome{Webhook: raw, Delivery: p.ID, Sequence: p.Sequence, Retry: retry, EventID: event.ID, EventType: event.Type, At: w.now, Tried: true, StatusCode: 200, Error: failure}
		if retry {
			o.Due = w.dueOf(raw, p.ID)
		}
		if failure != "" {
			o.StatusCode = 500
		}
		in.Outcomes = append(in.Outcomes, o)
	}
	w.run(&System, RecordDeliveries, in)
}

// dueOf returns the time at which a retry is due, or zero if the delivery is not among the
// retries.
func (w *issueFixture) dueOf(webhook, id storage.ID) time.Time {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	row, err := retries.Get(&v, deliveryPK(webhook, id))
	if err != nil {
		w.Fatal(err)
	}
	if row == nil {
		return time.Time{}
	}
	return row.Value.NextAttemptAt.Time()
}

func (w *issueFixture) pages(id WebhookID, status DeliveryStatus, limit int) (all []WebhookDelivery) {
	w.Helper()
	in := &ListDeliveriesIn{ID: id, Status: status, Limit: limit}
	for {
		reply, err := w.ask(&w.ann, ListDeliveries, in)
		if err != nil {
			w.Fatal(err)
		}
		page := decode[DeliveryList](w, reply.Body)
		if len(page.Deliveries) > limit {
			w.Fatalf("%d deliveries on a page of %d", len(page.Deliveries), limit)
		}
		all = append(all, page.Deliveries...)
		if in.Cursor = page.NextCursor; in.Cursor == "" {
			return all
		}
	}
}

// An event has one row for each webhook that subscribes to it, in the event's batch.
func TestEmit_FillsOutboxes(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{}) // there is no webhook yet
	all, created, none := w.subscribe(), w.subscribe("issue.created"), w.subscribe("ticket.*", "deal.created")
	issue := w.create(CreateIssueIn{})
	title := IssuePatch{}
	title.Title = Some("another")
	w.patch(issue.ID, title)
	if a, c, n := w.outbox(all.ID), w.outbox(created.ID), w.outbox(none.ID); len(a) != 2 || len(c) != 1 || len(n) != 0 || a[0].Sequence != 2 || a[1].Sequence != 3 || c[0].Sequence != 2 {
		t.Errorf("outboxes %v %v %v", a, c, n)
	}
	// A change of a webhook takes effect with the next event, also in the same batch.
	both := NewCommand[None, None]("both", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		if _, err := patchWebhook(tx, &PatchWebhookIn{ID: created.ID, IsActive: Some(false)}); err != nil {
			return Reply{}, err
		}
		return Reply{}, tx.Emit(eventIssueCreated, storage.Header{}, []byte(`{}`), nil)
	})
	w.run(&w.ann, both, &None{})
	if a, c := w.outbox(all.ID), w.outbox(created.ID); len(a) != 3 || len(c) != 1 {
		t.Errorf("outboxes %v %v", a, c)
	}
	// A command that fails leaves no rows.
	fails := NewCommand[None, None]("fails", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		if err := tx.Emit(eventIssueCreated, storage.Header{}, []byte(`{}`), nil); err != nil {
			return Reply{}, err
		}
		return Reply{}, Conflict("no", "no")
	})
	if _, _, err := w.try(&w.ann, fails, &None{}); err == nil {
		t.Fatal("it did not fail")
	}
	if a := w.outbox(all.ID); len(a) != 3 {
		t.Errorf("outbox %v", a)
	}
	w.verify()
}

// Only the answers that set the secret have it.
func TestWebhooks_SecretsStaySecret(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	next := decode[WebhookWithSecret](t, w.run(&w.ann, RotateWebhookSecret, &RotateWebhookSecretIn{ID: hook.ID}).Body)
	if next.Secret == hook.Secret || secretFault(next.Secret) != "" || secretFault(hook.Secret) != "" {
		t.Fatalf("secrets %q %q", hook.Secret, next.Secret)
	}
	w.create(CreateIssueIn{})
	test := w.run(&w.ann, PingWebhook, &WebhookByIDIn{ID: hook.ID})
	var shown []string
	for _, q := range []struct {
		op *Op
		in any
	}{{ListWebhooks, &PageIn{}}, {WebhookByID, &WebhookByIDIn{ID: hook.ID}}, {ListDeliveries, &ListDeliveriesIn{ID: hook.ID, Limit: 50}}} {
		reply, err := w.ask(&w.ann, q.op, q.in)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(reply.Body))
	}
	shown = append(shown, string(test.Body), string(w.run(&w.ann, PatchWebhook, &PatchWebhookIn{ID: hook.ID, Description: Some("new")}).Body))
	v := storage.NewView(w.db, 1, w.workspace)
	for _, table := range []storage.TableID{eventTable, webhookTable, outboxTable} {
		if err := v.Rows(table, nil, nil, func(_, value []byte) (bool, error) { shown = append(shown, string(value)); return true, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range shown {
		if strings.Contains(s, "whsec_") {
			t.Errorf("a secret shows: %s", s)
		}
	}
	targets, err := ListWebhookTargets(&v)
	if err != nil || len(targets) != 1 || targets[0].Secret != next.Secret || targets[0].Previous != hook.Secret {
		t.Errorf("targets %d, %v", len(targets), err)
	}
	if !CreateWebhook.Secret || !RotateWebhookSecret.Secret {
		t.Error("answers with a secret are kept in the clear")
	}
	w.verify()
}

func TestWebhooks_AreBounded(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	var last WebhookWithSecret
	for i := range quotas[webhookTable].most {
		last = decode[WebhookWithSecret](w, w.run(&w.ann, CreateWebhook, &CreateWebhookIn{URL: fmt.Sprintf("https://%d.example.com/", i)}).Body)
	}
	_, _, err := w.try(&w.ann, CreateWebhook, &CreateWebhookIn{URL: "https://example.com/"})
	wantCode(t, err, CodeConflict)
	w.run(&w.ann, DeleteWebhook, &WebhookByIDIn{ID: last.ID})
	w.subscribe()
	w.verify()
}

// A workspace can't cause many requests to one host with one change.
func TestWebhooks_AreFewForEachHost(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	var last WebhookWithSecret
	for i := range DefaultWebhooksPerHost {
		last = decode[WebhookWithSecret](w, w.run(&w.ann, CreateWebhook, &CreateWebhookIn{URL: fmt.Sprintf("https://Example.com:%d/%d", 8000+i, i)}).Body)
	}
	refused := func(op *Op, in any) {
		t.Helper()
		_, _, err := w.try(&w.ann, op, in)
		wantCode(t, err, CodeConflict)
		if !strings.Contains(err.Error(), "--webhooks-per-host") {
			t.Errorf("%v names no flag", err)
		}
	}
	refused(CreateWebhook, &CreateWebhookIn{URL: "https://example.com./more"})
	elsewhere := decode[WebhookWithSecret](w, w.run(&w.ann, CreateWebhook, &CreateWebhookIn{URL: "https://www.example.com/"}).Body)
	refused(PatchWebhook, &PatchWebhookIn{ID: elsewhere.ID, URL: Some("https://example.com/")})
	w.run(&w.ann, PatchWebhook, &PatchWebhookIn{ID: last.ID, URL: Some("https://example.com/another/path")})
	w.run(&w.ann, PatchWebhook, &PatchWebhookIn{ID: last.ID, URL: Some("https://else.example/")})
	w.run(&w.ann, PatchWebhook, &PatchWebhookIn{ID: elsewhere.ID, URL: Some("https://example.com/")})
	w.verify()
}

// A backlog beyond the limit disables the webhook.
func TestWebhooks_BacklogDisables(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook, other := w.subscribe(), w.subscribe()
	raw, _ := storage.ParseID(hook.ID)
	w.create(CreateIssueIn{})
	pretend := func(n uint64) {
		w.run(&w.ann, NewCommand[None, None]("pretend", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			return Reply{}, tx.SetCounter(pendingCount, raw, n)
		}), &None{})
	}
	pretend(maxPending)
	_, _, err := w.try(&w.ann, PingWebhook, &WebhookByIDIn{ID: hook.ID})
	wantCode(t, err, CodeConflict)
	w.create(CreateIssueIn{})
	w.create(CreateIssueIn{})
	pretend(1)
	reply, err := w.ask(&w.ann, WebhookByID, &WebhookByIDIn{ID: hook.ID})
	if err != nil {
		t.Fatal(err)
	}
	if got := decode[Webhook](t, reply.Body); got.IsActive || got.DisabledReason == nil || *got.DisabledReason != DisabledBacklog {
		t.Errorf("webhook %+v", got)
	}
	if a, b := w.outbox(hook.ID), w.outbox(other.ID); len(a) != 1 || len(b) != 3 {
		t.Errorf("outboxes of %d and %d", len(a), len(b))
	}
	w.verify()
}

func TestDeliveries_TheOldestAreDropped(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	emit := NewCommand[None, None]("emit", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for range 100 {
			if err := tx.Emit(eventIssueCreated, storage.Header{}, []byte(`{}`), nil); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	})
	for range 26 {
		w.run(&w.ann, emit, &None{})
		w.record(hook.ID, false, "", w.outbox(hook.ID)...)
	}
	all := w.pages(hook.ID, "", 100)
	if len(all) < deliveriesKept || len(all) > deliveriesKept+deliveriesSlack || *all[0].EventSequence != 2600 || *all[len(all)-1].EventSequence != uint64(2600-len(all)+1) {
		t.Errorf("%d deliveries, the last of %d", len(all), *all[len(all)-1].EventSequence)
	}
	w.verify()
	before := w.outbox(hook.ID)
	w.run(&w.ann, DeleteWebhook, &WebhookByIDIn{ID: hook.ID})
	w.record(hook.ID, false, "", before...) // late
	w.record(hook.ID, true, "no", before...)
	w.verify()
}

func TestDeleteWebhook_InSteps(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	emit := NewCommand[None, None]("emit", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for range maxDropped/2 + 10 {
			if err := tx.Emit(eventIssueCreated, storage.Header{}, []byte(`{}`), nil); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	})
	w.run(&w.ann, emit, &None{})
	w.run(&w.ann, emit, &None{})
	waiting := w.outbox(hook.ID)
	w.record(hook.ID, false, "no", waiting[:300]...)
	w.record(hook.ID, false, "", waiting[300:400]...)
	w.verify()
	_, times, err := w.try(&w.ann, DeleteWebhook, &WebhookByIDIn{ID: hook.ID})
	if err != nil || times != 2 {
		t.Errorf("%d steps, %v", times, err)
	}
	w.verify()
	v := storage.NewView(w.db, 1, w.workspace)
	for table := webhookTable; table <= webhookFailures; table++ {
		if there, err := v.Has(table, nil); err != nil || there {
			t.Errorf("table %d is not empty, %v", table, err)
		}
	}
}

// A result that is recorded twice counts once if it is marked as repeated.
func TestRecordDeliveries_Repeated(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	raw, _ := storage.ParseID(hook.ID)
	w.create(CreateIssueIn{})
	w.create(CreateIssueIn{})
	waiting := w.outbox(hook.ID)
	in := &DeliveryOutcomes{Repeated: true}
	for i, p := range waiting {
		o := DeliveryOutcome{Webhook: raw, Delivery: p.ID, Sequence: p.Sequence, At: w.now, Tried: true, StatusCode: 200}
		if i == 1 {
			o.StatusCode, o.Error = 0, "no"
		}
		in.Outcomes = append(in.Outcomes, o)
	}
	for range 3 {
		w.run(&System, RecordDeliveries, in)
		w.verify()
	}
	all := w.pages(hook.ID, "", 10)
	if len(all) != 2 || all[0].Attempts != 1 || all[1].Attempts != 1 || all[0].Status != DeliveryPending || all[1].Status != DeliverySucceeded {
		t.Errorf("deliveries %+v", all)
	}
	in.Stale = func() bool { return true }
	_, _, err := w.try(&System, RecordDeliveries, in)
	wantCode(t, err, CodeUnavailable)
}
