package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClaim_ByPriorityThenOldestFirst(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	low, high, urgent := f.work(PriorityLow), f.work(PriorityHigh), f.work(PriorityUrgent)
	first := f.dispatch(low.ID, DispatchIssueIn{AgentID: Some("a")})
	second := f.dispatch(high.ID, DispatchIssueIn{AgentID: Some("a")})
	third := f.dispatch(urgent.ID, DispatchIssueIn{AgentID: Some("b")})
	fourth := f.dispatch(high.ID, DispatchIssueIn{AgentID: Some("b")})
	// The position in the queue follows the issue's priority.
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(low.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{Priority: Some(PriorityUrgent)}}})
	f.verify()
	got := claimedIDs(f.claim(ClaimSessionsIn{Limit: 50}))
	if want := fmt.Sprint([]SessionID{first.ID, third.ID, second.ID, fourth.ID}); got != want {
		t.Errorf("claimed %s, want %s", got, want)
	}
	f.verify()
}

func TestClaim_AsksForAgentAndProvider(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	a := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), Provider: Some("p")})
	b := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("b"), Provider: Some("q")})
	bot := f.token(f.home, &CreateTokenIn{AgentID: "b"})
	for _, in := range []ClaimSessionsIn{{AgentID: Some("c")}, {Provider: Some("r")}, {AgentID: Some("a"), Provider: Some("q")}, {AgentID: Some("a\x01")}} {
		if got := f.claim(in); len(got) != 0 {
			t.Errorf("%+v got %s", in, claimedIDs(got))
		}
	}
	got := decode[ClaimedSessions](t, f.run(bot, ClaimSessions, &ClaimSessionsIn{Limit: 5}).Body).Sessions
	if claimedIDs(got) != fmt.Sprint([]SessionID{b.ID}) {
		t.Errorf("the agent's own token got %s", claimedIDs(got))
	}
	if got := f.claim(ClaimSessionsIn{Provider: Some("p"), Limit: 5}); claimedIDs(got) != fmt.Sprint([]SessionID{a.ID}) {
		t.Errorf("by provider got %s", claimedIDs(got))
	}
}

func TestClaim_RespectsMaxConcurrentSessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.register(CreateAgentIn{Name: "A", MaxConcurrentSessions: Some(int64(2))})
	for range 4 {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	}
	got := f.claim(ClaimSessionsIn{Limit: 50})
	if len(got) != 2 {
		t.Fatalf("claimed %d of an agent that takes 2", len(got))
	}
	if more := f.claim(ClaimSessionsIn{Limit: 50, AgentID: Some(string(agent.ID))}); len(more) != 0 {
		t.Fatalf("claimed %d more", len(more))
	}
	// A session that waits for an answer counts as engaged, too.
	if err := f.report(got[0].LaneToken, got[0].Session.ID, SessionWaiting); err != nil {
		t.Fatal(err)
	}
	if more := f.claim(ClaimSessionsIn{Limit: 50}); len(more) != 0 {
		t.Fatalf("claimed %d more", len(more))
	}
	if err := f.report(got[0].LaneToken, got[0].Session.ID, SessionFailed); err != nil {
		t.Fatal(err)
	}
	if more := f.claim(ClaimSessionsIn{Limit: 50}); len(more) != 1 {
		t.Fatalf("claimed %d more, want 1", len(more))
	}
	f.verify()
}

func TestClaim_OneSessionOfAnIssueForAnAgent(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
	second := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
	other := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("b")})
	got := f.claim(ClaimSessionsIn{Limit: 50})
	if len(got) != 2 || got[1].Session.ID != other.ID {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	// The other direction is refused, too.
	wantConflict(t, f.report(f.admin, second.ID, SessionRunning), SessionRunning, true)
	if err := f.report(got[0].LaneToken, got[0].Session.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{second.ID}) {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	f.verify()
}

func TestClaim_NothingThatRunsElsewhere(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.run(f.admin, RegisterSession, &RegisterSessionIn{IssueID: string(f.work(PriorityLow).ID), Provider: "p"})
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Errorf("claimed %s", claimedIDs(got))
	}
	f.verify()
}

