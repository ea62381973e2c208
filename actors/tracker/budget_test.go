package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func (f *agentFixture) putBudget(scope string, cost, tokens int64, period BudgetPeriod) Budget {
	f.Helper()
	in := PutBudgetIn{BudgetIn: BudgetIn{scope}, Period: period}
	if cost >= 0 {
		in.CostMicros = Some(cost)
	}
	if tokens >= 0 {
		in.Tokens = Some(tokens)
	}
	return decode[ShownBudget](f, f.run(f.admin, PutBudget, &in).Body).Budget
}

// budgetText is what a session may still use, as text.
func budgetText(b *LaneBudget) string {
	if b == nil {
		return "none"
	}
	show := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	return fmt.Sprint(show(b.RemainingMicros), " ", show(b.RemainingTokens), " ", b.Stop)
}

func (f *agentFixture) beat(c ClaimedSession, cost int64) HeartbeatAnswer {
	f.Helper()
	in := HeartbeatIn{ID: c.Session.ID}
	if cost > 0 {
		in.Usage = used(cost, "")
	}
	return decode[HeartbeatAnswer](f, f.run(c.LaneToken, Heartbeat, &in).Body)
}

// start dispatches an issue to an agent and claims the session.
func (f *agentFixture) start(issue Issue, agent string) ClaimedSession {
	f.Helper()
	f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(agent)})
	got := f.claim(ClaimSessionsIn{AgentID: Some(agent), LeaseSeconds: 3600})
	if len(got) != 1 {
		f.Fatalf("claimed %d sessions of %s", len(got), agent)
	}
	return got[0]
}

func TestBudget_EndsAndParksItsScope(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"workspace", "agent", "project", "issue"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newAgentFixture(t)
			issue, other := f.work(PriorityLow), f.work(PriorityLow)
			f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{ProjectID: Some("bridge")}}})
			scope := map[string]string{"workspace": "workspace", "agent": "agent:a", "project": "project:bridge", "issue": "issue:" + string(issue.ID)}[kind]
			if got := f.putBudget(scope, 100, -1, BudgetTotal); got.Scope != scope || *got.CostMicros != 100 || got.Tokens != nil || got.SpentMicros != 0 {
				t.Fatalf("budget %+v", got)
			}
			a := f.start(issue, "a")
			b := f.start(other, "b")
			if got := budgetText(a.Budget); got != "100 - false" {
				t.Errorf("the claim says %s", got)
			}
			queued := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
			if got := f.beat(a, 100); got.Status != SessionRunning || budgetText(got.Budget) != "0 - false" {
				t.Errorf("at the limit: %s, %s", got.Status, budgetText(got.Budget))
			}
			from := len(f.events())
			logged := decode[LoggedActivities](t, f.run(a.LaneToken, LogActivities, &LogActivitiesIn{ID: a.Session.ID, ActivityFields: ActivityFields{Message: Some("m")}, Usage: used(1, "")}).Body)
			if budgetText(logged.Budget) != "0 - true" || logged.LeaseExpiresAt != nil {
				t.Errorf("past the limit: %s", budgetText(logged.Budget))
			}
			f.verify()
			f.restart()
			s := f.session(a.Session.ID)
			if s.Status != SessionCanceled || fromPtr(s.FailureReason) != "budget" {
				t.Errorf("the session is %s because of %s", s.Status, fromPtr(s.FailureReason))
			}
			if got := f.attempts(a.Session.ID); len(got) != 1 || *got[0].End != AttemptCanceled || fromPtr(got[0].FailureReason) != "budget" {
				t.Errorf("attempts %+v", got)
			}
			if got := f.issueNow(issue.ID); got.Status != StatusTriage || got.Priority != PriorityMedium {
				t.Errorf("the issue is %s and %s", got.Status, got.Priority)
			}
			happened := f.happened(from)
			if n := slices.Index(happened, "session.escalated canceled"); n < 0 || happened[n+1] != "session.ended canceled" {
				t.Errorf("events %v", happened)
			}
			poll := decode[PolledSession](t, f.run(f.admin, PollSession, &PollSessionIn{ID: a.Session.ID}).Body)
			if n := len(poll.Activities); budgetText(poll.Budget) != "0 - true" || poll.Activities[n-1].Type != ActivityError {
				t.Errorf("the poll says %s and %+v", budgetText(poll.Budget), poll.Activities)
			}
			wantB := SessionRunning
			if kind == "workspace" {
				wantB = SessionCanceled
			}
			if got := f.session(b.Session.ID).Status; got != wantB {
				t.Errorf("the session of another issue and agent is %s", got)
			}
			if got := f.session(queued.ID); got.Status != SessionCreated || len(f.claim(ClaimSessionsIn{Limit: 50})) != 0 {
				t.Errorf("the queued session is %s", got.Status)
			}
			late := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
			if got := f.claim(ClaimSessionsIn{Limit: 50}); len(got) != 0 {
				t.Errorf("claimed %s", claimedIDs(got))
			}
			list := decode[BudgetList](t, f.run(f.admin, ListBudgets, &None{}).Body).Budgets
			if len(list) != 1 || list[0].SpentMicros != 101 || list[0].SpentTokens != 202 {
				t.Errorf("budgets %+v", list)
			}
			f.verify()
			f.putBudget(scope, 200, -1, BudgetTotal)
			f.verify()
			if got := f.claim(ClaimSessionsIn{LeaseSeconds: 3600}); claimedIDs(got) != fmt.Sprint([]SessionID{queued.ID}) {
				t.Fatalf("claimed %s", claimedIDs(got))
			}
			f.putBudget(scope, -1, 100, BudgetTotal) // lower than what is spent
			if got := f.session(queued.ID).Status; got != SessionCanceled {
				t.Errorf("a lower budget leaves the session %s", got)
			}
			f.verify()
			f.run(f.admin, DeleteBudget, &BudgetIn{scope})
			f.verify()
			if got := f.claim(ClaimSessionsIn{LeaseSeconds: 3600}); claimedIDs(got) != fmt.Sprint([]SessionID{late.ID}) || got[0].Budget != nil {
				t.Errorf("claimed %s", claimedIDs(got))
			}
			_, err := f.try(f.admin, DeleteBudget, &BudgetIn{scope})
			wantCode(t, err, CodeNotFound)
			f.verify()
		})
	}
}

