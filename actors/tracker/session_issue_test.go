package tracker

import (
	"fmt"
	"testing"
	"time"
)

func TestAssigned_DispatchesTheAgent(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.register(CreateAgentIn{Name: "A", Provider: Some("p")})
	count := func() (n int) {
		for _, s := range decode[SessionPage](t, f.run(f.admin, ListSessions, &ListSessionsIn{AgentID: Some(string(agent.ID))}).Body).Sessions {
			if s.Status == SessionCreated {
				n++
			}
		}
		return n
	}
	assignee := IssueFields{AssigneeID: Some(string(agent.ID))}
	first := decode[Issue](t, f.run(f.admin, CreateIssue, &CreateIssueIn{Title: "a", IssueFields: assignee}).Body)
	second, third := f.work(PriorityLow), f.work(PriorityLow)
	f.run(f.admin, BatchIssues, &BatchIssuesIn{IDs: []string{string(first.ID), string(second.ID), string(third.ID)}, Patch: IssuePatch{IssueFields: assignee}})
	if n := count(); n != 3 {
		t.Errorf("there are %d sessions", n)
	}
	// The answer to an assignment has the dispatched session.
	fourth := f.work(PriorityLow)
	reply := f.run("root", NewCommand[None, None]("assign", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		row, err := tx.issue(string(fourth.ID))
		if err != nil {
			return Reply{}, err
		}
		_, err = tx.changeIssue(row, &IssuePatch{IssueFields: assignee}, "")
		return Reply{Body: tx.dispatchedSession()}, err
	}), &None{})
	if s := decode[ShownSession](t, reply.Body); s.AgentID != string(agent.ID) || count() != 4 {
		t.Errorf("dispatched %s", reply.Body)
	}
	// A repeated assignment while the agent works on the issue dispatches nothing.
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(first.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{AssigneeID: Some("somebody")}}})
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(first.ID), IssuePatch: IssuePatch{IssueFields: assignee}})
	if n := count(); n != 4 {
		t.Errorf("there are %d sessions", n)
	}
	f.verify()
}

// A session is ended for its budget also where the agent that its issue is then assigned to gets no
// session, because the issue has as many as it may have.
func TestAssigned_EscalationOfAnIssueWithoutRoom(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	triager := string(f.register(CreateAgentIn{Name: "T"}).ID)
	f.run(f.admin, PatchTeam, &PatchTeamIn{ID: f.home.Team.ID, TriageAssigneeID: Some(triager)})
	issue := f.work(PriorityLow)
	f.putBudget("agent:spender", 1, -1, BudgetTotal)
	spender := f.start(issue, "spender")
	for n := range maxActiveSessions - 2 {
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(n))})
	}
	slow := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("slow"), SessionOptions: SessionOptions{MaxDuration: Some(int64(1))}})
	f.beat(spender, 2)
	wantEscalated := func(id SessionID, assigned bool) {
		t.Helper()
		got := f.issueNow(issue.ID)
		if s := f.session(id); s.Status != SessionCanceled || got.Status != StatusTriage || fromPtr(got.AssigneeID) != triager {
			t.Errorf("the session is %s, the issue %s and assigned to %s", s.Status, got.Status, fromPtr(got.AssigneeID))
		}
		list := decode[SessionPage](t, f.run(f.admin, ListSessions, &ListSessionsIn{AgentID: Some(triager)}).Body).Sessions
		if len(list) == 1 != assigned {
			t.Errorf("the assignee has %d sessions", len(list))
		}
	}
	wantEscalated(spender.Session.ID, false)
	again := func() {
		f.run(f.admin, PatchIssue, patchIn(issue.ID, "", IssuePatch{IssueFields: IssueFields{Status: Some(StatusTodo), AssigneeID: Opt[string]{Set: true, Null: true}}}))
	}
	again()
	f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("more")})
	f.pass(time.Minute)
	wantEscalated(slow.ID, false)
	// An issue that has room is dispatched, and any other write that has no room is refused.
	again()
	f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("more")})
	_, err := f.try(f.admin, PatchIssue, patchIn(issue.ID, "", IssuePatch{IssueFields: IssueFields{Status: Some(StatusTriage)}}))
	wantCode(t, err, CodeConflict)
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: f.claimOne().Session.ID})
	last := f.claim(ClaimSessionsIn{LeaseSeconds: 3600})[0]
	f.putBudget("agent:"+last.Session.AgentID, 1, -1, BudgetTotal)
	f.beat(last, 2)
	wantEscalated(last.Session.ID, true)
	f.verify()
}

func TestDeleteIssue_PartsWithManySessions(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	const n = maxBudgetRecords + 20
	var last DispatchedSession
	for i := range n {
		last = decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID), AgentID: Some(fmt.Sprint("a", i))}).Body)
	}
	w.run(&w.ann, ClaimSessions, &ClaimSessionsIn{Limit: 50})
	_, times, err := w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if err != nil || times != 2 {
		t.Fatalf("deleted in %d steps: %v", times, err)
	}
	w.verify()
	reply, err := w.ask(&w.ann, SessionByID, &SessionByIDIn{ID: last.ID})
	if err != nil {
		t.Fatal(err)
	}
	if s := decode[ShownSession](t, reply.Body); s.Status != SessionCanceled {
		t.Errorf("the session is %s", s.Status)
	}
	if got := decode[ClaimedSessions](t, w.run(&w.ann, ClaimSessions, &ClaimSessionsIn{}).Body).Sessions; len(got) != 0 {
		t.Errorf("claimed %d sessions of a deleted issue", len(got))
	}
}

func TestDispatch_NoMoreThanAnIssueCanHave(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	for range maxActiveSessions {
		w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID)})
	}
	_, _, err := w.try(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID)})
	wantCode(t, err, CodeConflict)
	// The largest number of sessions can be moved in the queue at once.
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{Priority: Some(PriorityUrgent)}})
	w.verify()
}

func TestClaim_RepeatedUnderItsKey(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	first := f.must(f.admin, f.home.Workspace.ID, ClaimSessions, &ClaimSessionsIn{}, "key")
	again := f.must(f.admin, f.home.Workspace.ID, ClaimSessions, &ClaimSessionsIn{}, "key")
	if !again.Replayed || string(first.Body) != string(again.Body) {
		t.Error("the repeat is not the first answer")
	}
	lane := decode[ClaimedSessions](t, again.Body).Sessions[0]
	f.run(lane.LaneToken, Heartbeat, &HeartbeatIn{ID: lane.Session.ID})
	// A claim that waits has no answer yet.
	f.claimOne()
	reply := f.must(f.admin, f.home.Workspace.ID, ClaimSessions, &ClaimSessionsIn{Wait: 5}, "other")
	if reply.Wait == nil {
		t.Fatalf("claimed %s", reply.Body)
	}
	third := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	reply = f.must(f.admin, f.home.Workspace.ID, ClaimSessions, &ClaimSessionsIn{Wait: 5}, "other")
	if got := decode[ClaimedSessions](t, reply.Body).Sessions; len(got) != 1 || got[0].Session.ID != third.ID {
		t.Errorf("claimed %s", reply.Body)
	}
}