func TestClaim_HiddenIssuesStayHidden(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	private := f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "P", Key: "PRV", IsPublic: Some(false)})
	issue := f.issue(f.admin, f.home.Workspace.ID, private.ID)
	s := f.dispatch(issue.ID, DispatchIssueIn{})
	_, guest := f.member(f.home, RoleGuest, "write")
	reply := f.run(guest, ClaimSessions, &ClaimSessionsIn{Wait: 5})
	if reply.Wait == nil || !reply.Wait.Pass || string(reply.Body) != `{"sessions":[]}` {
		t.Errorf("a guest got %s, %+v", reply.Body, reply.Wait)
	}
	if _, err := f.try(guest, SessionByID, &SessionByIDIn{ID: s.ID}); err == nil {
		t.Error("a guest sees the session")
	}
	if page := string(f.run(guest, ListSessions, &ListSessionsIn{}).Body); page != `{"sessions":[]}` {
		t.Errorf("a guest lists %s", page)
	}
	// A lane sees its own issue, whatever agent holds it.
	lane := f.claimOne()
	if got := decode[Issue](t, f.run(lane.LaneToken, IssueByID, &IssueByIDIn{ID: string(issue.ID)}).Body); got.ID != issue.ID {
		t.Errorf("the lane reads %+v", got)
	}
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if _, err := f.try(guest, SessionByID, &SessionByIDIn{ID: s.ID}); err == nil {
		t.Error("a guest sees the session of an issue that was deleted")
	}
	if got := f.session(s.ID); got.Status != SessionCanceled {
		t.Errorf("the session is %s", got.Status)
	}
	f.verify()
}

func TestBudget_CancelsAndEscalatesOnce(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityHigh)
	s := f.dispatch(issue.ID, DispatchIssueIn{SessionOptions: SessionOptions{MaxDuration: Some(int64(1))}})
	f.pass(50 * time.Second)
	lane := f.claim(ClaimSessionsIn{LeaseSeconds: 3600})[0].LaneToken
	f.pass(59 * time.Second) // counted from the start
	if got := f.session(s.ID); got.Status != SessionRunning {
		t.Fatalf("the session is %s", got.Status)
	}
	before := len(f.events())
	f.pass(2 * time.Second)
	f.restart()
	f.pass(time.Hour)
	want := []string{"issue.updated triage", "session.escalated canceled", "session.ended canceled"}
	if got := f.happened(before); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if got := f.issueNow(issue.ID); got.Status != StatusTriage || got.Priority != PriorityUrgent {
		t.Errorf("the issue is %s and %s", got.Status, got.Priority)
	}
	poll := decode[PolledSession](t, f.run(f.admin, PollSession, &PollSessionIn{ID: s.ID}).Body)
	if n := len(poll.Activities); poll.Status != SessionCanceled || n != 1 || poll.Activities[0].Type != ActivityError ||
		poll.Activities[0].Message != "Canceled: its budget of 1 minute is used up." {
		t.Errorf("the session is %s with activities %+v", poll.Status, poll.Activities)
	}
	_, err := f.try(lane, LogActivities, &LogActivitiesIn{ID: s.ID, ActivityFields: ActivityFields{Message: Some("late")}})
	wantCode(t, err, CodeUnauthorized)
	f.verify()
}

func TestBudget_OfASessionNobodyBegan(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityUrgent).ID, DispatchIssueIn{SessionOptions: SessionOptions{MaxDuration: Some(int64(1))}})
	f.pass(61 * time.Second)
	if got := f.session(s.ID); got.Status != SessionCanceled {
		t.Errorf("the session is %s", got.Status)
	}
	f.verify()
}

func TestStalled_WhenRunningAndSilent(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	got := f.claim(ClaimSessionsIn{LeaseSeconds: 3600})[0]
	f.pass(9 * time.Minute)
	f.run(got.LaneToken, LogActivities, &LogActivitiesIn{ID: got.Session.ID, ActivityFields: ActivityFields{Message: Some("a")}})
	f.pass(9 * time.Minute)
	f.run(got.LaneToken, Heartbeat, &HeartbeatIn{ID: got.Session.ID}) // a heartbeat is no progress
	if s := f.session(got.Session.ID); s.DerivedStatus != nil {
		t.Errorf("derivedStatus is %s", *s.DerivedStatus)
	}
	f.pass(2 * time.Minute)
	if s := f.session(got.Session.ID); s.DerivedStatus == nil || *s.DerivedStatus != derivedStalled {
		t.Errorf("derivedStatus is %v", s.DerivedStatus)
	}
}

