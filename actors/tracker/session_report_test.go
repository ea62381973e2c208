package tracker

import (
	"fmt"
	"testing"
)

// A session that its agent begins by a report takes a place of the agent, as a claimed one does.
func TestReport_RespectsMaxConcurrentSessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.register(CreateAgentIn{Name: "A", MaxConcurrentSessions: Some(int64(1))})
	var ids []SessionID
	for range 3 {
		ids = append(ids, f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{}).ID)
	}
	if err := f.report(f.admin, ids[0], SessionRunning); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, f.report(f.admin, ids[1], SessionRunning), SessionCreated, false)
	f.wantReason(ids[1], fmt.Sprintf("agent_full [%s] 0", agent.ID))
	// A session that waits for an answer keeps its place, and goes on in it.
	for _, status := range []SessionStatus{SessionWaiting, SessionRunning, SessionRunning} {
		if err := f.report(f.admin, ids[0], status); err != nil {
			t.Fatal(err)
		}
	}
	wantConflict(t, f.report(f.admin, ids[1], SessionRunning), SessionCreated, false)
	if err := f.report(f.admin, ids[1], SessionCompleted); err != nil { // work of which nobody heard before
		t.Fatal(err)
	}
	if err := f.report(f.admin, ids[0], SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if err := f.report(f.admin, ids[2], SessionRunning); err != nil {
		t.Fatal(err)
	}
	f.verify()
}