func TestBudget_OfAMonth(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.now = time.Date(2026, 11, 30, 23, 50, 0, 0, time.UTC)
	f.putBudget("workspace", 10, -1, BudgetMonth)
	a := f.start(f.work(PriorityLow), "a")
	queued := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("b")})
	report := decode[ReportedSession](t, f.run(a.LaneToken, ReportSession, &ReportSessionIn{ID: a.Session.ID, URL: Some("https://x.example"), Usage: used(11, "")}).Body)
	if report.Status != SessionCanceled || budgetText(report.Budget) != "0 - true" || fromPtr(report.URL) == "" {
		t.Errorf("the report says %s, %s", report.Status, budgetText(report.Budget))
	}
	f.pass(9 * time.Minute)
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	f.verify()
	f.restart()
	f.pass(2 * time.Minute)
	f.verify()
	got := f.claimOne()
	if got.Session.ID != queued.ID || budgetText(got.Budget) != "10 - false" {
		t.Errorf("in December claimed %s with %s", got.Session.ID, budgetText(got.Budget))
	}
	if list := decode[BudgetList](t, f.run(f.admin, ListBudgets, &None{}).Body).Budgets; list[0].SpentMicros != 0 {
		t.Errorf("budgets %+v", list)
	}
}

// The tightest of several budgets is told, and the last report of a session ends others only.
func TestBudget_OfSeveralScopes(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	a, b := f.start(f.work(PriorityLow), "a"), f.start(f.work(PriorityLow), "b")
	if got := f.beat(a, 5); got.Budget != nil {
		t.Errorf("without budgets: %s", budgetText(got.Budget))
	}
	f.putBudget("workspace", 100, -1, BudgetTotal)
	f.putBudget("agent:a", 500, 50, BudgetTotal)
	f.putBudget("agent:c", 0, 0, BudgetMonth)
	if got := f.beat(a, 5); budgetText(got.Budget) != "90 30 false" {
		t.Errorf("the heartbeat says %s", budgetText(got.Budget))
	}
	last := decode[ReportedSession](t, f.run(a.LaneToken, ReportSession, &ReportSessionIn{ID: a.Session.ID, Status: Some(SessionCompleted), Usage: used(91, "")}).Body)
	if last.Status != SessionCompleted || !last.Budget.Stop {
		t.Errorf("the report says %s, %s", last.Status, budgetText(last.Budget))
	}
	if got := f.session(b.Session.ID); got.Status != SessionCanceled {
		t.Errorf("the other session is %s", got.Status)
	}
	f.verify()
	// A session that an agent registers by itself ends with its first sign of life.
	registered := f.registerAs(f.admin, f.work(PriorityLow).ID, "")
	r := ClaimedSession{LaneToken: *registered.LaneToken}
	r.Session.ID = registered.Session.ID
	if got := f.beat(r, 0); got.Status != SessionCanceled || !got.Budget.Stop {
		t.Errorf("a registered session is %s", got.Status)
	}
	f.verify()
}

func TestBudget_OfManySessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	all := maxBudgetEnded + 20
	for i := range all {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(i))})
	}
	var claimed []ClaimedSession
	for len(claimed) < all {
		claimed = append(claimed, f.claim(ClaimSessionsIn{Limit: 50, LeaseSeconds: 3600})...)
	}
	f.beat(claimed[0], 2)
	f.putBudget("workspace", 1, -1, BudgetTotal)
	running := func() (n int) {
		for _, c := range claimed {
			if f.session(c.Session.ID).Status == SessionRunning {
				n++
			}
		}
		return n
	}
	if n := running(); n != all-maxBudgetEnded {
		t.Errorf("%d sessions run after the first batch", n)
	}
	f.restart()
	f.pass(time.Second)
	if n := running(); n != 0 {
		t.Errorf("%d sessions run", n)
	}
	f.verify()
}