func TestReport_RepeatedAfterTheEnd(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	got := f.claimOne()
	id := got.Session.ID
	final := &ReportSessionIn{ID: id, Status: Some(SessionCompleted), Result: Some("done")}
	f.run(got.LaneToken, ReportSession, final)
	before := len(f.events())
	f.run(got.LaneToken, ReportSession, final)
	f.run(f.admin, ReportSession, final)
	if n := len(f.events()); n != before {
		t.Errorf("a repeat left %d events", n-before)
	}
	for _, credential := range []string{got.LaneToken, f.admin} {
		_, err := f.try(credential, ReportSession, &ReportSessionIn{ID: id, Status: Some(SessionCompleted), Result: Some("other")})
		wantConflict(t, err, SessionCompleted, false)
	}
	for _, op := range []*Op{SessionByID, IssueByID} {
		in := any(&SessionByIDIn{ID: id})
		if op == IssueByID {
			in = &IssueByIDIn{ID: string(got.Issue.ID)}
		}
		_, err := f.try(got.LaneToken, op, in)
		wantCode(t, err, CodeUnauthorized)
	}
	f.verify()
}

func TestSpawn_Limits(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	top := f.claimOne()
	spawn := func(id SessionID) (SpawnedSession, error) {
		reply, err := f.try(f.admin, SpawnSession, &SpawnSessionIn{ID: id, Title: "Part"})
		if err != nil {
			return SpawnedSession{}, err
		}
		return decode[SpawnedSession](t, reply.Body), nil
	}
	var first SpawnedSession
	for i := range 10 {
		child, err := spawn(top.Session.ID)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = child
		}
	}
	_, err := spawn(top.Session.ID)
	wantCode(t, err, CodeTooManyRequests)
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: first.Session.ID})
	at, err := spawn(top.Session.ID)
	for depth := 2; err == nil; depth++ {
		if depth > maxSessionDepth+1 {
			t.Fatal("sessions nest without end")
		}
		at, err = spawn(at.Session.ID)
	}
	wantCode(t, err, CodeBadRequest)
	_, err = spawn(first.Session.ID)
	wantCode(t, err, CodeBadRequest)
	f.verify()
}

func TestPoll_NewestActivitiesOldestFirst(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	got := f.claimOne()
	id := got.Session.ID
	list := make([]ActivityFields, 100)
	for batch := range 6 {
		for i := range list {
			list[i] = ActivityFields{Message: Some(fmt.Sprint(batch*100 + i))}
		}
		f.run(got.LaneToken, LogActivities, &LogActivitiesIn{ID: id, Activities: Some(list)})
	}
	poll := func(since string) []Activity {
		in := PollSessionIn{ID: id}
		if since != "" {
			in.Since = Some(since)
		}
		return decode[PolledSession](t, f.run(got.LaneToken, PollSession, &in).Body).Activities
	}
	all := poll("")
	if len(all) != shownActivities || all[0].Message != "100" || all[len(all)-1].Message != "599" {
		t.Fatalf("%d activities from %s", len(all), all[0].Message)
	}
	if later := poll(all[496].ID); len(later) != 3 || later[0].Message != "597" {
		t.Errorf("later ones are %+v", later)
	}
	if later := poll(all[499].ID); len(later) != 0 {
		t.Errorf("later ones are %+v", later)
	}
	reply := f.run(got.LaneToken, PollSession, &PollSessionIn{ID: id, Since: Some(all[499].ID), Wait: 5})
	if reply.Wait == nil || reply.Body != nil {
		t.Errorf("a poll that knows everything gets %s", reply.Body)
	}
	reply = f.run(got.LaneToken, PollSession, &PollSessionIn{ID: id, Since: Some(all[498].ID), Wait: 5})
	if reply.Wait != nil {
		t.Error("a poll that has missed something waits")
	}
	f.verify()
}

