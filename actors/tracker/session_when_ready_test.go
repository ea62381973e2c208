package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
)

// queuedBehind is the queuedAfter of some ids; of one without a list.
func queuedBehind(ids ...string) json.RawMessage {
	var value any = ids
	if len(ids) == 1 {
		value = ids[0]
	}
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

func (f *agentFixture) close(id IssueID) {
	f.Helper()
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(id), IssuePatch: IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}}})
}

func (f *agentFixture) block(blocker, blocked IssueID) {
	f.Helper()
	f.run(f.admin, PutRelation, &RelationIn{ID: string(blocker), Type: RelationBlocks, OtherID: string(blocked)})
}

func TestWhenReady_WaitsUntilTheIssueIsNotBlocked(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first, second, work := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
	f.block(first.ID, work.ID)
	f.block(second.ID, work.ID)
	waits := f.dispatch(work.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	free := f.dispatch(first.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	heedless := f.dispatch(work.ID, DispatchIssueIn{AgentID: Some("other")})
	if waits.Status != SessionWaiting || !waits.WhenReady || free.Status != SessionCreated {
		t.Fatalf("dispatched as %s and %s", waits.Status, free.Status)
	}
	if _, err := f.try(f.admin, ReplyToSession, &ReplyToSessionIn{ID: waits.ID, Message: "go"}); err == nil {
		t.Error("a reply made a session run whose issue is blocked")
	}
	if got := f.claim(ClaimSessionsIn{Limit: 50, LeaseSeconds: 3600}); claimedIDs(got) != fmt.Sprint([]SessionID{free.ID, heedless.ID}) {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	f.close(first.ID)
	f.restart()
	f.verify()
	if got := f.session(waits.ID).Status; got != SessionWaiting {
		t.Fatalf("is %s behind one open blocker", got)
	}
	f.close(second.ID)
	f.verify()
	if got := f.claimOne(); got.Session.ID != waits.ID {
		t.Fatalf("claimed %s", got.Session.ID)
	}
}

func TestWhenReady_IsCanceledIfTheIssueIsClosedFirst(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first, work := f.work(PriorityLow), f.work(PriorityLow)
	f.block(first.ID, work.ID)
	waits := f.dispatch(work.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	f.close(work.ID)
	if got := f.session(waits.ID).Status; got != SessionCanceled {
		t.Fatalf("is %s", got)
	}
	f.verify()
}

// A closed issue that is blocked keeps no session waiting, as one that is not blocked. Nor does the end
// of the block cancel one that waits for something else.
func TestWhenReady_OfAClosedIssue(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	for _, isBlocked := range []bool{false, true} {
		blocker, work, other := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
		if isBlocked {
			f.block(blocker.ID, work.ID)
		}
		f.close(work.ID)
		before := f.dispatch(other.ID, DispatchIssueIn{})
		at := f.dispatch(work.ID, DispatchIssueIn{AgentID: Some("a"), SessionOptions: SessionOptions{WhenReady: true}})
		behind := f.dispatch(work.ID, DispatchIssueIn{AgentID: Some("b"), SessionOptions: SessionOptions{WhenReady: true, QueuedAfter: queuedBehind(string(before.ID))}})
		last := f.dispatch(work.ID, DispatchIssueIn{AgentID: Some("c"), SessionOptions: SessionOptions{WhenReady: true, QueuedAfter: queuedBehind(string(behind.ID))}})
		wantStatus := func(id SessionID, want SessionStatus) {
			t.Helper()
			if got := f.session(id).Status; got != want {
				t.Errorf("blocked %t: the session is %s, want %s", isBlocked, got, want)
			}
		}
		wantStatus(at.ID, SessionCreated)
		wantStatus(behind.ID, SessionWaiting)
		if err := f.report(f.admin, before.ID, SessionCompleted); err != nil {
			t.Fatal(err)
		}
		wantStatus(behind.ID, SessionCreated)
		f.close(blocker.ID)
		wantStatus(at.ID, SessionCreated)
		wantStatus(last.ID, SessionWaiting)
		if err := f.report(f.admin, behind.ID, SessionCompleted); err != nil {
			t.Fatal(err)
		}
		wantStatus(last.ID, SessionCreated)
		f.verify()
	}
}

// A session of a closed issue that waits for another session goes on waiting in a copy of the
// workspace.
func TestWhenReady_OfAClosedIssueInACopy(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	work, other := f.work(PriorityLow), f.work(PriorityLow)
	f.close(work.ID)
	before := f.dispatch(other.ID, DispatchIssueIn{})
	behind := f.dispatch(work.ID, DispatchIssueIn{AgentID: Some("b"), SessionOptions: SessionOptions{WhenReady: true, QueuedAfter: queuedBehind(string(before.ID))}})
	c := f.copied()
	c.pass(time.Second)
	if got := c.session(behind.ID).Status; got != SessionWaiting {
		t.Errorf("is %s in the copy", got)
	}
	c.verify()
}

// A session that is dispatched after its issue was closed waits on for another session, though a timer still
// cancels those that were there before, which are more than one command moves.
func TestWhenReady_DispatchedDuringAClosing(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	blocker, work, other := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
	f.block(blocker.ID, work.ID)
	before := f.dispatch(other.ID, DispatchIssueIn{})
	dispatch := func(n int, options SessionOptions) (ids []SessionID) {
		options.WhenReady = true
		for range n {
			ids = append(ids, f.dispatch(work.ID, DispatchIssueIn{SessionOptions: options}).ID)
		}
		return ids
	}
	behind := SessionOptions{QueuedAfter: queuedBehind(string(before.ID))}
	old := append(dispatch(maxUnblockedSessions/2, SessionOptions{}), dispatch(2*maxUnblockedSessions, behind)...)
	f.close(work.ID)
	late := dispatch(maxUnblockedSessions+5, behind)
	f.pass(time.Second)
	for _, id := range old {
		if got := f.session(id).Status; got != SessionCanceled {
			t.Errorf("a session that was there at the closing is %s", got)
		}
	}
	for _, id := range late {
		if got := f.session(id).Status; got != SessionWaiting {
			t.Errorf("a session that was dispatched after the closing is %s: %v", got, f.said(id))
		}
	}
	f.verify()
}

// The clock of an owner may be behind that of the node that owned the workspace before it. All times are that of
// the last id then, also that of a dispatch seconds after the closing; or ids are still of an hour in which the clock
// was ahead.
func TestWhenReady_DispatchedDuringAClosingWithAClockBehind(t *testing.T) {
	t.Parallel()
	for _, by := range [...]time.Duration{5 * time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) { t.Parallel(); testDispatchedDuringAClosing(t, by) })
	}
}

// testDispatchedDuringAClosing closes an issue when the clock is behind by so much.
func testDispatchedDuringAClosing(t *testing.T, by time.Duration) {
	f := newAgentFixture(t)
	blocker, work, other := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
	f.block(blocker.ID, work.ID)
	before := f.dispatch(other.ID, DispatchIssueIn{})
	behind := SessionOptions{QueuedAfter: queuedBehind(string(before.ID)), WhenReady: true}
	var old []SessionID
	for range maxUnblockedSessions + 10 {
		old = append(old, f.dispatch(work.ID, DispatchIssueIn{SessionOptions: behind}).ID)
	}
	f.now = f.now.Add(-by)
	f.close(work.ID)
	f.now = f.now.Add(3 * time.Second)
	late := f.dispatch(work.ID, DispatchIssueIn{SessionOptions: behind}).ID
	f.pass(10 * time.Second)
	for _, id := range old {
		if got := f.session(id).Status; got != SessionCanceled {
			t.Errorf("a session that was there at the closing is %s", got)
		}
	}
	if got := f.session(late).Status; got != SessionWaiting {
		t.Errorf("a session that was dispatched after the closing is %s: %v", got, f.said(late))
	}
	f.verify()
}

// An issue that is opened again before the timer has canceled the last of its waiting sessions keeps those that
// are left.
func TestWhenReady_OpenedDuringAClosing(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	blocker, work := f.work(PriorityLow), f.work(PriorityLow)
	f.block(blocker.ID, work.ID)
	const left = 5
	for range maxUnblockedSessions + left {
		f.dispatch(work.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	}
	f.close(work.ID)
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(work.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{Status: Some(StatusTodo)}}})
	f.pass(time.Second)
	if got := f.queue().Counts[SessionWaiting]; got != left {
		t.Errorf("%d sessions wait, want %d", got, left)
	}
	f.verify()
	f.close(blocker.ID)
	if got := f.queue().Counts[SessionCreated]; got != left {
		t.Errorf("%d sessions can be claimed, want %d", got, left)
	}
	f.verify()
}

// A session that is retried before the timer has moved the last of those queued behind it has these wait for its
// next end.
func TestQueuedAfter_RetriedBeforeAllAreMoved(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	work := f.work(PriorityLow)
	before := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	const left = 5
	for range maxFollowers + left {
		f.dispatch(work.ID, DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(before.ID))}})
	}
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: before.ID})
	f.run(f.admin, RetrySession, &RetrySessionIn{ID: before.ID})
	f.pass(time.Second)
	f.verify()
	if got := f.queue().Counts[SessionWaiting]; got != left {
		t.Fatalf("%d sessions wait, want %d", got, left)
	}
	if err := f.report(f.admin, before.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if got := f.queue().Counts[SessionCreated]; got != left {
		t.Errorf("%d sessions can be claimed, want %d", got, left)
	}
	f.verify()
}

