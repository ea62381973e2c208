package actors

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/storage"
)

const (
	hereURL  = "https://here.example/hook"
	thereURL = "https://there.example/hook"
)

func TestDispatcher_DeliversInOrderAndOnce(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		here, there := p.subscribe(o, hereURL), p.subscribe(o, thereURL)
		p.issues(o, 200)
		rest()
		for _, url := range []string{hereURL, thereURL} {
			got := p.at(url)
			if len(got) != 200 {
				t.Fatalf("%d deliveries to %s", len(got), url)
			}
			for i, g := range got {
				if g.sequence != uint64(i+1) || g.kind != "issue.created" {
					t.Fatalf("delivery %d is %+v", i, g)
				}
			}
		}
		for _, id := range []tracker.WebhookID{here, there} {
			for _, d := range p.deliveries(o, id) {
				if d.Status != tracker.DeliverySucceeded || d.Attempts != 1 || *d.LastStatusCode != 200 || d.DeliveredAt == nil || d.NextAttemptAt != nil || d.LastError != nil {
					t.Fatalf("delivery %+v", d)
				}
			}
		}
		if n := p.engine.Stats().Deliveries.Outcomes["succeeded"]; n != 400 {
			t.Errorf("%d deliveries counted", n)
		}
	})
}

func TestDispatcher_OnlyWhatIsSubscribedTo(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		for url, events := range map[string][]string{hereURL: {"issue.updated", "comment.*"}, thereURL: {"issue.*"}} {
			p.mustAs(o, tracker.CreateWebhook, &tracker.CreateWebhookIn{URL: url, Events: tracker.Some(events)}, nil)
		}
		var issue tracker.Issue
		p.mustAs(o, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "one"}, &issue)
		patch := &tracker.PatchIssueIn{ID: string(issue.ID)}
		patch.Title = tracker.Some("two")
		p.mustAs(o, tracker.PatchIssue, patch, nil)
		rest()
		if got := p.at(hereURL); len(got) != 1 || got[0].kind != "issue.updated" {
			t.Errorf("got %+v", got)
		}
		if got := p.at(thereURL); len(got) != 2 {
			t.Errorf("got %+v", got)
		}
	})
}

// The pause after each failure is the schedule's, with a deviation of up to a fifth,
// and the id stays the same.
func TestDispatcher_RetriesOnScheduleThenGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.set(hereURL, answers(500))
		p.issues(o, 1)
		rest()
		waits := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour}
		for i, wait := range waits {
			next := p.deliveries(o, id)[0].NextAttemptAt.Time()
			if wait < 10*time.Minute {
				pass(next.Sub(p.now()))
				rest()
			} else {
				p.leap(next.Sub(p.now()))
			}
			got := p.at(hereURL)
			if len(got) != i+2 || got[i+1].id != got[0].id {
				t.Fatalf("tries %+v", got)
			}
			if d := got[i+1].at.Sub(got[i].at); d < wait*8/10 || d > wait*12/10+20*time.Millisecond {
				t.Errorf("try %d came after %s", i+2, d)
			}
		}
		p.leap(100 * time.Hour)
		if n := len(p.at(hereURL)); n != len(waits)+1 {
			t.Errorf("%d tries", n)
		}
		d := p.deliveries(o, id)[0]
		if d.Status != tracker.DeliveryFailed || d.Attempts != 9 || *d.LastError != "refused" || *d.LastStatusCode != 500 || d.NextAttemptAt != nil {
			t.Errorf("delivery %+v", d)
		}
		if w := p.hook(o, id); !w.IsActive {
			t.Error("two days of failure disabled it")
		}
	})
}

