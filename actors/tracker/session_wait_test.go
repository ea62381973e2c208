package tracker

import (
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// waits has the only session claimed, and waiting.
func (f *agentFixture) waits(in WaitForIn) (ClaimedSession, ShownSession) {
	f.Helper()
	c := f.claimOne()
	reply := f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: c.Session.ID, Status: Some(SessionWaiting), WaitFor: Some(in)})
	return c, decode[ShownSession](f, reply.Body)
}

func anyOf(list ...WaitCondition) WaitForIn { return WaitForIn{Any: Some(list)} }
func allOf(list ...WaitCondition) WaitForIn { return WaitForIn{All: Some(list)} }

func TestWait_EveryCondition(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	other := f.work(PriorityLow)
	elsewhere := f.dispatch(other.ID, DispatchIssueIn{AgentID: Some("z")})
	patch := func(id IssueID, fields IssuePatch) {
		f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(id), IssuePatch: fields})
	}
	closed := func(id IssueID) { patch(id, IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}}) }
	for name, row := range map[string]struct {
		in   WaitForIn
		meet func(own IssueID)
	}{
		"a session": {anyOf(WaitCondition{Session: string(elsewhere.ID)}), func(IssueID) { f.run(f.admin, CancelSession, &CancelSessionIn{ID: elsewhere.ID}) }},
		"an issue":  {anyOf(WaitCondition{Issue: string(other.ID)}), func(IssueID) { closed(other.ID) }},
		"a time":    {anyOf(WaitCondition{After: string(At(f.now.Add(time.Hour)))}), func(IssueID) { f.pass(2 * time.Hour) }},
		"a pull request": {allOf(WaitCondition{PR: "closed"}), func(own IssueID) {
			patch(own, IssuePatch{PRState: Some("merged")})
		}},
		"any of two": {anyOf(WaitCondition{Reply: true}, WaitCondition{PR: "merged"}), func(own IssueID) {
			patch(own, IssuePatch{PRState: Some("merged")})
		}},
	} {
		issue := f.work(PriorityUrgent)
		s := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
		c, shown := f.waits(row.in)
		if name == "a session" && shown.Status != SessionWaiting {
			t.Fatalf("%s: it is %s", name, shown.Status)
		}
		f.verify()
		wantConflict(t, f.report(c.LaneToken, s.ID, SessionCompleted), shown.Status, false)
		wantConflict(t, f.report(f.admin, s.ID, SessionRunning), SessionWaiting, false)
		row.meet(issue.ID)
		f.verify()
		if got := f.session(s.ID); got.Status != SessionCreated {
			t.Errorf("%s: the session is %s", name, got.Status)
		}
		next := f.claim(ClaimSessionsIn{AgentID: Some("a")})
		if len(next) != 1 || len(next[0].WokenBy) != 1 || next[0].Attempt != 1 || *next[0].LastAttempt.End != AttemptWaited {
			t.Fatalf("%s: claimed %+v", name, next)
		}
		f.run(next[0].LaneToken, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionCompleted)})
		f.verify()
		if name == "an issue" {
			patch(other.ID, IssuePatch{IssueFields: IssueFields{Status: Some(StatusTodo)}})
		}
	}
}

func TestWait_RepliesAllAndAtOnce(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	s := f.dispatch(issue.ID, DispatchIssueIn{})
	// No children, and a time that has passed: it is woken at once.
	_, shown := f.waits(allOf(WaitCondition{Children: true}, WaitCondition{After: "2020-01-01t00:00:00z"}))
	if shown.Status != SessionCreated {
		t.Fatalf("it is %s", shown.Status)
	}
	if c, shown := f.waits(allOf(WaitCondition{Reply: true}, WaitCondition{PR: "merged"})); len(c.WokenBy) != 2 || c.WokenBy[1].Condition.After != "2020-01-01T00:00:00Z" || shown.Status != SessionWaiting {
		t.Fatalf("woken by %+v, now %s", c.WokenBy, shown.Status)
	}
	reply := func() { f.run(f.admin, ReplyToSession, &ReplyToSessionIn{ID: s.ID, Message: "Yes."}) }
	reply()
	if got := f.session(s.ID); got.Status != SessionWaiting {
		t.Fatalf("after one of two it is %s", got.Status)
	}
	f.verify()
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{PRState: Some("merged")}})
	c, shown := f.waits(anyOf(WaitCondition{After: string(At(f.now.Add(24 * time.Hour)))}))
	if len(c.WokenBy) != 1 || c.WokenBy[0].Condition.PR != "merged" || shown.Status != SessionWaiting {
		t.Errorf("woken by %+v", c.WokenBy)
	}
	reply() // is not waited for
	if got := f.session(s.ID); got.Status != SessionWaiting {
		t.Errorf("after a reply it is %s", got.Status)
	}
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: s.ID})
	f.pass(48 * time.Hour)
	f.verify()
}