// More sessions than a command moves are released by several.
func TestWhenReady_ManyAtOnce(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first, work := f.work(PriorityLow), f.work(PriorityLow)
	f.block(first.ID, work.ID)
	const all = maxFollowers + 20
	for i := range all {
		f.dispatch(work.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(i)), SessionOptions: SessionOptions{WhenReady: true}})
	}
	f.close(first.ID)
	f.pass(time.Second)
	f.verify()
	got := 0
	for n := -1; n != got; {
		n = got
		got += len(f.claim(ClaimSessionsIn{Limit: 50}))
	}
	if got != all {
		t.Fatalf("claimed %d of %d", got, all)
	}
}

func TestQueuedAfter_AListMustAllComplete(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	a, b := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{}), f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	c := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(a.ID), string(b.IssueID), string(a.ID))}})
	d := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(b.ID), string(c.ID))}})
	f.verify()
	for id, want := range map[SessionID]SessionStatus{a.ID: SessionWaiting, b.ID: SessionCreated} {
		if err := f.report(f.admin, id, SessionCompleted); err != nil {
			t.Fatal(err)
		}
		_ = want
		f.verify()
	}
	if got := f.session(c.ID).Status; got != SessionCreated {
		t.Fatalf("is %s after all completed", got)
	}
	if got := f.session(d.ID).Status; got != SessionWaiting {
		t.Fatalf("is %s after one of two completed", got)
	}
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: c.ID})
	f.verify()
	if got := f.session(d.ID).Status; got != SessionCanceled {
		t.Fatalf("is %s after one was canceled", got)
	}
	late := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(a.ID), string(c.ID))}})
	if late.Status != SessionCanceled {
		t.Fatalf("is %s behind a canceled session", late.Status)
	}
	f.verify()
}

