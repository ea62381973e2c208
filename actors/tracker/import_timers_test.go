package tracker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// copied takes the export of the fleet's workspace into an empty workspace of another
// service, a few lines in each request, and returns the copy. Each request is sent twice.
func (f *agentFixture) copied() *agentFixture {
	f.Helper()
	return f.copiedIn(f.exportedLines(), 100, 0, func(*agentFixture) {})
}

// exportedLines returns the lines of an export of the fleet's workspace.
func (f *agentFixture) exportedLines() [][]byte {
	f.Helper()
	lines := bytes.SplitAfter(f.exported(f.home.Workspace.ID, &ExportIn{}, exportWindow), []byte{'\n'})
	return lines[:len(lines)-1]
}

// copiedIn is copied for some lines, with size of them in each request, in a service whose clock is
// ahead. It calls between after each request.
func (f *agentFixture) copiedIn(lines [][]byte, size int, ahead time.Duration, between func(to *agentFixture)) *agentFixture {
	f.Helper()
	w := newTestService(f.tester)
	w.now = f.now.Add(ahead)
	home := w.onboard("copy")
	to := &agentFixture{testService: w, home: home, admin: home.Token.Secret}
	for len(lines) > 0 {
		n := min(len(lines), size)
		for range 2 {
			to.run(to.admin, ImportLines, &ImportLinesIn{Body: bytes.Join(lines[:n], nil)})
		}
		lines = lines[n:]
		between(to)
	}
	to.verify()
	return to
}

// An import takes the subjects of every kind of work as the service makes them, and no others.
func TestImport_TakesTheSubjectsOfAllWork(t *testing.T) {
	t.Parallel()
	id := storage.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}
	long := strings.Repeat("\U0001F600", 255)
	work := cascade{issue: id, after: storage.ID(issueKey(id)), actor: EventActor{ID: long, Type: ActorAgent}}
	closed := happening{waitIssue, id, "", "2026-01-01T00:00:00.000Z"}
	merged := happening{waitPR, id, "merged", "2026-01-01T00:00:00.000Z"}
	place := storage.Key(nil).ID(id).Str(long).ID(id)
	ofIssue := budgetScope{usageOfIssue, id.String()}
	rows := map[string][]string{
		timerCloseChildren:    {work.subject()},
		timerCloseParent:      {(&cascade{issue: id, actor: EventActor{ID: System.ID, Type: System.Type}}).subject()},
		timerSessionFollowers: {id.String()},
		timerWhenReady:        {id.String()},
		timerScope: {
			scopeSubject(parkBudget, scopeWorkspace), scopeSubject(parkBudget, budgetScope{usageOfAgent, long}.String()),
			scopeSubject(parkBudget, budgetScope{usageOfProject, "a bridge"}.String()), scopeSubject(parkBudget, ofIssue.String()),
			scopeSubject(parkHold, scopeWorkspace), scopeSubject(parkHold, scopeAgent+long), scopeSubject(parkHold, scopeProvider+"p"),
		},
		timerBudgetEnd: {
			budgetEndSubject(place, budgetScope{kind: usageOfWorkspace}), budgetEndSubject(place, budgetScope{usageOfAgent, long}),
			budgetEndSubject(place, budgetScope{usageOfProject, "a bridge"}), budgetEndSubject(place, ofIssue),
		},
		timerConcurrency: {"deploy", fieldKey("repo:" + long)},
		timerSessionWake: {closed.subject(), merged.subject()},
	}
	hostile := []string{
		"", "x", id.String() + " ", "5 workspace", "006 workspace", "6 planet:mars", "7 issue:" + id.String(), "zz workspace", "00 provider:p", "00 agent:" + long + long + long + long + long + long,
		strings.Replace(work.subject(), "agent", "planet", 1), strings.Replace(closed.subject(), "2026", "yesterday", 1),
	}
	if parkBudget != 6 || parkHold != 7 {
		t.Fatal("the hostile subjects have other reasons")
	}
	w := newLineImport(t)
	timer := func(kind, subject string) error {
		return w.line("timer", fmt.Sprintf(`{"kind":%q,"subject":%q,"due":"2026-01-01T00:00:00.000Z"}`, kind, subject))
	}
	for kind := range transferredTimers {
		if len(rows[kind]) == 0 {
			t.Errorf("the test has no subject of kind %s", kind)
		}
		for _, subject := range rows[kind] {
			if err := timer(kind, subject); err != nil {
				t.Errorf("%s of %s: %v", kind, subject, err)
			}
		}
		for _, subject := range hostile {
			if kind == timerConcurrency && subject == "x" {
				continue
			}
			if err := timer(kind, subject); err == nil {
				t.Errorf("%s of %q is taken", kind, subject)
			}
		}
	}
	w.pass(time.Second)
	w.verify()
}

// A workspace that is exported while a used-up budget parks and ends its sessions goes on with
// that in the copy.
func TestImport_GoesOnWithAUsedUpBudget(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	in := PatchIssueIn{IssuePatch: IssuePatch{IssueFields: IssueFields{ProjectID: Some("bridge")}}}
	var first ClaimedSession
	for n := range maxBudgetEnded + 10 {
		issue := f.work(PriorityLow)
		in.ID = string(issue.ID)
		f.run(f.admin, PatchIssue, &in)
		first = f.start(issue, fmt.Sprint("agent-", n))
	}
	var queued SessionID
	for n := range maxReleased + 10 {
		queued = f.dispatch(first.Session.IssueID, DispatchIssueIn{AgentID: Some(fmt.Sprint("other-", n))}).ID
	}
	f.putBudget("project:bridge", 100, -1, BudgetTotal)
	f.beat(first, 101)
	text := f.exported(f.home.Workspace.ID, &ExportIn{}, exportWindow)
	for _, kind := range []string{timerScope, timerBudgetEnd} {
		if !bytes.Contains(text, []byte(`"kind":"`+kind+`"`)) {
			t.Errorf("the export has no timer of kind %s", kind)
		}
	}
	to := f.copied()
	to.pass(time.Second)
	if n := to.queue().Counts; n[SessionRunning] != 0 {
		t.Errorf("the copy has %v", n)
	}
	to.wantReason(queued, "budget [project:bridge] 0")
	to.verify()
}
