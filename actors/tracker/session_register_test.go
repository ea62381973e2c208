package tracker

import (
	"testing"
	"time"
)

// A session registered as running counts from that time: without activity it becomes
// stalled like any other.
func TestRegisterSession_BecomesStalled(t *testing.T) {
	t.Parallel()
	for status, want := range map[SessionStatus]string{SessionRunning: derivedStalled, SessionWaiting: derivedNeedsInput, SessionCreated: ""} {
		f := newAgentFixture(t)
		s := decode[RegisteredSession](t, f.run(f.admin, RegisterSession, &RegisterSessionIn{IssueID: string(f.work(PriorityLow).ID), Provider: "p", Status: status}).Body).Session
		if status == SessionCreated {
			if s.LastProgressAt != nil {
				t.Errorf("created: lastProgressAt is %s", *s.LastProgressAt)
			}
		} else if s.LastProgressAt == nil || *s.LastProgressAt != s.CreatedAt {
			t.Errorf("%s: lastProgressAt is %v, want %s", status, s.LastProgressAt, s.CreatedAt)
		}
		f.now = f.now.Add((*AgentSettings)(nil).stallAfter() + time.Second)
		got := ""
		if d := f.session(s.ID).DerivedStatus; d != nil {
			got = *d
		}
		if got != want {
			t.Errorf("%s: derivedStatus is %q, want %q", status, got, want)
		}
		f.verify()
	}
}

// The checkpoint of a registered session is kept when the session is retried, though no claim
// has stored it.
func TestClaim_ShowsTheCheckpointOfARegisteredSession(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := decode[RegisteredSession](t, f.run(f.admin, RegisterSession, &RegisterSessionIn{IssueID: string(f.work(PriorityLow).ID), Provider: "p", Status: SessionRunning}).Body)
	f.run(*s.LaneToken, PutCheckpoint, &PutCheckpointIn{ID: s.Session.ID, Value: []byte(`{"page":3}`)})
	if err := f.report(*s.LaneToken, s.Session.ID, SessionFailed); err != nil {
		t.Fatal(err)
	}
	f.run(f.admin, RetrySession, &RetrySessionIn{ID: s.Session.ID})
	if c := f.claimOne(); string(c.Checkpoint) != `{"page":3}` || c.LastAttempt != nil || c.Attempt != 1 {
		t.Errorf("attempt %d shows the checkpoint %s and the attempt %+v before it", c.Attempt, c.Checkpoint, c.LastAttempt)
	}
	f.verify()
}
