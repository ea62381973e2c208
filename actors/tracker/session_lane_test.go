package tracker

import (
	"testing"
	"time"
)

// registerAs registers a running session.
func (f *agentFixture) registerAs(credential string, issue IssueID, provider string) RegisteredSession {
	f.Helper()
	in := &RegisterSessionIn{IssueID: string(issue), Provider: "p", Status: SessionRunning}
	if provider != "" {
		in.ProviderSessionID = Some(provider)
	}
	return decode[RegisteredSession](f, f.run(credential, RegisterSession, in).Body)
}

// beats tries a lane token.
func (f *agentFixture) beats(lane string) error {
	f.Helper()
	c, _ := ParseCredential(lane)
	_, err := f.try(lane, Heartbeat, &HeartbeatIn{ID: SessionID(c.ID.String())})
	return err
}

// A lane ends with its credential: the token, the OAuth client, or the membership. It
// stays ended if the member comes back.
func TestLane_EndsWithItsMaker(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *agentFixture) (maker string, end func(), late Code){
		"the token is deleted": func(f *agentFixture) (string, func(), Code) {
			made := f.mint(CreateTokenIn{Name: "x"})
			return made.Secret, func() { f.run(f.admin, DeleteToken, &DeleteTokenIn{ID: made.ID}) }, CodeUnauthorized
		},
		"the token expires": func(f *agentFixture) (string, func(), Code) {
			made := f.mint(CreateTokenIn{Name: "x", ExpiresAt: Some(f.now.Add(time.Minute).Format(time.RFC3339Nano))})
			return made.Secret, func() { f.now = f.now.Add(time.Minute) }, CodeUnauthorized
		},
		"the agent's token is deleted": func(f *agentFixture) (string, func(), Code) {
			made := f.mint(CreateTokenIn{Name: "x", AgentID: "a"})
			return made.Secret, func() { f.run(f.admin, DeleteToken, &DeleteTokenIn{ID: made.ID}) }, CodeUnauthorized
		},
		"the OAuth client is deleted": func(f *agentFixture) (string, func(), Code) {
			client := f.client(f.home, "write")
			return f.access(client, ""), func() { f.run(f.admin, DeleteOAuthClient, &RecordIn{ID: string(client.ID)}) }, CodeUnauthorized
		},
		"the member is removed": func(f *agentFixture) (string, func(), Code) {
			id, token := f.testService.member(f.home, RoleMember, "write")
			return token, func() { f.run(f.admin, RemoveMember, &MemberIn{id}) }, CodeUnauthorized
		},
		"a member from elsewhere is removed and comes back": func(f *agentFixture) (string, func(), Code) {
			abroad := f.onboard("abroad")
			id := abroad.Workspace.OwnerID
			add := &AddMemberIn{UserID: Some(id)}
			f.run(f.admin, AddMember, add)
			return abroad.Token.Secret, func() {
				f.run(f.admin, RemoveMember, &MemberIn{id})
				f.run(f.admin, AddMember, add)
			}, CodeUnauthorized
		},
		"the client loses the right": func(f *agentFixture) (string, func(), Code) {
			client := f.client(f.home, "write")
			return f.access(client, ""), func() {
				f.run(f.admin, PatchOAuthClient, &PatchOAuthClientIn{ID: string(client.ID), Permissions: words("issues:read")})
			}, CodeForbidden
		},
	} {
		f := newAgentFixture(t)
		maker, end, late := end(f)
		registered := f.registerAs(maker, f.work(PriorityLow).ID, "")
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
		claimed := decode[ClaimedSessions](t, f.run(maker, ClaimSessions, &ClaimSessionsIn{AgentID: Some("a"), LeaseSeconds: 3600}).Body).Sessions
		lanes := []string{*registered.LaneToken, claimed[0].LaneToken}
		for _, lane := range lanes {
			if err := f.beats(lane); err != nil {
				t.Fatalf("%s: before that: %v", name, err)
			}
		}
		f.verify()
		end()
		for _, lane := range lanes {
			err := f.beats(lane)
			if err == nil {
				t.Fatalf("%s: the lane outlives it", name)
			}
			wantCode(t, err, late)
		}
		f.verify()
	}
}

// A lane of the operator is valid as long as there is an operator's token.
func TestLane_OfTheOperator(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.registerAs("root", f.work(PriorityLow).ID, "")
	if err := f.beats(*s.LaneToken); err != nil {
		t.Error(err)
	}
	f.run(*s.LaneToken, IssueByID, &IssueByIDIn{ID: string(s.Session.IssueID)})
}

// An agent reads the issue through its lane as long as the lane's maker may; it can
// always report.
func TestLane_SeesWhatItsMakerSees(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	_, member := f.testService.member(f.home, RoleMember, "write")
	issue := f.work(PriorityLow)
	mine, admins := f.registerAs(member, issue.ID, ""), f.registerAs(f.admin, issue.ID, "")
	read := func(lane string) error {
		_, err := f.try(lane, IssueByID, &IssueByIDIn{ID: string(issue.ID)})
		return err
	}
	for _, lane := range []*string{mine.LaneToken, admins.LaneToken} {
		if err := read(*lane); err != nil {
			t.Fatal(err)
		}
	}
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "somebody"})
	wantCode(t, read(*mine.LaneToken), CodeNotFound)
	_, err := f.try(*mine.LaneToken, SpawnSession, &SpawnSessionIn{ID: mine.Session.ID, Title: "Part"})
	wantCode(t, err, CodeNotFound)
	if err := read(*admins.LaneToken); err != nil {
		t.Errorf("a lane of an admin's: %v", err)
	}
	if err := f.report(*mine.LaneToken, mine.Session.ID, SessionCompleted); err != nil {
		t.Errorf("the work in hand can't be reported: %v", err)
	}
	f.verify()
}

