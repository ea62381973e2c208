package actors

import (
	"context"
	"fmt"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/storage"
)

func TestDispatcher_GoesOnAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.set(hereURL, answers(500))
		p.issues(o, 1)
		rest()
		p.set(hereURL, hangs)
		p.issues(o, 4)
		rest()
		if err := p.engine.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.set(hereURL, nil)
		p.leap(time.Hour)
		before := len(p.at(hereURL))
		p.start(p.attach)
		pass(time.Second)
		rest()
		seen := map[uint64]int{}
		for _, g := range p.at(hereURL)[before:] {
			seen[g.sequence]++
		}
		if fmt.Sprint(seen) != "map[1:1 2:1 3:1 4:1 5:1]" {
			t.Errorf("delivered %v", seen)
		}
		for _, d := range p.deliveries(o, id) {
			if d.Status != tracker.DeliverySucceeded {
				t.Errorf("delivery %+v", d)
			}
		}
		ids := map[uint64]string{}
		for _, g := range p.at(hereURL) {
			if ids[g.sequence] == "" {
				ids[g.sequence] = g.id
			}
			if ids[g.sequence] != g.id {
				t.Errorf("event %d went out under two ids", g.sequence)
			}
		}
	})
}

func TestDispatcher_StopsWithTheOwnership(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		p.subscribe(o, hereURL)
		p.set(hereURL, hangs)
		p.issues(o, 3)
		rest()
		p.local.lose(p.engine, storage.ShardOf(o.id, testShards))
		p.set(hereURL, nil)
		p.leap(time.Hour)
		if n := len(p.at(hereURL)); n != 1 {
			t.Errorf("%d requests without owning the shard", n)
		}
		p.local.gain(t, p.engine)
		rest()
		if n := len(p.at(hereURL)); n != 4 {
			t.Errorf("%d requests", n)
		}
	})
}

// Results of deliveries are recorded when that is possible again; until then nothing is
// sent twice.
func TestDispatcher_RecordsWhenItCan(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		enter := make(chan struct{})
		p.set(hereURL, func(ctx context.Context, d *webhook.Delivery) webhook.Result {
			<-enter
			if d.Type == "webhook.test" {
				return answers(500)(ctx, d)
			}
			return answers(200)(ctx, d)
		})
		p.issues(o, 3)
		p.mustAs(o, tracker.PingWebhook, &tracker.WebhookByIDIn{ID: id}, nil)
		rest()
		for _, met := range []fate{fails, failsLost, failsLate, failsApplied} {
			p.local.setFate(func(int, storage.Shard) fate { return met })
			if met == fails {
				close(enter)
			}
			pass(8 * time.Second)
		}
		p.local.setFate(nil)
		pass(time.Minute)
		rest()
		got := p.at(hereURL)
		if len(got) < 5 || fmt.Sprint(got[0].sequence, got[1].sequence, got[2].sequence, got[3].sequence) != "1 2 3 0" {
			t.Errorf("got %+v", got)
		}
		for _, g := range got[4:] {
			if g.kind != "webhook.test" {
				t.Errorf("sent again: %+v", g)
			}
		}
		list := p.deliveries(o, id)
		if len(list) != 4 || list[3].Status != tracker.DeliverySucceeded || list[3].Attempts != 1 || list[0].Status != tracker.DeliveryPending {
			t.Errorf("deliveries %+v", list)
		}
	})
}

// Nothing is sent while no result could be recorded for lack of space: it would be sent again after the next
// change of the owner.
func TestDispatcher_WaitsForSpace(t *testing.T) {
	t.Parallel()
	for name, lack := range lacks {
		t.Run("on "+name, func(t *testing.T) {
			var disk disk
			bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
				id := p.subscribe(o, hereURL)
				enter := make(chan struct{})
				p.set(hereURL, func(ctx context.Context, d *webhook.Delivery) webhook.Result {
					<-enter
					return answers(200)(ctx, d)
				})
				p.issues(o, 3)
				pass(time.Second) // a run of the queue ends with this delivery
				lack(p.testEngine, &disk, true)
				close(enter)
				pass(time.Minute)
				rest()
				if got := p.at(hereURL); len(got) != 1 {
					t.Errorf("sent without space: %+v", got)
				}
				lack(p.testEngine, &disk, false)
				pass(10 * time.Second)
				rest()
				if got := p.at(hereURL); len(got) != 3 {
					t.Errorf("got %+v", got)
				}
				for _, d := range p.deliveries(o, id) {
					if d.Status != tracker.DeliverySucceeded || d.Attempts != 1 {
						t.Errorf("%+v", d)
					}
				}
			}, func(c *Config) { c.Shortage = disk.shortage })
		})
	}
}