func TestBudget_GoesWithItsSubject(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	project := decode[Project](t, f.run(f.admin, Projects.Create, &CreateProjectIn{Name: "p"}).Body)
	agent := f.register(CreateAgentIn{Name: "Bot"})
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{ProjectID: Some(string(project.ID))}}})
	f.putBudget("issue:"+string(issue.ID), 1, -1, BudgetTotal)
	f.putBudget("project:"+string(project.ID), 1, -1, BudgetMonth)
	f.putBudget("agent:"+string(agent.ID), 1, -1, BudgetTotal)
	_, member := f.testService.member(f.home, RoleMember, "write")
	f.beat(f.start(issue, string(agent.ID)), 2)
	s := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("other")})
	f.verify()
	f.run(f.admin, DeleteAgent, &AgentByIDIn{ID: string(agent.ID)})
	f.verify()
	// The session leaves the project, and comes back.
	for _, to := range []Opt[string]{Some("elsewhere"), Some(string(project.ID))} {
		f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{ProjectID: to}}})
		f.verify()
	}
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "nobody", ActorType: GranteeUser})
	if list := decode[BudgetList](t, f.run(member, ListBudgets, &None{}).Body).Budgets; len(list) != 1 {
		t.Errorf("a member sees %+v", list)
	}
	_, err := f.try(member, PutBudget, &PutBudgetIn{BudgetIn: BudgetIn{"workspace"}, Period: BudgetTotal})
	wantCode(t, err, CodeForbidden)
	f.run(f.admin, Projects.Delete, &RecordIn{ID: string(project.ID)})
	f.verify()
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Errorf("claimed %s of an issue whose budget is used up", claimedIDs(got))
	}
	f.run(f.admin, DeleteBudget, &BudgetIn{"issue:" + string(issue.ID)})
	if got := f.claimOne(); got.Session.ID != s.ID {
		t.Errorf("claimed %s", got.Session.ID)
	}
	f.putBudget("issue:"+string(issue.ID), 1, -1, BudgetTotal)
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	f.verify()
	if list := decode[BudgetList](t, f.run(f.admin, ListBudgets, &None{}).Body).Budgets; len(list) != 0 {
		t.Errorf("budgets %+v", list)
	}
	_, err = f.try(f.admin, PutBudget, &PutBudgetIn{BudgetIn: BudgetIn{"issue:" + string(issue.ID)}, Period: BudgetTotal})
	wantCode(t, err, CodeNotFound)
	f.putBudget("workspace", 1, 1, BudgetTotal)
	f.putBudget("workspace", 2, -1, BudgetMonth)
	got := actions(decode[AuditPage](t, f.run(f.admin, ListAudit, &ListAuditIn{Action: Some("budget.*"), TargetID: Some("workspace")}).Body))
	if fmt.Sprint(got) != "[budget.updated workspace budget.created workspace]" {
		t.Errorf("the audit says %q", got)
	}
}

// Usage may end other sessions, which ends the session of the report or its wait. The answer
// shows that.
func TestBudget_AnswerShowsWhatFollows(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first, second := f.work(PriorityLow), f.work(PriorityLow)
	f.putBudget("workspace", 100, -1, BudgetTotal)
	a, b := f.start(first, "a"), f.start(second, "b")
	behind := f.dispatch(second.ID, DispatchIssueIn{AgentID: Some("c"), SessionOptions: SessionOptions{QueuedAfter: queuedBehind(string(a.Session.ID))}})
	got := decode[ReportedSession](t, f.run(b.LaneToken, ReportSession, &ReportSessionIn{
		ID: b.Session.ID, Status: Some(SessionWaiting), Usage: used(60, ""),
		WaitFor: Some(WaitForIn{Any: Some([]WaitCondition{{Session: string(a.Session.ID)}})}),
	}).Body)
	if got.Status != SessionWaiting {
		t.Errorf("before the budget is used up the session is %s", got.Status)
	}
	if got := decode[HeartbeatAnswer](t, f.run(f.admin, Heartbeat, &HeartbeatIn{ID: behind.ID, Usage: used(41, "")}).Body); got.Status != SessionCanceled {
		t.Errorf("the answer says %s of a session behind one that is ended", got.Status)
	}
	if got := f.session(b.Session.ID).Status; got != SessionCreated {
		t.Errorf("a session that waited for the end is %s", got)
	}
	f.putBudget("workspace", 200, -1, BudgetTotal)
	c, d := f.start(f.work(PriorityLow), "d"), f.start(f.work(PriorityLow), "e")
	got = decode[ReportedSession](t, f.run(c.LaneToken, ReportSession, &ReportSessionIn{
		ID: c.Session.ID, Status: Some(SessionWaiting), Usage: used(150, ""),
		WaitFor: Some(WaitForIn{Any: Some([]WaitCondition{{Session: string(d.Session.ID)}})}),
	}).Body)
	if got.Status != SessionCreated || f.session(d.Session.ID).Status != SessionCanceled {
		t.Errorf("the answer says %s of a session whose wait is over", got.Status)
	}
	f.verify()
}
