package tracker

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// suspendFixture has an issue of a project with many sessions in the queue, and a session of
// another issue behind them. A budget of 1 of the issue or the project is used up.
type suspendFixture struct {
	*agentFixture
	issue  Issue
	queued []DispatchedSession
	behind DispatchedSession
}

func newSuspendFixture(t *testing.T, sessions int, options SessionOptions) *suspendFixture {
	f := &suspendFixture{agentFixture: newAgentFixture(t)}
	f.issue = f.work(PriorityHigh)
	f.setProject(f.issue.ID, Some("bridge"))
	spent := f.start(f.issue, "spender")
	f.beat(spent, 2)
	if err := f.report(spent.LaneToken, spent.Session.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	for n := range sessions {
		f.queued = append(f.queued, f.dispatch(f.issue.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint("a", n)), Provider: Some("p"), SessionOptions: options}))
	}
	f.behind = f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("z"), Provider: Some("q")})
	return f
}

func (f *agentFixture) setProject(id IssueID, project Opt[string]) {
	f.Helper()
	f.run(f.admin, PatchIssue, patchIn(id, "", IssuePatch{IssueFields: IssueFields{ProjectID: project}}))
}

// wakesAll reports whether fn wakes claims of every agent and provider.
func (f *agentFixture) wakesAll(fn func()) bool {
	return slices.Contains(f.wakesOf(fn), Wake{Each: true})
}

// While the sessions of a scope are being parked, claims get those behind them, and are woken when
// the queue has no more sessions of the scope.
func TestSuspended_ClaimsPassOverASessionThatIsNotParkedYet(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"provider", "project", "issue"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			sessions, options := maxReleased+30, SessionOptions{}
			if kind == "issue" { // a command parks as many as it can write
				sessions, options.ResultSchema = 200, []byte(`{"description": "`+strings.Repeat("x", 30<<10)+`"}`)
			}
			f := newSuspendFixture(t, sessions, options)
			switch kind {
			case "provider":
				f.holdScope("provider:p", Opt[string]{})
			case "project":
				f.putBudget("project:bridge", 1, -1, BudgetTotal)
			case "issue":
				f.putBudget("issue:"+string(f.issue.ID), 1, -1, BudgetTotal)
			}
			if n := f.rows(sessionQueue); n <= 1 {
				t.Fatalf("%d sessions are queued after the first command", n)
			}
			if got := f.claim(ClaimSessionsIn{}); claimedIDs(got) != fmt.Sprint([]SessionID{f.behind.ID}) {
				t.Errorf("claimed %s, want the session behind the scope", claimedIDs(got))
			}
			f.verify()
			if !f.wakesAll(func() { f.pass(time.Second) }) {
				t.Error("no claim is woken when all are parked")
			}
			if n := f.rows(sessionQueue); n != 0 {
				t.Errorf("%d sessions are queued", n)
			}
			f.verify()
		})
	}
}

// A scope that is resumed while its sessions are being parked leaves sessions in the queue that
// claims have passed over.
func TestSuspended_ResumedBeforeAllWereParked(t *testing.T) {
	t.Parallel()
	f := newSuspendFixture(t, maxReleased+30, SessionOptions{})
	f.holdScope("workspace", Opt[string]{})
	if !f.wakesAll(func() { f.unhold("workspace") }) {
		t.Error("no claim is woken for the sessions that were not parked yet")
	}
	f.pass(time.Second)
	f.holdScope("agent:a0", Opt[string]{})
	if f.wakesAll(func() { f.unhold("agent:a0"); f.pass(time.Second) }) {
		t.Error("claims are woken although all were parked at once")
	}
	f.verify()
}

// The sessions of an issue that leaves a suspended project, before all were parked, can be claimed.
func TestSuspended_IssueLeavesBeforeAllWereParked(t *testing.T) {
	t.Parallel()
	f := newSuspendFixture(t, maxSeenAnew+200, SessionOptions{ResultSchema: []byte(`{"description": "` + strings.Repeat("x", 30<<10) + `"}`)})
	f.setProject(f.issue.ID, Opt[string]{Set: true, Null: true})
	f.putBudget("project:bridge", 1, -1, BudgetTotal)
	f.setProject(f.issue.ID, Some("bridge"))
	if n := f.rows(sessionQueue); n <= 1 {
		t.Fatalf("%d sessions are queued after the first command", n)
	}
	if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{f.behind.ID}) {
		t.Errorf("claimed %s, want the session behind the project", claimedIDs(got))
	}
	f.setProject(f.issue.ID, Opt[string]{Set: true, Null: true})
	if !f.wakesAll(func() { f.pass(time.Second) }) {
		t.Error("no claim is woken for the sessions that were not parked yet")
	}
	if n := f.rows(sessionQueue); n != len(f.queued) {
		t.Errorf("%d sessions are queued, want %d", n, len(f.queued))
	}
	f.verify()
}

// Claims that have parked as many sessions of a full key as they may are woken when all are parked.
func TestConcurrencyKeys_ClaimsAreWokenWhenAllAreParked(t *testing.T) {
	t.Parallel()
	f := newSuspendFixture(t, maxReleased+30, SessionOptions{ConcurrencyKeys: Some([]string{"k"})})
	first := f.claimOne()
	if n := f.rows(sessionQueue); n <= 1 {
		t.Fatalf("%d sessions are queued after the claim", n)
	}
	if !f.wakesAll(func() { f.pass(time.Millisecond) }) {
		t.Error("no claim is woken when all are parked")
	}
	f.verify()
	// A place that becomes free before that leaves sessions in the queue, too.
	f.limitKey("k", 1000)
	f.pass(time.Second)
	f.limitKey("k", 1)
	if err := f.report(first.LaneToken, first.Session.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if !f.wakesAll(func() { f.pass(time.Millisecond) }) {
		t.Error("no claim is woken when the key has a place again")
	}
	f.verify()
}

// Issues may be long, and a project whose budget is used up has each claim ask for the project of an
// issue. Not parallel: it counts the memory that the process allocates.
func TestSuspended_ClaimsDecodeNoIssues(t *testing.T) {
	f := newAgentFixture(t)
	private := f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "P", Key: "PRV", IsPublic: Some(false)})
	text := strings.Repeat("Some words of a description. ", 4000)
	const hidden = 20
	var last Issue
	for range hidden {
		last = decode[Issue](t, f.run(f.admin, CreateIssue, &CreateIssueIn{Title: "Work", IssueFields: IssueFields{TeamID: Some(private.ID), Description: Some(text)}}).Body)
		f.dispatch(last.ID, DispatchIssueIn{})
	}
	f.setProject(last.ID, Some("tunnel"))
	spent := f.work(PriorityHigh)
	f.setProject(spent.ID, Some("bridge"))
	f.beat(f.start(spent, "spender"), 2)
	f.putBudget("project:bridge", 1, -1, BudgetTotal)
	_, member := f.member(f.home, RoleMember, "write")
	allocates := func(fn func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fn()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if got := allocates(func() { f.run(member, ClaimSessions, &ClaimSessionsIn{}) }); got > hidden*uint64(len(text))/2 {
		t.Errorf("a claim that passes over %d issues of %d bytes allocates %d", hidden, len(text), got)
	}
	v := View{View: f.view(f.home.Workspace.ID.raw())}
	if got := allocates(func() {
		if project, err := v.projectOf(last.id()); project != "tunnel" || err != nil {
			t.Errorf("the project is %q, %v", project, err)
		}
	}); got > uint64(len(text))/2 {
		t.Errorf("a look for the project of an issue of %d bytes allocates %d", len(text), got)
	}
}
