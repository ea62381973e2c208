package tracker

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// A workspace that is exported between two batches of a release releases the rest of its
// sessions in the copy, but none whose issue has another open blocker, be it one that the file
// names behind the sessions.
func TestImport_GoesOnWithARelease(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	top, other := f.work(PriorityLow), f.work(PriorityLow)
	var waiting []SessionID
	for range 2 * maxUnblockedSessions {
		issue := f.work(PriorityLow)
		f.block(top.ID, issue.ID)
		for n := range 2 {
			waiting = append(waiting, f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint("agent-", n)), SessionOptions: SessionOptions{WhenReady: true}}).ID)
		}
	}
	blocked := f.session(waiting[len(waiting)-1]).IssueID
	still := f.work(PriorityLow)
	f.block(top.ID, still.ID)
	keeps := f.dispatch(still.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	f.block(other.ID, still.ID)
	f.close(top.ID)
	f.block(other.ID, blocked) // which ends what was left to do for it
	if n := f.queue().Counts[SessionWaiting]; n < maxUnblockedSessions {
		t.Fatalf("the first batch leaves %d sessions", n)
	}
	if a, b := f.exported(f.home.Workspace.ID, &ExportIn{}, exportWindow), f.exported(f.home.Workspace.ID, &ExportIn{}, 7); !bytes.Equal(a, b) {
		t.Error("with another window the export differs")
	}
	for _, copied := range []*agentFixture{f.copied(), f.copied().copied()} {
		copied.pass(time.Second)
		copied.verify()
		for _, id := range append(waiting, keeps.ID) {
			s := copied.session(id)
			want := SessionCreated
			if s.IssueID == blocked || s.IssueID == still.ID {
				want = SessionWaiting
			}
			if s.Status != want {
				t.Errorf("session %s is %s, want %s", id, s.Status, want)
			}
		}
	}
}