// A failed delivery does not delay the ones behind it, and is retried on its own.
func TestDispatcher_AFailureHoldsUpNothing(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		var broken atomic.Bool
		broken.Store(true)
		p.set(hereURL, func(_ context.Context, d *webhook.Delivery) webhook.Result {
			if broken.Swap(false) {
				return webhook.Result{StatusCode: 503, Failure: "busy"}
			}
			return webhook.Result{StatusCode: 204}
		})
		p.issues(o, 5)
		rest()
		if d := p.deliveries(o, id); d[4].Status != tracker.DeliveryPending || d[4].Attempts != 1 || d[4].NextAttemptAt == nil || d[3].Status != tracker.DeliverySucceeded {
			t.Errorf("deliveries %+v", d)
		}
		pass(7 * time.Second)
		rest()
		var order []uint64
		for _, g := range p.at(hereURL) {
			order = append(order, g.sequence)
		}
		if fmt.Sprint(order) != "[1 2 3 4 5 1]" {
			t.Errorf("order %v", order)
		}
		if d := p.deliveries(o, id)[4]; d.Status != tracker.DeliverySucceeded || d.Attempts != 2 {
			t.Errorf("delivery %+v", d)
		}
	})
}

// Hanging receivers, more than there are requests at a time, do not delay those that
// are known to answer, in the same workspace or another.
func TestDispatcher_SlowOnesDelayNobody(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		var other onboarded // of the shard of o
		for n := 0; other.id == (storage.ID{}); n++ {
			w := p.onboard(fmt.Sprintf("w-%d", n))
			if storage.ShardOf(w.id, testShards) == storage.ShardOf(o.id, testShards) {
				other = w
			}
		}
		p.subscribe(o, hereURL)
		p.subscribe(other, thereURL)
		p.issues(o, 1)
		p.issues(other, 1)
		rest()
		for n := range 60 {
			url := fmt.Sprintf("https://slow-%d.example/", n)
			p.set(url, hangs)
			p.subscribe(o, url)
		}
		for range 20 {
			before := time.Now()
			p.issues(o, 1)
			p.issues(other, 1)
			rest()
			for _, url := range []string{hereURL, thereURL} {
				got := p.at(url)
				if last := got[len(got)-1].at; last.Before(before) || last.After(before.Add(time.Millisecond)) {
					t.Fatalf("delivered to %s at %s, %s after the event", url, last, last.Sub(before))
				}
			}
			pass(1500 * time.Millisecond)
		}
		if n := p.engine.Stats().Deliveries.InFlight; n > 16 {
			t.Errorf("%d requests at a time", n)
		}
	}, func(c *Config) { c.Limits.Deliveries = 16 })
}

func TestDispatcher_GoneDisablesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		answer := p.goneAt(hereURL)
		p.issues(o, 10)
		answer()
		rest()
		if got := p.at(hereURL); len(got) != 1 {
			t.Errorf("%d requests", len(got))
		}
		w := p.hook(o, id)
		if w.IsActive || w.DisabledReason == nil || *w.DisabledReason != tracker.DisabledGone {
			t.Errorf("webhook %+v", w)
		}
		for _, d := range p.deliveries(o, id) {
			if d.Status != tracker.DeliveryFailed {
				t.Errorf("delivery %+v", d)
			}
		}
		p.issues(o, 1)
		if n := len(p.deliveries(o, id)); n != 10 {
			t.Errorf("%d deliveries, one while it was inactive", n)
		}
		// An activated webhook starts without failures.
		p.set(hereURL, nil)
		p.mustAs(o, tracker.PatchWebhook, &tracker.PatchWebhookIn{ID: id, IsActive: tracker.Some(true)}, nil)
		p.issues(o, 1)
		rest()
		if got := p.at(hereURL); len(got) != 2 || got[1].sequence != 12 {
			t.Errorf("got %+v", got)
		}
	})
}

// goneAt has a receiver answer 410, as soon as the function is called that it returns.
func (p *deliveryFixture) goneAt(url string) (answer func()) {
	enter := make(chan struct{})
	p.set(url, func(ctx context.Context, d *webhook.Delivery) webhook.Result {
		<-enter
		return answers(410)(ctx, d)
	})
	return func() { close(enter) }
}

