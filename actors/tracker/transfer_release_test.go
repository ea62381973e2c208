package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// A workspace that is exported between two batches of a release releases the rest of its
// sessions in the copy, but none whose issue has another open blocker, be it one that the file
// names behind the sessions. So does one that an earlier version exported, which did not name the
// rest.
func TestImport_GoesOnWithARelease(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	older := func(to *agentFixture) *agentFixture {
		return to.copiedIn(withoutTimers(t, to.exportedLines()), 100, 0, func(*agentFixture) {})
	}
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
	for _, copied := range []*agentFixture{f.copied(), f.copied().copied(), older(f)} {
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

// withoutTimers returns the lines of an export without those of timers.
func withoutTimers(t tester, lines [][]byte) [][]byte {
	t.Helper()
	var kept [][]byte
	counts := map[string]int64{}
	for _, line := range lines[:len(lines)-1] {
		var l importedLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == transferTimers.name {
			continue
		}
		counts[l.Type]++
		kept = append(kept, bytes.Replace(line, fmt.Appendf(nil, `{"n":%d,`, *l.N), fmt.Appendf(nil, `{"n":%d,`, len(kept)), 1))
	}
	end, err := json.Marshal(exportSummary{Type: exportEnd, Counts: counts, SHA256: fmt.Sprintf("%x", sha256.Sum256(bytes.Join(kept, nil)))})
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clip(kept), append(end, '\n'))
}
