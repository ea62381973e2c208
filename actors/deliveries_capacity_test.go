package actors

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/storage"
)

const (
	deliverySlot = 32 << 10 // the memory of a delivery with a small body
	slowURL      = "https://slow-%d-%d.example/"
)

// flights counts requests in flight, and the bytes of their bodies.
type flights struct{ now, peak, bytes, peakBytes atomic.Int64 }

// counting has requests counted while they are answered.
func (f *flights) counting(answer func(context.Context, *webhook.Delivery) webhook.Result) func(context.Context, *webhook.Delivery) webhook.Result {
	return func(ctx context.Context, d *webhook.Delivery) webhook.Result {
		n, bytes := f.now.Add(1), f.bytes.Add(int64(len(d.Body)))
		f.peak.Store(max(f.peak.Load(), n))
		f.peakBytes.Store(max(f.peakBytes.Load(), bytes))
		defer f.now.Add(-1)
		defer f.bytes.Add(-int64(len(d.Body)))
		return answer(ctx, d)
	}
}

// hanging makes workspaces with some webhooks each, whose receivers hang, and an issue in each of them.
func (p *deliveryFixture) hanging(f *flights, workspaces, hooks int, description string) (urls []string) {
	p.t.Helper()
	for n := range workspaces {
		o := p.onboard(fmt.Sprintf("slow-%d", n))
		for k := range hooks {
			url := fmt.Sprintf(slowURL, n, k)
			p.set(url, f.counting(hangs))
			p.subscribe(o, url)
			urls = append(urls, url)
		}
		p.described(o, description)
	}
	return urls
}

// described creates an issue with a description.
func (p *deliveryFixture) described(o onboarded, description string) {
	p.t.Helper()
	p.mustAs(o, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "an issue", IssueFields: tracker.IssueFields{Description: tracker.Some(description)}}, nil)
}

// prompt checks that an event of a workspace is delivered at once.
func (p *deliveryFixture) prompt(o onboarded, url, description string) {
	p.t.Helper()
	before := time.Now()
	p.described(o, description)
	rest()
	got := p.at(url)
	if len(got) == 0 || got[len(got)-1].at.Before(before) || got[len(got)-1].at.After(before.Add(time.Millisecond)) {
		p.t.Fatalf("the event of %s is not delivered at once: %+v", before, got)
	}
}

// all checks that each URL got the first event of its workspace.
func (p *deliveryFixture) all(urls []string) {
	p.t.Helper()
	for _, url := range urls {
		p.set(url, nil)
	}
	pass(time.Minute)
	p.leap(time.Hour)
	for _, url := range urls {
		if got := p.at(url); len(got) == 0 || got[len(got)-1].sequence != 1 {
			p.t.Errorf("%s got %+v", url, got)
		}
	}
	p.free()
}

// Hanging receivers of many workspaces, in all shards, have half of the deliveries that the node makes at
// once. Those of others are made at once. A webhook that is not known to be healthy yet has the next free place.
func TestDispatcher_BoundOfTheNode(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		p.subscribe(o, hereURL)
		p.issues(o, 1)
		rest()
		var f flights
		urls := p.hanging(&f, 12, 4, "")
		for range 15 {
			p.prompt(o, hereURL, "")
			pass(time.Second)
		}
		fresh := p.onboard("fresh")
		p.subscribe(fresh, thereURL)
		p.issues(fresh, 1)
		pass(10 * time.Second) // until the first of those in flight ends
		rest()
		if got := p.at(thereURL); len(got) != 1 {
			t.Errorf("the new workspace's receiver got %+v", got)
		}
		if n := f.peak.Load(); n < 12 || n > 16 {
			t.Errorf("%d deliveries to hanging receivers at once", n)
		}
		if c := p.engine.Stats().Deliveries; c.Bytes < 12*deliverySlot || c.Bytes > 32*deliverySlot || c.Waiting == 0 {
			t.Errorf("%d bytes are taken, %d workspaces wait", c.Bytes, c.Waiting)
		}
		p.all(urls)
	}, func(c *Config) { c.DeliveryBytes = 32 * deliverySlot })
}