func TestWait_RefusesWhatCantBe(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	wait := func(credential string, in WaitForIn) error {
		_, err := f.try(credential, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting), WaitFor: Some(in)})
		return err
	}
	wantConflict(t, wait(f.admin, anyOf(WaitCondition{Reply: true})), SessionCreated, false)
	lane := f.claimOne().LaneToken
	wantCode(t, wait(lane, anyOf(WaitCondition{Session: string(s.ID)})), CodeBadRequest, "waitFor.any[0].session")
	wantCode(t, wait(lane, allOf(WaitCondition{Reply: true}, WaitCondition{Issue: "x"}, WaitCondition{Session: "y"})), CodeBadRequest, "waitFor.all[1].issue", "waitFor.all[2].session")
	if got := f.session(s.ID); got.Status != SessionRunning {
		t.Errorf("it is %s", got.Status)
	}
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: s.ID})
	wantCode(t, wait(f.admin, anyOf(WaitCondition{Session: "none"})), CodeBadRequest, "waitFor.any[0].session")
	wantConflict(t, wait(f.admin, anyOf(WaitCondition{Reply: true})), SessionCanceled, false)
	f.verify()
}

// More sessions than a batch carries wait for one issue, which is opened again at once.
func TestWait_ManyForOneIssue(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	const n = maxFollowers + 30
	other := f.work(PriorityLow)
	for range n {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
		f.waits(anyOf(WaitCondition{Issue: string(other.ID)}))
	}
	for _, status := range []IssueStatus{StatusDone, StatusTodo} {
		f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(other.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{Status: Some(status)}}})
	}
	f.verify()
	f.pass(time.Second)
	got := 0
	for range 6 {
		got += len(f.claim(ClaimSessionsIn{Limit: 50}))
	}
	if got != n {
		t.Errorf("claimed %s of %d", fmt.Sprint(got), n)
	}
	f.verify()
}

// More sessions than two batches carry wait for two issues that one write closes: all of them are
// told of both.
func TestWait_ManyForTwoThings(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	const n = 2*maxFollowers + 30
	ids := []string{string(f.work(PriorityLow).ID), string(f.work(PriorityLow).ID)}
	for range n {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
		f.waits(allOf(WaitCondition{Issue: ids[0]}, WaitCondition{Issue: ids[1]}))
	}
	f.run(f.admin, BatchIssues, &BatchIssuesIn{IDs: ids, Patch: IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}}})
	f.verify()
	f.pass(time.Second)
	told := map[int]int{}
	for range n/50 + 1 {
		for _, c := range f.claim(ClaimSessionsIn{Limit: 50}) {
			told[len(c.WokenBy)]++
		}
	}
	if told[2] != n || len(told) != 1 {
		t.Errorf("sessions by the number of conditions that they were told of: %v, want %d of 2", told, n)
	}
	v := View{View: f.view(f.home.Workspace.ID.raw())}
	if keys, err := v.rowKeys(timerTable, storage.Key(nil).Str(timerSessionWake), 1); err != nil || len(keys) != 0 {
		t.Errorf("timers that wake sessions: %q, %v", keys, err)
	}
	f.verify()
}

// A session waits behind more sessions of its issue than a batch carries, which wait for
// another state of the same pull request.
func TestWait_BehindManyForAnotherState(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	patch := func(state string) {
		f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{PRState: Some(state)}})
	}
	var first SessionID
	for n := range 2*maxFollowers + 10 {
		s, state := f.dispatch(issue.ID, DispatchIssueIn{}), "merged"
		if n == 0 {
			first, state = s.ID, "closed"
		}
		f.waits(allOf(WaitCondition{PR: state}))
	}
	patch("closed")
	if got := f.session(first); got.Status != SessionCreated {
		t.Errorf("the session is %s", got.Status)
	}
	v := View{View: f.view(f.home.Workspace.ID.raw())}
	if keys, err := v.rowKeys(timerTable, storage.Key(nil).Str(timerSessionWake), 1); err != nil || len(keys) != 0 {
		t.Errorf("timers that wake sessions: %q, %v", keys, err)
	}
	f.verify()
	if got := f.claim(ClaimSessionsIn{Limit: 50}); len(got) != 1 || len(got[0].WokenBy) != 1 {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: first})
	patch("merged")
	f.pass(time.Second)
	counts := decode[QueueSummary](t, f.run(f.admin, ReadQueue, &None{}).Body).Counts
	if counts[SessionCreated] != 2*maxFollowers+9 {
		t.Errorf("woken: %v", counts)
	}
	f.verify()
}

// Conditions of one kind about one thing are one entry of the index, and one in the bytes that the
// workspace stores.
func TestWait_ForTheSameThingTwice(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	s := f.dispatch(issue.ID, DispatchIssueIn{})
	for _, end := range []func(){
		func() {
			f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{PRState: Some("closed")}})
		},
		func() { f.run(f.admin, CancelSession, &CancelSessionIn{ID: s.ID}) },
	} {
		c := f.claimOne()
		f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting), WaitFor: Some(WaitForIn{Any: Some([]WaitCondition{{PR: "merged"}, {PR: "closed"}})})})
		f.verify()
		end()
		f.verify()
		f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{PRState: Some("open")}})
	}
	if got := f.session(s.ID); got.Status != SessionCanceled {
		t.Errorf("the session is %s", got.Status)
	}
}
