package actors

import (
	"strings"
	"testing"
	"time"

	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
)

// inOrder checks that a URL got the first n events, each once and in order.
func (p *deliveryFixture) inOrder(url string, n int) {
	p.t.Helper()
	got := p.at(url)
	if len(got) != n {
		p.t.Errorf("%d deliveries to %s, want %d", len(got), url, n)
	}
	for i, g := range got {
		if g.sequence != uint64(i+1) {
			p.t.Fatalf("delivery %d to %s is event %d", i, url, g.sequence)
		}
	}
}

func TestDispatcher_WaitsForTheRateOfAHost(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		p.subscribe(o, hereURL)
		p.subscribe(o, thereURL)
		other := p.onboard("other") // the host is the same for every workspace
		p.issues(o, 20)
		rest()
		p.inOrder(hereURL, rateBurst*2)
		p.inOrder(thereURL, rateBurst*2)
		p.subscribe(other, "https://HERE.example:8443/elsewhere")
		p.issues(other, 1)
		pass(3 * time.Second)
		rest()
		if n := len(p.at(hereURL)) + len(p.at("https://HERE.example:8443/elsewhere")); n < rateBurst*2+5 || n > rateBurst*2+7 {
			t.Errorf("%d deliveries to the host in 3 seconds", n)
		}
		pass(5 * time.Second)
		rest()
		p.inOrder(hereURL, 20)
		p.inOrder(thereURL, 20)
		if n := len(p.at("https://HERE.example:8443/elsewhere")); n != 1 {
			t.Errorf("%d deliveries of the other workspace", n)
		}
		// Each delivery waits once, and its lane is not run before.
		if n := p.engine.Stats().Deliveries.Held; n == 0 || n > 2*10+1 {
			t.Errorf("deliveries waited %d times", n)
		}
	}, func(c *Config) { c.Webhooks.Host = delivery.Rate{Requests: 2} })
}

func TestDispatcher_WaitsForTheRateOfItsWorkspace(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		p.subscribe(o, hereURL)
		p.subscribe(o, thereURL)
		other := p.onboard("other")
		const otherURL = "https://here.example/other"
		p.subscribe(other, otherURL)
		p.issues(o, 10)
		p.issues(other, 5)
		rest()
		p.inOrder(otherURL, 5)
		if n := len(p.at(hereURL)) + len(p.at(thereURL)); n != rateBurst {
			t.Errorf("%d deliveries at once", n)
		}
		pass(15 * time.Second)
		rest()
		p.inOrder(hereURL, 10)
		p.inOrder(thereURL, 10)
	}, func(c *Config) { c.Webhooks.Workspace = delivery.Rate{Requests: 1} })
}

func TestDispatcher_WaitsForTheRateInBytes(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		p.subscribe(o, hereURL)
		for range 8 {
			p.mustAs(o, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "large", IssueFields: tracker.IssueFields{Description: tracker.Some(strings.Repeat("x", 200_000))}}, nil)
		}
		rest()
		p.inOrder(hereURL, leastBurst/200_000)
		pass(2*3*time.Second + 100*time.Millisecond)
		rest()
		p.inOrder(hereURL, 8)
	}, func(c *Config) { c.Webhooks.Workspace = delivery.Rate{Bytes: 100_000} })
}

// Retries are subject to the same rates, and waiting deliveries survive a change of
// their webhook.
func TestDispatcher_RetriesWaitForTheRate(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.set(hereURL, answers(500))
		p.issues(o, rateBurst)
		rest()
		p.inOrder(hereURL, rateBurst)
		p.set(hereURL, nil)
		p.issues(o, rateBurst)
		pass(4 * time.Second)
		p.mustAs(o, tracker.PatchWebhook, &tracker.PatchWebhookIn{ID: id, Description: tracker.Some("changed")}, nil)
		pass(30 * time.Second)
		rest()
		for _, d := range p.deliveries(o, id) {
			if d.Status != tracker.DeliverySucceeded {
				t.Errorf("delivery %+v", d)
			}
		}
		if n := len(p.at(hereURL)); n != 3*rateBurst {
			t.Errorf("%d requests", n)
		}
		p.mustAs(o, tracker.DeleteWebhook, &tracker.WebhookByIDIn{ID: id}, nil)
		rest()
	}, func(c *Config) { c.Webhooks.Workspace = delivery.Rate{Requests: 1} })
}

// A webhook that is deleted while its deliveries wait leaves no state.
func TestDispatcher_DeletedWhileItWaits(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		id := p.subscribe(o, hereURL)
		p.issues(o, 3*rateBurst)
		rest()
		p.mustAs(o, tracker.DeleteWebhook, &tracker.WebhookByIDIn{ID: id}, nil)
		rest()
		there := p.subscribe(o, thereURL)
		p.issues(o, 1)
		pass(20 * time.Second)
		rest()
		p.inOrder(hereURL, rateBurst)
		if d := p.deliveries(o, there); len(d) != 1 || d[0].Status != tracker.DeliverySucceeded {
			t.Errorf("deliveries %+v", d)
		}
	}, func(c *Config) { c.Webhooks.Workspace = delivery.Rate{Requests: 1} })
}
