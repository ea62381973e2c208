package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// After any operations lists show each delivery once, newest first, on pages of any
// size.
func TestDeliveries_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newIssueFixture(t)
		hook := w.subscribe()
		type one struct {
			status   DeliveryStatus
			attempts int
			retry    bool
			p        PendingDelivery
		}
		model := map[string]*one{}
		pick := func(t *rapid.T, fits func(*one) bool) *one {
			var ids []string
			for id, m := range model {
				if fits(m) {
					ids = append(ids, id)
				}
			}
			if len(ids) == 0 {
				t.Skip("no delivery yet: rapid draws another step")
			}
			slices.Sort(ids)
			return model[rapid.SampledFrom(ids).Draw(t, "delivery")]
		}
		note := func() {
			for _, p := range w.outbox(hook.ID) {
				if model[p.ID.String()] == nil {
					model[p.ID.String()] = &one{status: DeliveryPending, p: p}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"event": func(*rapid.T) { w.create(CreateIssueIn{}); note() },
			"test":  func(*rapid.T) { w.run(&w.ann, PingWebhook, &WebhookByIDIn{ID: hook.ID}); note() },
			"succeeds": func(t *rapid.T) {
				m := pick(t, func(m *one) bool { return m.status == DeliveryPending })
				w.record(hook.ID, m.retry, "", m.p)
				m.status, m.attempts, m.retry = DeliverySucceeded, m.attempts+1, false
			},
			"fails": func(t *rapid.T) {
				m := pick(t, func(m *one) bool { return m.status == DeliveryPending })
				w.record(hook.ID, m.retry, "no", m.p)
				m.attempts++
				if m.retry = m.attempts <= len(retryAfter); !m.retry {
					m.status = DeliveryFailed
				}
			},
			"redeliver": func(t *rapid.T) {
				m := pick(t, func(*one) bool { return true })
				w.run(&w.ann, Redeliver, &RedeliverIn{ID: hook.ID, DeliveryID: m.p.ID.String()})
				if m.status != DeliveryPending {
					m.status, m.retry = DeliveryPending, true
				}
			},
			"time": func(t *rapid.T) { w.now = w.now.Add(time.Minute) },
			"": func(t *rapid.T) {
				status := rapid.SampledFrom([]DeliveryStatus{"", DeliveryPending, DeliverySucceeded, DeliveryFailed}).Draw(t, "status")
				var want, got []string
				for id, m := range model {
					if status == "" || m.status == status {
						want = append(want, fmt.Sprint(id, m.status, m.attempts))
					}
				}
				slices.Sort(want)
				slices.Reverse(want)
				for _, d := range w.pages(hook.ID, status, rapid.IntRange(1, 7).Draw(t, "limit")) {
					got = append(got, fmt.Sprint(d.ID, d.Status, d.Attempts))
					if (d.Status == DeliveryPending) != (d.NextAttemptAt != nil) || (d.Status == DeliverySucceeded) != (d.DeliveredAt != nil) {
						t.Fatalf("delivery %+v", d)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("list %v\nwant %v", got, want)
				}
				w.verify()
			},
		})
	})
}

// The verifier finds damaged webhooks.
func TestVerify_Webhooks(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *Tx, id storage.ID) error{
		"no secret": func(tx *Tx, id storage.ID) error { return tx.Writer().DeleteValue(webhookSecrets, id[:]) },
		"a stray secret": func(tx *Tx, id storage.ID) error {
			id[15]++
			return tx.setWebhookSecret(id, webhookSecret{Secret: "whsec_x"})
		},
		"a lost first try": func(tx *Tx, id storage.ID) error {
			return tx.dropOutbox(id, func() *int { n := 1; return &n }())
		},
		"a miscount":  func(tx *Tx, id storage.ID) error { return tx.addTo(pendingCount, id, 1) },
		"a stray row": func(tx *Tx, id storage.ID) error { id[15]++; _, err := tx.queueDelivery(id, 1); return err },
		"no webhook":  func(tx *Tx, _ storage.ID) error { return dropFirst(tx, &webhooks) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			hook := w.subscribe()
			w.create(CreateIssueIn{})
			w.verify()
			raw, _ := storage.ParseID(hook.ID)
			w.run(&w.ann, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				if err := harm(tx, raw); err != nil {
					return Reply{}, err
				}
				if name == "a lost first try" {
					return Reply{}, tx.addTo(pendingCount, raw, 1)
				}
				return Reply{}, nil
			}), &None{})
			schema := Schema()
			schema.CheckStore = nil
			report, err := storage.Verify(t.Context(), w.db, schema)
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Error("nothing was found")
			}
		})
	}
}