// The bodies count. Those that are shortened count as they are sent.
func TestDispatcher_BoundOfBodies(t *testing.T) {
	t.Parallel()
	const most = 4 << 20
	for name, row := range map[string]struct {
		description, atOnce int
		sent                int64 // bytes of all bodies in flight
	}{
		"large":     {description: 100_000, atOnce: most / 2 / (deliverySlot + 100_000), sent: most / 2},
		"shortened": {description: 300_000, atOnce: 24, sent: 24 * 2000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
				p.subscribe(o, hereURL)
				p.issues(o, 1)
				rest()
				var f flights
				description := strings.Repeat("d", row.description)
				urls := p.hanging(&f, 8, 3, description)
				for range 12 {
					p.prompt(o, hereURL, description)
					pass(time.Second)
				}
				if n := f.peak.Load(); n < int64(row.atOnce)*2/3 || n > int64(row.atOnce) {
					t.Errorf("%d deliveries to hanging receivers at once, want at most %d", n, row.atOnce)
				}
				if n := f.peakBytes.Load(); n > row.sent {
					t.Errorf("%d bytes of bodies at once", n)
				}
				p.all(urls)
			}, func(c *Config) { c.DeliveryBytes = most })
		})
	}
}

// free checks that no delivery takes memory or waits for some.
func (p *deliveryFixture) free() {
	p.t.Helper()
	if c := p.engine.Stats().Deliveries; c.Bytes != 0 || c.Waiting != 0 || c.InFlight != 0 {
		p.t.Errorf("%d bytes of memory are taken by %d deliveries, and %d workspaces wait", c.Bytes, c.InFlight, c.Waiting)
	}
}

// A shard that is lost gives back what its deliveries hold, also those that wait. The next owner makes them.
func TestDispatcher_TheBoundAndALostShard(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, _ onboarded) {
		var f flights
		urls := p.hanging(&f, 12, 4, "")
		rest()
		if n := f.now.Load(); n != 8 {
			t.Errorf("%d deliveries are in flight", n)
		}
		for n := range testShards {
			p.local.lose(p.engine, storage.Shard(1+n))
			rest()
			if c := p.engine.Stats().Deliveries; c.InFlight < 4 && c.Waiting > 0 { // a workspace may have half
				t.Errorf("%d deliveries are in flight while %d workspaces wait", c.InFlight, c.Waiting)
			}
		}
		p.free()
		p.local.gain(t, p.engine)
		p.all(urls)
	}, func(c *Config) { c.DeliveryBytes = 16 * deliverySlot })
}

// Deliveries that can't be made for lack of space keep no memory from others.
func TestDispatcher_TheBoundWithoutSpace(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, _ onboarded) {
		var f flights
		urls := p.hanging(&f, 12, 4, "")
		rest()
		p.local.full.Store(true)
		pass(time.Minute)
		rest()
		p.free()
		p.local.full.Store(false)
		p.all(urls)
	}, func(c *Config) { c.DeliveryBytes = 16 * deliverySlot })
}

// The next owner of a shard knows the webhooks whose last delivery succeeded: their deliveries don't wait
// behind those to hanging receivers.
func TestDispatcher_TheBoundAfterARestart(t *testing.T) {
	bytes := func(c *Config) { c.DeliveryBytes = 16 * deliverySlot }
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		p.subscribe(o, hereURL)
		p.issues(o, 1)
		rest()
		var f flights
		urls := p.hanging(&f, 12, 4, "")
		pass(15 * time.Second)
		if err := p.engine.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.start(p.attach, bytes)
		pass(time.Second)
		rest()
		if c := p.engine.Stats().Deliveries; c.Waiting == 0 {
			t.Error("nothing waits")
		}
		p.prompt(o, hereURL, "")
		p.all(urls)
	}, bytes)
}