func TestQueuedAfter_NamesEveryUnknownID(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	a := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	for ids, paths := range map[string][]string{
		`["zz", "` + string(a.ID) + `", "yy", "zz"]`: {"queuedAfter[0]", "queuedAfter[2]", "queuedAfter[3]"},
		`["zz"]`: {"queuedAfter[0]"},
		`"zz"`:   {"queuedAfter"},
	} {
		_, err := f.try(f.admin, DispatchIssue, &DispatchIssueIn{ID: string(a.IssueID), SessionOptions: SessionOptions{QueuedAfter: []byte(ids)}})
		wantCode(t, err, CodeBadRequest, paths...)
	}
	var faults Faults
	(&DispatchIssueIn{SessionOptions: SessionOptions{QueuedAfter: queuedBehind("", "zz", strings.Repeat("x", 256))}}).Validate(&faults)
	wantCode(t, faults.Err(), CodeBadRequest, "queuedAfter[0]", "queuedAfter[2]")
	f.verify()
}

// Closing the issue cancels a line of sessions, each of which also waits for the issue.
func TestWhenReady_ALineThatWaitsForAnIssueThatIsClosed(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	blocker, work := f.work(PriorityLow), f.work(PriorityLow)
	f.block(blocker.ID, work.ID)
	first := f.dispatch(work.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true}})
	line := []SessionID{first.ID}
	for range 3 {
		next := f.dispatch(work.ID, DispatchIssueIn{SessionOptions: SessionOptions{WhenReady: true, QueuedAfter: queuedBehind(string(line[len(line)-1]))}})
		line = append(line, next.ID)
	}
	f.close(work.ID)
	for _, id := range line {
		if got := f.session(id).Status; got != SessionCanceled {
			t.Errorf("session %s is %s", id, got)
		}
	}
	f.verify()
}