// Registering a session takes the right to read issues. A claim shows its issue, and so
// does its lane.
func TestLane_ReadsNoMoreThanItsMaker(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	worker := f.mint(CreateTokenIn{Name: "x", AgentID: "a", Permissions: words("sessions:write")}).Secret
	issue := f.work(PriorityLow)
	_, err := f.try(worker, RegisterSession, &RegisterSessionIn{IssueID: string(issue.ID), Provider: "p"})
	wantCode(t, err, CodeForbidden)
	f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
	lane := decode[ClaimedSessions](t, f.run(worker, ClaimSessions, &ClaimSessionsIn{}).Body).Sessions[0].LaneToken
	f.run(lane, IssueByID, &IssueByIDIn{ID: string(issue.ID)})
	both := f.mint(CreateTokenIn{Name: "x", AgentID: "a", Permissions: words("sessions:write,issues:read")}).Secret
	f.registerAs(both, issue.ID, "")
}

// Registering a session again returns a lane to the actor that registered it and to
// admins. Other callers who see the session get it without a lane; for callers who
// don't see it there is none.
func TestRegisterSession_AgainByOthers(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue, other := f.work(PriorityLow), f.work(PriorityLow)
	mine := f.mint(CreateTokenIn{Name: "x", AgentID: "a"}).Secret
	same := f.mint(CreateTokenIn{Name: "y", AgentID: "a"}).Secret
	memberID, member := f.testService.member(f.home, RoleMember, "write")
	first := f.registerAs(mine, issue.ID, "job-43")
	for name, c := range map[string]struct {
		credential string
		lane       bool
	}{"its actor": {mine, true}, "its actor with another token": {same, true}, "an admin": {f.admin, true}, "the operator": {"root", true}, "a member": {member, false}} {
		again := f.registerAs(c.credential, other.ID, "job-43")
		if again.Session.ID != first.Session.ID || (again.LaneToken != nil) != c.lane || (again.LogURL != nil) != c.lane {
			t.Errorf("%s: registered %s with the lane %v", name, again.Session.ID, again.LaneToken)
		}
	}
	for range maxLanes + 1 {
		f.registerAs(member, other.ID, "job-43")
	}
	last := f.registerAs(mine, issue.ID, "job-43")
	if err := f.beats(*last.LaneToken); err != nil {
		t.Error(err)
	}
	// A hidden session can't be found.
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "a", ActorType: GranteeAgent})
	own := f.registerAs(member, other.ID, "job-43")
	if own.Session.ID == first.Session.ID || own.Session.ActorID != string(memberID) || own.LaneToken == nil {
		t.Errorf("registered %+v", own.Session)
	}
	_, err := f.try(member, RegisterSession, &RegisterSessionIn{IssueID: string(issue.ID), Provider: "p", ProviderSessionID: Some("job-43")})
	if again := f.registerAs(member, issue.ID, "job-43"); err != nil || again.Session.ID != own.Session.ID {
		t.Errorf("registered again: %s, %v", again.Session.ID, err)
	}
	if again := f.registerAs(mine, issue.ID, "job-43"); again.Session.ID != first.Session.ID {
		t.Errorf("its actor got %s", again.Session.ID)
	}
	f.verify()
}

// If no lease or budget ends a session, unused lanes expire.
func TestLane_ExpiresUnused(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	life := (*AgentSettings)(nil).laneLife()
	s := f.registerAs(f.admin, f.work(PriorityLow).ID, "job")
	unused := f.registerAs(f.admin, s.Session.IssueID, "job")
	for range 3 { // heartbeats of every kind extend the life
		f.now = f.now.Add(life / 2)
		if err := f.beats(*s.LaneToken); err != nil {
			t.Fatal(err)
		}
		f.now = f.now.Add(life / 2)
		f.run(*s.LaneToken, LogActivities, &LogActivitiesIn{ID: s.Session.ID, ActivityFields: ActivityFields{Message: Some("on it")}})
	}
	wantCode(t, f.beats(*unused.LaneToken), CodeUnauthorized)
	f.now = f.now.Add(life)
	wantCode(t, f.beats(*s.LaneToken), CodeUnauthorized)
	// A reply by another caller does not renew the lane. Registering again returns
	// another.
	f.run(f.admin, ReplyToSession, &ReplyToSessionIn{ID: s.Session.ID, Message: "Well?"})
	wantCode(t, f.beats(*s.LaneToken), CodeUnauthorized)
	if err := f.beats(*f.registerAs(f.admin, s.Session.IssueID, "job").LaneToken); err != nil {
		t.Error(err)
	}
	f.verify()
}

// The lane tokens of all attempts that a session may have learn that their claims are over, however many follow.
func TestLane_OfEachEarlierAttempt(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, retrying(RetryIn{MaxAttempts: Some(int64(20)), On: Some([]string{"failed"})}))
	var lanes []string
	for range 19 {
		lanes = append(lanes, f.claimOne().LaneToken)
		if err := f.report(lanes[len(lanes)-1], s.ID, SessionFailed); err != nil {
			t.Fatal(err)
		}
	}
	for _, lane := range lanes {
		wantCode(t, f.beats(lane), CodeConflict)
	}
	f.verify()
}
