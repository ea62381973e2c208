package tracker

import "testing"

// Only people can reply to agents: agents, lanes and OAuth clients are refused,
// whatever their rights.
func TestReplyToSession_PeopleOnly(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	_, member := f.testService.member(f.home, RoleMember, "sessions:write")
	agent := f.token(f.home, &CreateTokenIn{AgentID: "a", Permissions: words("admin")})
	client := f.access(f.client(f.home, "write"), "")
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	claimed := f.claimOne()
	if err := f.report(claimed.LaneToken, claimed.Session.ID, SessionWaiting); err != nil {
		t.Fatal(err)
	}
	in := &ReplyToSessionIn{ID: claimed.Session.ID, Message: "Go on."}
	for name, credential := range map[string]string{"agent": agent, "OAuth client": client, "lane": claimed.LaneToken} {
		_, err := f.try(credential, ReplyToSession, in)
		if err == nil {
			t.Fatalf("%s: replied", name)
		}
		wantCode(t, err, CodeForbidden)
	}
	for _, credential := range []string{member, "root"} {
		f.run(credential, ReplyToSession, in)
	}
	f.verify()
}

// A caller who may not read the parent's issue can't read the child session's.
func TestSpawnSession_ChildIsRestrictedLikeItsParent(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	gil, in := f.testService.member(f.home, RoleMember, "write")
	_, out := f.testService.member(f.home, RoleMember, "write")
	issue := f.work(PriorityLow)
	grant := func(actor string, kind GranteeType) {
		f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: actor, ActorType: kind})
	}
	grant(string(gil), GranteeUser)
	grant("a", GranteeAgent)
	s := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
	lane := f.claimOne().LaneToken
	spawned := decode[SpawnedSession](t, f.run(lane, SpawnSession, &SpawnSessionIn{ID: s.ID, Title: "Part"}).Body)
	child := &IssueByIDIn{ID: string(spawned.Issue.ID)}
	f.run(in, IssueByID, child)
	for _, op := range []struct {
		op *Op
		in any
	}{{IssueByID, child}, {SessionByID, &SessionByIDIn{ID: spawned.Session.ID}}} {
		_, err := f.try(out, op.op, op.in)
		wantCode(t, err, CodeNotFound)
	}
	// The grants are copies of the parent's.
	was := decode[AccessGrantList](t, f.run(f.admin, ListAccessGrants, &IssueIn{ID: string(issue.ID)}).Body).Permissions
	is := decode[AccessGrantList](t, f.run(f.admin, ListAccessGrants, &IssueIn{ID: child.ID}).Body).Permissions
	if len(is) != len(was) {
		t.Fatalf("the child has %d grants, its parent %d", len(is), len(was))
	}
	for i := range is {
		if is[i].ActorID != was[i].ActorID || is[i].ActorType != was[i].ActorType || is[i].ID == was[i].ID || is[i].IssueID != spawned.Issue.ID {
			t.Errorf("grant %+v is copied as %+v", was[i], is[i])
		}
	}
	// Other callers don't get the child's events, also after its deletion.
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: child.ID})
	for _, e := range decode[EventPage](t, f.run(out, ListEvents, &ListEventsIn{Limit: 100}).Body).Events {
		t.Errorf("a member who sees neither is told of %s", e.Type)
	}
	// The child of an open issue is open.
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("b")})
	lane = f.claimOne().LaneToken
	c, _ := ParseCredential(lane)
	open := decode[SpawnedSession](t, f.run(lane, SpawnSession, &SpawnSessionIn{ID: SessionID(c.ID.String()), Title: "Open"}).Body)
	f.run(out, IssueByID, &IssueByIDIn{ID: string(open.Issue.ID)})
	f.verify()
}

// A deleted team may have been private, so nobody but admins sees the sessions of its deleted issues.
func TestSessions_OfADeletedTeam(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	_, member := f.testService.member(f.home, RoleMember, "write")
	team := f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Key: "PRV", IsPublic: Some(false)})
	issue := f.issue(f.admin, f.home.Workspace.ID, team.ID)
	s := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
	sees := func(credential string) int {
		return len(decode[SessionPage](t, f.run(credential, ListSessions, &ListSessionsIn{}).Body).Sessions)
	}
	hidden := func(when string) {
		t.Helper()
		_, err := f.try(member, SessionByID, &SessionByIDIn{ID: s.ID})
		wantCode(t, err, CodeNotFound)
		if n := sees(member); n != 0 {
			t.Errorf("%s: a member who is not in the team sees %d sessions", when, n)
		}
	}
	hidden("in a private team")
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	hidden("of a deleted issue")
	f.run(f.admin, DeleteTeam, &TeamByIDIn{ID: team.ID})
	hidden("of a deleted team")
	if got := f.session(s.ID).Status; got != SessionCanceled || sees(f.admin) != 1 {
		t.Errorf("the session is %s, and an admin sees %d", got, sees(f.admin))
	}
	f.verify()
}
