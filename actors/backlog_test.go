package actors

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// gauged returns the values of the engine's metrics by name and label, as a scrape gets them.
func (b *testEngine) gauged() map[string]float64 {
	b.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b.engine.Collector())
	families, err := registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "switchyard_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				values[name+" count"], values[name+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				continue
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

func (p *deliveryFixture) wantMetrics(want map[string]float64) {
	p.t.Helper()
	got := p.gauged()
	for name, n := range want {
		if v, ok := got[name]; !ok || v != n {
			p.t.Errorf("%s is %v, %t; want %v", name, v, ok, n)
		}
	}
}

func (p *deliveryFixture) dispatch(o onboarded, options tracker.SessionOptions) {
	p.t.Helper()
	var issue tracker.Issue
	p.mustAs(o, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Work"}, &issue)
	p.mustAs(o, tracker.DispatchIssue, &tracker.DispatchIssueIn{ID: string(issue.ID), AgentID: tracker.Some("bot"), SessionOptions: options}, nil)
}

func (p *deliveryFixture) claimOne(o onboarded) tracker.SessionID {
	p.t.Helper()
	var claimed tracker.ClaimedSessions
	p.mustAs(o, tracker.ClaimSessions, &tracker.ClaimSessionsIn{LeaseSeconds: 10}, &claimed)
	if len(claimed.Sessions) != 1 {
		p.t.Fatalf("claimed %d sessions", len(claimed.Sessions))
	}
	return claimed.Sessions[0].Session.ID
}

func TestMetrics_OfSessionsAndDeliveries(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		p.wantMetrics(map[string]float64{"sessions created": 0, "sessions running": 0, "sessions_oldest_created_age_seconds": 0, "webhook_deliveries_pending": 0, "session_claim_wait_seconds count": 0})
		once := tracker.SessionOptions{Retry: tracker.Some(tracker.RetryIn{MaxAttempts: tracker.Some[int64](1), On: tracker.Some([]string{"failed", "lapsed"})})}
		p.dispatch(o, once)
		pass(5 * time.Second)
		other := p.onboard("other")
		p.dispatch(other, tracker.SessionOptions{})
		pass(time.Second)
		p.wantMetrics(map[string]float64{"sessions created": 2, "sessions_oldest_created_age_seconds": 6})

		failed := p.claimOne(o)
		p.mustAs(o, tracker.ReportSession, &tracker.ReportSessionIn{ID: failed, Status: tracker.Some(tracker.SessionFailed)}, nil)
		p.claimOne(other)
		p.wantMetrics(map[string]float64{
			"sessions created": 0, "sessions running": 1, "sessions failed": 1, "sessions_oldest_created_age_seconds": 0,
			"session_claim_wait_seconds count": 2, "session_claim_wait_seconds sum": 7, "session_dead_letters_total": 1, "session_lapses_total": 0,
		})
		if _, err := p.as(o, tracker.ReportSession, &tracker.ReportSessionIn{ID: failed, Status: tracker.Some(tracker.SessionCompleted)}); err == nil {
			t.Error("a second end was taken")
		}
		pass(11 * time.Second) // a lease runs out
		rest()
		p.wantMetrics(map[string]float64{"sessions created": 1, "sessions running": 0, "session_lapses_total": 1, "session_dead_letters_total": 1})
		pass(10 * time.Second)
		p.claimOne(other)
		got := p.gauged()
		if wait := got["session_claim_wait_seconds sum"] - 7; wait < 10 || wait > 12 {
			t.Errorf("a session that was put back waited %v s", wait)
		}

		p.set(hereURL, answers(500))
		p.subscribe(o, hereURL)
		p.issues(o, 3)
		rest()
		p.wantMetrics(map[string]float64{"webhook_deliveries_pending": 3})
	})
}

// However many workspaces there are, one scrape looks at some of them only, and the next goes on
// from there.
func TestMetrics_BoundedWork(t *testing.T) {
	bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
		spaces := []onboarded{o}
		for _, slug := range []string{"a", "b", "c", "d"} {
			spaces = append(spaces, p.onboard(slug))
		}
		p.set(hereURL, answers(500))
		for _, s := range spaces {
			p.dispatch(s, tracker.SessionOptions{})
			p.subscribe(s, hereURL)
			p.subscribe(s, hereURL)
			p.issues(s, 1)
		}
		rest()
		want := map[string]float64{"sessions created": 5, "webhook_deliveries_pending": 10}
		p.wantMetrics(want)
		p.engine.survey.step = 1
		steps := 0
		for ; steps == 0 || p.engine.survey.round.counts != nil; steps++ {
			b, err := p.engine.backlog()
			if err != nil || b.Sessions[tracker.SessionCreated] != 5 || b.Deliveries != 10 {
				t.Fatalf("after %d steps %+v, %v", steps, b, err)
			}
			if steps > 100 {
				t.Fatal("the round does not end")
			}
		}
		if steps < 15 { // five workspaces and ten webhooks
			t.Errorf("a round took %d steps", steps)
		}
		for n := range testShards {
			p.engine.Lost(storage.Shard(n+1), epochOf(p, n+1))
		}
		p.engine.survey.step = backlogStep
		p.wantMetrics(map[string]float64{"sessions created": 0, "webhook_deliveries_pending": 0})
	})
}

// epochOf returns the epoch in which the node owns a shard.
func epochOf(p *deliveryFixture, n int) uint64 {
	s := p.engine.shards[n]
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.epoch
}