// A webhook that is activated again gets its events, even if it was disabled by a 410 in the
// same commit, so that the dispatcher never saw it inactive.
func TestDispatcher_ActivatedInTheCommitThatDisabledIt(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		answer := p.goneAt(hereURL)
		p.issues(o, 1)
		rest()
		p.local.setFate(func(int, storage.Shard) fate { return waits })
		var all sync.WaitGroup
		all.Go(func() { p.issues(o, 1) })
		rest() // the next commands go into one batch
		answer()
		rest()
		all.Go(func() {
			p.mustAs(o, tracker.PatchWebhook, &tracker.PatchWebhookIn{ID: id, IsActive: tracker.Some(true)}, nil)
		})
		synctest.Wait()
		p.set(hereURL, nil)
		p.local.setFate(nil)
		p.local.release()
		all.Wait()
		rest()
		p.issues(o, 1)
		rest()
		if w := p.hook(o, id); !w.IsActive {
			t.Fatalf("webhook %+v", w)
		}
		if d := p.deliveries(o, id); d[0].Status != tracker.DeliverySucceeded || d[2].Status != tracker.DeliveryFailed {
			t.Errorf("deliveries %+v", d)
		}
	})
}

// A delivery that was not made, as the webhook was inactive, is made if the webhook is active
// again by the time that this is recorded.
func TestDispatcher_ActivatedBeforeTheOutcomeIsRecorded(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		answer := p.goneAt(hereURL)
		const first, second = 256, 100 // the outcomes of the first command, and those behind them
		p.issues(o, first+second)
		rest()
		p.local.setFate(func(int, storage.Shard) fate { return waits })
		answer()
		rest()
		var all sync.WaitGroup
		all.Go(func() {
			p.mustAs(o, tracker.PatchWebhook, &tracker.PatchWebhookIn{ID: id, IsActive: tracker.Some(true)}, nil)
		})
		synctest.Wait()
		p.set(hereURL, nil)
		p.local.setFate(nil)
		p.local.release()
		all.Wait()
		rest()
		if n := len(p.at(hereURL)); n != 1+second {
			t.Errorf("%d requests", n)
		}
		for i, d := range p.deliveries(o, id) {
			if d.Status != tracker.DeliverySucceeded || d.Attempts != 1 || d.LastError != nil {
				t.Fatalf("delivery %d is %+v", i, d)
			}
		}
	})
}

// A 410 of the URL before a PATCH comes after it: the deliveries go to the new URL.
func TestDispatcher_GoneAtAFormerURL(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		answer := p.goneAt(hereURL)
		p.issues(o, 3)
		rest()
		p.mustAs(o, tracker.PatchWebhook, &tracker.PatchWebhookIn{ID: id, URL: tracker.Some(thereURL)}, nil)
		rest()
		answer()
		p.leap(10 * time.Second)
		if w := p.hook(o, id); !w.IsActive {
			t.Errorf("webhook %+v", w)
		}
		if here, there := len(p.at(hereURL)), len(p.at(thereURL)); here != 1 || there != 3 {
			t.Errorf("%d requests to the former URL, %d to the new one", here, there)
		}
		for _, d := range p.deliveries(o, id) {
			if d.Status != tracker.DeliverySucceeded {
				t.Errorf("delivery %+v", d)
			}
		}
	})
}

func TestDispatcher_FiveDaysOfFailureDisable(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id, other := p.subscribe(o, hereURL), p.subscribe(o, thereURL)
		p.set(hereURL, answers(500))
		p.set(thereURL, answers(500))
		for day := range 6 {
			if day == 3 { // one success is enough
				p.set(thereURL, nil)
				p.issues(o, 1)
				rest()
				p.set(thereURL, answers(500))
			}
			p.issues(o, 1)
			p.leap(24 * time.Hour)
			if w := p.hook(o, id); w.IsActive != (day < 5) && day != 4 {
				t.Errorf("day %d: %+v", day, w)
			}
		}
		if w := p.hook(o, id); w.IsActive || *w.DisabledReason != tracker.DisabledFailing {
			t.Errorf("webhook %+v", w)
		}
		if w := p.hook(o, other); !w.IsActive {
			t.Errorf("webhook %+v", w)
		}
	})
}