// A caller may take fewer bytes of activities than others get. It reads all of them in parts,
// even if each activity is larger than the limit.
func TestPoll_LimitedActivities(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	got := f.claimOne()
	const n, size = 8, 32_000
	for i := range n {
		f.run(got.LaneToken, LogActivities, &LogActivitiesIn{ID: got.Session.ID, ActivityFields: ActivityFields{Message: Some(fmt.Sprint(i, strings.Repeat("x", size)))}})
	}
	polled := func(most int, in PollSessionIn) []Activity {
		in.ID = got.Session.ID
		in.LimitActivities(most)
		return decode[PolledSession](t, f.run(got.LaneToken, PollSession, &in).Body).Activities
	}
	all := polled(0, PollSessionIn{})
	if len(all) != n {
		t.Fatalf("%d activities without a limit", len(all))
	}
	for _, most := range []int{1, size, 3 * size} {
		newest := polled(most, PollSessionIn{})
		if len(newest) == 0 || len(newest) > 1+most/size || newest[len(newest)-1].ID != all[n-1].ID {
			t.Errorf("within %d bytes are %d activities", most, len(newest))
		}
		for seen := 1; seen < n; {
			part := polled(most, PollSessionIn{Since: Some(all[seen-1].ID)})
			if len(part) == 0 || len(part) > 1+most/size || part[0].ID != all[seen].ID {
				t.Fatalf("within %d bytes, after %d activities, are %d", most, seen, len(part))
			}
			seen += len(part)
		}
	}
	f.verify()
}

// Of large activities the newest are shown. A caller that names the last one it knows
// gets all newer ones in several parts.
func TestPoll_LargeActivities(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	got := f.claimOne()
	text := strings.Repeat("x", 32_000)
	polled := func(in PollSessionIn) []Activity {
		in.ID = got.Session.ID
		return decode[PolledSession](t, f.run(got.LaneToken, PollSession, &in).Body).Activities
	}
	n := 0
	log := func(more int) {
		for range more {
			f.run(got.LaneToken, LogActivities, &LogActivitiesIn{ID: got.Session.ID, ActivityFields: ActivityFields{Message: Some(fmt.Sprintf("%d %s", n, text))}})
			n++
		}
	}
	log(2 * maxPageBytes / len(text))
	all := polled(PollSessionIn{})
	if len(all) != n {
		t.Fatalf("%d of %d activities", len(all), n)
	}
	first := all[0].ID
	log(maxWholeBytes / len(text))
	if newest := polled(PollSessionIn{}); len(newest) < n/2 || !strings.HasPrefix(newest[len(newest)-1].Message, fmt.Sprint(n-1, " ")) {
		t.Errorf("%d of %d activities, the last is %.10q", len(newest), n, newest[len(newest)-1].Message)
	}
	seen := 1
	for since := first; seen < n; {
		part := polled(PollSessionIn{Since: Some(since)})
		if len(part) == 0 || !strings.HasPrefix(part[0].Message, fmt.Sprint(seen, " ")) {
			t.Fatalf("after %d of %d activities come %d", seen, n, len(part))
		}
		since, seen = part[len(part)-1].ID, seen+len(part)
	}
	f.verify()
}

// The event log alone tells which claimer held a session at which time.
func TestEvents_TellWhoHeldASession(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	before := len(f.events())
	f.claimOne()
	f.pass(61 * time.Second)
	got := f.claimOne()
	if err := f.report(got.LaneToken, got.Session.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	var story []string
	for _, e := range f.events()[before:] {
		if c, ok := e.Changes["holder"]; ok {
			story = append(story, fmt.Sprintf("%s %s %t", e.Type, e.Data.Status, string(c.To) != "null"))
			if lease := e.Changes["leaseExpiresAt"]; (string(lease.To) == "null") != (string(c.To) == "null") {
				t.Errorf("the lease becomes %s and its holder %s", lease.To, c.To)
			}
		}
	}
	want := []string{"session.updated running true", "session.updated created false", "session.updated running true", "session.ended completed false"}
	if !slices.Equal(story, want) {
		t.Errorf("the story is %q, want %q", story, want)
	}
}

// A claim that waits may park as many sessions each time that it looks as one that doesn't wait.
func TestClaim_CountsItsRoundsAnewWhenItWaits(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	in := &ClaimSessionsIn{Wait: 5, rounds: maxClaimRounds}
	if reply := f.run(f.admin, ClaimSessions, in); reply.Wait == nil {
		t.Fatalf("the claim does not wait: %s", reply.Body)
	}
	if in.rounds != 0 {
		t.Errorf("the claim waits after %d rounds, and has only %d left when it looks again", in.rounds, maxClaimRounds-in.rounds)
	}
}