func TestDispatcher_TestAndRedeliver(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.subscribe(o, thereURL)
		var d tracker.WebhookDelivery
		p.mustAs(o, tracker.PingWebhook, &tracker.WebhookByIDIn{ID: id}, &d)
		if d.Status != tracker.DeliveryPending || d.EventType != "webhook.test" || d.EventSequence != nil {
			t.Errorf("test %+v", d)
		}
		p.issues(o, 1)
		rest()
		if n := len(p.at(thereURL)); n != 1 {
			t.Errorf("the test went to others: %d", n)
		}
		for _, d := range p.deliveries(o, id) {
			var again tracker.WebhookDelivery
			p.mustAs(o, tracker.Redeliver, &tracker.RedeliverIn{ID: id, DeliveryID: d.ID}, &again)
			if again.Status != tracker.DeliveryPending || again.ID != d.ID {
				t.Errorf("again %+v", again)
			}
		}
		rest()
		got := p.at(hereURL)
		if len(got) != 4 {
			t.Fatalf("got %+v", got)
		}
		times := map[string]int{}
		for _, g := range got {
			times[g.id+g.kind]++
		}
		if len(times) != 2 {
			t.Errorf("got %+v", got)
		}
		for _, d := range p.deliveries(o, id) {
			if d.Attempts != 2 || d.Status != tracker.DeliverySucceeded {
				t.Errorf("delivery %+v", d)
			}
		}
		// There is nothing to send for an event that is no longer kept.
		last := p.deliveries(o, id)[0]
		p.leap(31 * 24 * time.Hour)
		_, err := p.as(o, tracker.Redeliver, &tracker.RedeliverIn{ID: id, DeliveryID: last.ID})
		wantCode(t, err, tracker.CodeConflict)
	})
}

// Redeliver promises a try. An attempt that is under way, and fails later, does not replace
// that try.
func TestDispatcher_RedeliverDuringARetry(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.set(hereURL, answers(500))
		p.issues(o, 1)
		rest()
		p.set(hereURL, hangs)
		pass(7 * time.Second)
		if n := len(p.at(hereURL)); n != 2 {
			t.Fatalf("%d requests before the redelivery", n)
		}
		d := p.deliveries(o, id)[0]
		p.set(hereURL, nil)
		p.mustAs(o, tracker.Redeliver, &tracker.RedeliverIn{ID: id, DeliveryID: d.ID}, nil)
		pass(10 * time.Second)
		rest()
		d = p.deliveries(o, id)[0]
		if n := len(p.at(hereURL)); n != 3 || d.Attempts != 3 || d.Status != tracker.DeliverySucceeded {
			t.Errorf("%d requests, delivery %+v", n, d)
		}
	})
}

// Both secrets sign for a day after a rotation.
func TestDispatcher_BothSecretsSignForADay(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.issues(o, 1)
		rest()
		p.mustAs(o, tracker.RotateWebhookSecret, &tracker.RotateWebhookSecretIn{ID: id}, nil)
		p.mustAs(o, tracker.RotateWebhookSecret, &tracker.RotateWebhookSecretIn{ID: id}, nil)
		pass(time.Millisecond)
		p.issues(o, 1)
		p.leap(23 * time.Hour)
		p.issues(o, 1)
		p.leap(time.Hour)
		p.issues(o, 1)
		rest()
		var signed []int
		for _, g := range p.at(hereURL) {
			signed = append(signed, g.secrets)
		}
		if fmt.Sprint(signed) != "[1 2 2 1]" {
			t.Errorf("secrets that signed: %v", signed)
		}
	})
}

func TestDispatcher_NothingAfterDeletion(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.set(hereURL, hangs)
		p.issues(o, 10)
		rest()
		p.mustAs(o, tracker.DeleteWebhook, &tracker.WebhookByIDIn{ID: id}, nil)
		p.leap(time.Hour)
		if n := len(p.at(hereURL)); n > 1 {
			t.Errorf("%d requests", n)
		}
		p.verify()
		other := p.onboard("other")
		p.subscribe(other, thereURL)
		p.set(thereURL, answers(500))
		p.issues(other, 2)
		rest()
		p.mustAs(other, tracker.DeleteWorkspace, &tracker.None{}, nil)
		p.leap(time.Hour)
		if n := len(p.at(thereURL)); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// If the shard is lost while results are being recorded, the next owner makes the
// deliveries again, under their ids, and records them once.
func TestDispatcher_OwnershipLostWhileRecording(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.set(hereURL, hangs)
		p.issues(o, 5)
		rest()
		shard := storage.ShardOf(o.id, testShards)
		for _, met := range []fate{failsLost, fails, waits, failsApplied} {
			p.set(hereURL, func(_ context.Context, d *webhook.Delivery) webhook.Result {
				if d.Type == "webhook.test" {
					return answers(500)(t.Context(), d)
				}
				return answers(200)(t.Context(), d)
			})
			p.local.setFate(func(int, storage.Shard) fate { return met })
			pass(11 * time.Second)
			p.local.lose(p.engine, shard)
			p.local.setFate(nil)
			p.local.release()
			p.local.gain(t, p.engine)
			rest()
			p.verify()
			p.mustAs(o, tracker.PingWebhook, &tracker.WebhookByIDIn{ID: id}, nil)
			p.issues(o, 5)
			p.set(hereURL, hangs)
		}
		p.set(hereURL, nil)
		p.leap(5 * time.Minute) // some have failed twice
		list := p.deliveries(o, id)
		if len(list) != 29 {
			t.Errorf("%d deliveries", len(list))
		}
		ids := map[string]bool{}
		for _, d := range list {
			if ids[d.ID] = true; d.Status != tracker.DeliverySucceeded {
				t.Errorf("delivery %+v", d)
			}
		}
		for _, g := range p.at(hereURL) {
			if !ids[g.id] {
				t.Errorf("no such delivery: %+v", g)
			}
		}
	})
}
