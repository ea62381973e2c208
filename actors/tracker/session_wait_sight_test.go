package tracker

import (
	"fmt"
	"testing"
)

// claimAs claims the only session with a credential.
func (f *agentFixture) claimAs(credential string) ClaimedSession {
	f.Helper()
	got := decode[ClaimedSessions](f, f.run(credential, ClaimSessions, &ClaimSessionsIn{LeaseSeconds: 3600}).Body).Sessions
	if len(got) != 1 {
		f.Fatalf("claimed %d sessions", len(got))
	}
	return got[0]
}

// restrict hides an issue from all but admins.
func (f *agentFixture) restrict(id IssueID) {
	f.Helper()
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(id), ActorID: "none"})
}

// waitOn reports that a session waits for an issue and another session.
func (f *agentFixture) waitOn(credential string, session SessionID, issue IssueID, other SessionID) error {
	f.Helper()
	_, err := f.try(credential, ReportSession, &ReportSessionIn{ID: session, Status: Some(SessionWaiting), WaitFor: Some(anyOf(
		WaitCondition{Issue: string(issue)}, WaitCondition{Session: string(other)}))})
	return err
}

// The claimer decides which issues and sessions a session may wait for, and not the actor that
// reports.
func TestWait_ForWhatItsClaimerSees(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	hidden, public := f.work(PriorityLow), f.work(PriorityLow)
	secret := f.dispatch(hidden.ID, DispatchIssueIn{AgentID: Some("z")})
	other := f.dispatch(public.ID, DispatchIssueIn{AgentID: Some("z")})
	f.claim(ClaimSessionsIn{AgentID: Some("z"), Limit: 2, LeaseSeconds: 3600})
	f.restrict(hidden.ID)
	agent := f.token(f.home, &CreateTokenIn{AgentID: "a", Permissions: words("write")})
	strong := f.token(f.home, &CreateTokenIn{AgentID: "a", Permissions: words("admin")})
	modest := f.token(f.home, &CreateTokenIn{Permissions: words("write")})
	client := f.access(f.client(f.home, "read,write"), "")
	_, mel := f.member(f.home, RoleMember, "write")
	abroad := f.onboard("abroad")
	f.run(f.admin, AddMember, &AddMemberIn{UserID: Some(abroad.Workspace.OwnerID), Role: RoleAdmin})
	for _, row := range []struct {
		name, claimer, reporter string
		sees                    bool
	}{
		{"an agent, the owner reports", agent, f.admin, false},
		{"an agent itself", agent, agent, false},
		{"an agent, its other token reports", agent, strong, false},
		{"an agent with admin, its other token reports", strong, agent, true},
		{"the owner by a token that writes, its other token reports", modest, f.admin, false},
		{"an OAuth client, the owner reports", client, f.admin, false},
		{"the owner, a member reports", f.admin, mel, true},
		{"an admin of another home, a member reports", abroad.Token.Secret, mel, true},
		{"the operator, a member reports", "root", mel, true},
		{"a member, the operator reports", mel, "root", false},
	} {
		s := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some("a")})
		c := decode[ClaimedSessions](f, f.run(row.claimer, ClaimSessions, &ClaimSessionsIn{AgentID: Some("a"), LeaseSeconds: 3600}).Body).Sessions[0]
		for _, reporter := range []string{row.reporter, c.LaneToken} {
			if !row.sees {
				wantCode(t, f.waitOn(reporter, s.ID, hidden.ID, secret.ID), CodeBadRequest, "waitFor.any[0].issue", "waitFor.any[1].session")
			}
		}
		seen, sought := public.ID, other.ID
		if row.sees {
			seen, sought = hidden.ID, secret.ID
		}
		if err := f.waitOn(row.reporter, s.ID, seen, sought); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		f.run(f.admin, CancelSession, &CancelSessionIn{ID: s.ID})
	}
	f.verify()
}

// A claimer whose token is gone, or who has left, sees nothing.
func TestWait_OfClaimersThatAreGone(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	other := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("z")})
	f.claim(ClaimSessionsIn{AgentID: Some("z"), LeaseSeconds: 3600})
	token := f.mint(CreateTokenIn{AgentID: "a", Permissions: words("write")})
	user, mel := f.member(f.home, RoleMember, "write")
	for _, row := range []struct {
		claimer string
		end     func()
	}{
		{token.Secret, func() { f.run(f.admin, DeleteToken, &DeleteTokenIn{ID: token.ID}) }},
		{mel, func() { f.run(f.admin, RemoveMember, &MemberIn{user}) }},
	} {
		s := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some("a")})
		f.run(row.claimer, ClaimSessions, &ClaimSessionsIn{AgentID: Some("a"), LeaseSeconds: 3600})
		row.end()
		wantCode(t, f.waitOn(f.admin, s.ID, issue.ID, other.ID), CodeBadRequest, "waitFor.any[0].issue", "waitFor.any[1].session")
		_, err := f.try(f.admin, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting), WaitFor: Some(anyOf(WaitCondition{Reply: true}))})
		if err != nil {
			t.Error(err)
		}
		f.run(f.admin, CancelSession, &CancelSessionIn{ID: s.ID})
	}
}

// The next claimer is told of the issues and sessions that it sees then.
func TestWait_WokenByWhatItsClaimerSees(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.token(f.home, &CreateTokenIn{AgentID: "a", Permissions: words("write")})
	hide := f.restrict
	closes := f.close
	remove := func(id IssueID) { f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(id)}) }
	keep := func(IssueID) {}
	for _, row := range []struct {
		name                  string
		before, wakes, behind func(IssueID)
		byAgent, byOwner      int
	}{
		{"seen", keep, closes, keep, 1, 1},
		{"hidden during the wait", hide, closes, keep, 0, 1},
		{"hidden after it", keep, closes, hide, 0, 1},
		{"deleted", keep, remove, keep, 1, 1},
		{"hidden and deleted", hide, remove, keep, 0, 1},
	} {
		for credential, want := range map[string]int{agent: row.byAgent, f.admin: row.byOwner} {
			issue := f.work(PriorityLow)
			f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{AgentID: Some("a")})
			c := f.claimAs(agent)
			in := anyOf(WaitCondition{Issue: string(issue.ID)})
			f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: c.Session.ID, Status: Some(SessionWaiting), WaitFor: Some(in)})
			row.before(issue.ID)
			row.wakes(issue.ID)
			row.behind(issue.ID)
			next := f.claimAs(credential)
			if len(next.WokenBy) != want || want == 1 && next.WokenBy[0].Condition.Issue != string(issue.ID) {
				t.Errorf("%s: woken by %s, want %d", row.name, fmt.Sprint(next.WokenBy), want)
			}
			f.run(f.admin, CancelSession, &CancelSessionIn{ID: c.Session.ID})
		}
	}
	// A session is seen with its issue.
	issue := f.work(PriorityLow)
	other := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
	first := f.claimAs(agent)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	c := f.claimAs(agent)
	f.run(c.LaneToken, ReportSession, &ReportSessionIn{ID: c.Session.ID, Status: Some(SessionWaiting), WaitFor: Some(allOf(
		WaitCondition{Session: string(other.ID)}, WaitCondition{Children: true}))})
	f.restrict(issue.ID)
	if err := f.report(f.admin, first.Session.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if next := f.claimAs(agent); len(next.WokenBy) != 0 {
		t.Errorf("woken by %+v", next.WokenBy)
	}
	f.verify()
}
