package tracker

import (
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
)

func TestLease_RunsOut(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	var lanes []string
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		got := f.claimOne()
		if got.Session.ID != s.ID || slices.Contains(lanes, got.LaneToken) {
			t.Fatalf("attempt %d: claimed %s with a lane of before", attempt, got.Session.ID)
		}
		lanes = append(lanes, got.LaneToken)
		f.pass(59 * time.Second)
		f.run(got.LaneToken, LogActivities, &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Message: Some("alive")}})
		f.pass(58 * time.Second)
		f.run(got.LaneToken, Heartbeat, &HeartbeatIn{ID: s.ID})
		f.pass(59 * time.Second)
		if got := f.session(s.ID); got.Status != SessionRunning {
			t.Fatalf("attempt %d: the session is %s though its lease was renewed", attempt, got.Status)
		}
		f.pass(2 * time.Second)
		want := SessionCreated
		if attempt == maxAttempts {
			want = SessionFailed
		}
		if got := f.session(s.ID); got.Status != want {
			t.Fatalf("attempt %d: the session is %s, want %s", attempt, got.Status, want)
		}
		f.verify()
		// A claimer whose lease expired can't write any more, and gets the session's
		// state.
		for _, lane := range lanes {
			for op, in := range map[*Op]any{
				LogActivities: &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Message: Some("late")}},
				ReportSession: &ReportSessionIn{ID: s.ID, Status: Some(SessionCompleted)}, Heartbeat: &HeartbeatIn{ID: s.ID},
				PollSession: &PollSessionIn{ID: s.ID}, OpenTools: &OpenToolsIn{ID: s.ID}, ListSessionChildren: &ListSessionChildrenIn{ID: s.ID},
			} {
				_, err := f.try(lane, op, in)
				wantConflict(t, err, want, false)
			}
		}
	}
	if n := f.timers(); n != 1 { // the timer of the events' sweep
		t.Errorf("%d timers are left", n)
	}
}

// A check of leases is bounded in bytes: sessions with large results are given back in several.
func TestLease_ManyLargeSessionsRunOut(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	const sessions = 30
	for range sessions {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	}
	result := json.RawMessage(`"` + strings.Repeat("x", maxStructured-2) + `"`)
	for _, c := range f.claim(ClaimSessionsIn{AgentID: Some("a"), Limit: sessions}) {
		f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: c.Session.ID, StructuredResult: result, Result: Some(strings.Repeat("x", 128<<10))})
	}
	f.pass(5 * time.Minute)
	if n := f.queue().Counts[SessionCreated]; n != sessions {
		t.Errorf("%d sessions are back in the queue", n)
	}
	f.verify()
}

func TestLease_ShorterOneIsKept(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	got := f.claim(ClaimSessionsIn{LeaseSeconds: 3600})[0]
	f.run(got.LaneToken, Heartbeat, &HeartbeatIn{ID: got.Session.ID, LeaseSeconds: Some(int64(10))})
	f.pass(11 * time.Second)
	if s := f.session(got.Session.ID); s.Status != SessionCreated {
		t.Errorf("the session is %s", s.Status)
	}
	f.verify()
}
