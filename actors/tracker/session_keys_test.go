package tracker

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func keyed(agent string, keys ...string) DispatchIssueIn {
	return DispatchIssueIn{AgentID: Some(agent), SessionOptions: SessionOptions{ConcurrencyKeys: Some(keys)}}
}

func (f *agentFixture) limitKey(key string, n int64) {
	f.Helper()
	f.run(f.admin, PutConcurrencyLimit, &PutConcurrencyLimitIn{ConcurrencyLimitIn: ConcurrencyLimitIn{Key: key}, Limit: n})
}

func TestConcurrencyKeys_OneAtATime(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	low := f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
	f.dispatch(f.work(PriorityLow).ID, keyed("b", "k"))
	urgent := f.dispatch(f.work(PriorityUrgent).ID, keyed("a", "k"))
	free := f.dispatch(f.work(PriorityLow).ID, keyed("a", "other"))
	got := f.claim(ClaimSessionsIn{Limit: 50, AgentID: Some("a")})
	if want := fmt.Sprint([]SessionID{urgent.ID, free.ID}); claimedIDs(got) != want {
		t.Fatalf("claimed %s, want %s", claimedIDs(got), want)
	}
	f.verify()
	if more := f.claim(ClaimSessionsIn{Limit: 50}); len(more) != 0 {
		t.Fatalf("claimed %s of a full key", claimedIDs(more))
	}
	high := f.dispatch(f.work(PriorityHigh).ID, keyed("a", "k"))
	f.restart()
	var refused *Error
	if err := f.report(f.admin, low.ID, SessionRunning); !errors.As(err, &refused) || refused.Code != CodeConflict {
		t.Fatalf("a parked session was reported as running: %v", err)
	} else if details, is := refused.Details.(SessionConflict); !is || details.SessionID != urgent.ID {
		t.Fatalf("the refusal names %+v", refused.Details)
	}
	if err := f.report(got[0].LaneToken, urgent.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	f.verify()
	if next := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(next) != fmt.Sprint([]SessionID{high.ID}) {
		t.Fatalf("claimed %s, want the most urgent one", claimedIDs(next))
	}
	f.verify()
}

// Sessions that the first one of a claim keeps from being claimed do not count towards the
// limit of the claim.
func TestClaim_FillsItsLimitFromBehindAFullKey(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first := f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
	for range 5 {
		f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
	}
	free := f.dispatch(f.work(PriorityLow).ID, keyed("a"))
	last := f.dispatch(f.work(PriorityLow).ID, keyed("a"))
	got := f.claim(ClaimSessionsIn{Limit: 2})
	if want := fmt.Sprint([]SessionID{first.ID, free.ID}); claimedIDs(got) != want {
		t.Fatalf("claimed %s, want %s", claimedIDs(got), want)
	}
	f.verify()
	if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{last.ID}) {
		t.Fatalf("claimed %s, want the last one", claimedIDs(got))
	}
	f.verify()
	// A parked session does not hold up another session of its issue.
	other := f.dispatch(f.work(PriorityUrgent).ID, keyed("b", "l"))
	issue := f.work(PriorityHigh)
	f.dispatch(issue.ID, keyed("b", "l"))
	behind := f.dispatch(issue.ID, keyed("b"))
	low := f.dispatch(f.work(PriorityLow).ID, keyed("b"))
	if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{other.ID, behind.ID, low.ID}) {
		t.Fatalf("claimed %s, want %s, %s and %s", claimedIDs(got), other.ID, behind.ID, low.ID)
	}
	f.verify()
}

func TestConcurrencyKeys_LimitsAreRaisedAndLowered(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	for range 6 {
		f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
	}
	if got := f.claim(ClaimSessionsIn{Limit: 50}); len(got) != 1 {
		t.Fatalf("claimed %d", len(got))
	}
	f.limitKey("k", 3)
	f.verify()
	got := f.claim(ClaimSessionsIn{Limit: 50})
	if len(got) != 2 {
		t.Fatalf("claimed %d more of a key with 3 places", len(got))
	}
	f.verify()
	f.limitKey("k", 2)
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: got[0].Session.ID})
	if got := f.claim(ClaimSessionsIn{Limit: 50}); len(got) != 0 {
		t.Fatalf("claimed %d of a key with 2 places, both of which are taken", len(got))
	}
	f.limitKey("k", 5)
	f.run(f.admin, DeleteConcurrencyLimit, &ConcurrencyLimitIn{Key: "k"})
	f.verify()
	if got := f.claim(ClaimSessionsIn{Limit: 50}); len(got) != 0 {
		t.Fatalf("claimed %d of a full key", len(got))
	}
	f.limitKey("k", 100)
	if got := f.claim(ClaimSessionsIn{Limit: 50}); len(got) != 3 {
		t.Fatalf("claimed %d, want the other 3", len(got))
	}
	f.verify()
}

// A session of two keys needs a place of both, and holds up none of them meanwhile.
func TestConcurrencyKeys_TwoOfASession(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first := f.dispatch(f.work(PriorityLow).ID, keyed("a", "x"))
	second := f.dispatch(f.work(PriorityLow).ID, keyed("a", "y"))
	f.dispatch(f.work(PriorityUrgent).ID, keyed("a", "x", "y"))
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: f.claimOne().Session.ID}) // the urgent one
	both := f.dispatch(f.work(PriorityLow).ID, keyed("a", "x", "y"))
	third := f.dispatch(f.work(PriorityLow).ID, keyed("a", "x"))
	if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{first.ID, second.ID}) {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	f.verify()
	if err := f.report(f.admin, first.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	f.verify()
	if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{third.ID}) {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	for _, id := range []SessionID{second.ID, third.ID} {
		if err := f.report(f.admin, id, SessionCompleted); err != nil {
			t.Fatal(err)
		}
	}
	f.verify()
	if got := f.claimOne(); got.Session.ID != both.ID {
		t.Fatalf("claimed %s", got.Session.ID)
	}
}

func TestConcurrencyKeys_FromTheIssue(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.register(CreateAgentIn{Name: "A", ConcurrencyBy: Some([]ConcurrencyField{ConcurrentRepo, ConcurrentBranch, ConcurrentProject})})
	issue := decode[Issue](t, f.run(f.admin, CreateIssue, &CreateIssueIn{Title: "Work", IssueFields: IssueFields{Repo: Some("octo/hump"), Branch: Some("a branch")}}).Body)
	s := f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some(string(agent.ID)), SessionOptions: SessionOptions{ConcurrencyKeys: Some([]string{"k", "k"})}})
	if len(s.ConcurrencyKeys) != 3 || s.ConcurrencyKeys[0] != "k" || s.ConcurrencyKeys[1] != "repo:octo/hump" || !isConcurrencyKey(s.ConcurrencyKeys[2]) {
		t.Errorf("keys %q", s.ConcurrencyKeys)
	}
	f.verify()
}

// Each agent's claims find a session when a place becomes free, also if another agent's
// session is older.
func TestConcurrencyKeys_AgentWithoutClaimersHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	running := f.dispatch(f.work(PriorityUrgent).ID, keyed("a", "k"))
	f.claimOne()
	f.dispatch(f.work(PriorityHigh).ID, keyed("idle", "k"))
	next := f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
	if err := f.report(f.admin, running.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	f.verify()
	if got := f.claim(ClaimSessionsIn{AgentID: Some("a")}); claimedIDs(got) != fmt.Sprint([]SessionID{next.ID}) {
		t.Fatalf("claimed %s", claimedIDs(got))
	}
	f.verify()
	if got := f.claim(ClaimSessionsIn{}); len(got) != 0 {
		t.Fatalf("claimed %s of a full key", claimedIDs(got))
	}
	f.verify()
}

// A place goes past sessions that can't be claimed because their agent works on another session
// of the same issue.
func TestConcurrencyKeys_BusyIssueHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, behind := range []int{3, maxReleased + 30} {
		t.Run(fmt.Sprint(behind), func(t *testing.T) {
			t.Parallel()
			f := newAgentFixture(t)
			running := f.dispatch(f.work(PriorityLow).ID, keyed("b", "k"))
			busy := f.work(PriorityLow)
			beside := f.dispatch(busy.ID, keyed("a"))
			f.claim(ClaimSessionsIn{Limit: 2})
			var first DispatchedSession
			for i := range behind {
				if s := f.dispatch(busy.ID, keyed("a", "k")); i == 0 {
					first = s
				}
			}
			next := f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
			f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
			f.wantReason(next.ID, "concurrency [k] 0")
			if err := f.report(f.admin, running.ID, SessionCompleted); err != nil {
				t.Fatal(err)
			}
			f.pass(time.Second) // more than a command moves are moved by a timer
			f.wantReason(next.ID, "no_claimer [] 0")
			f.verify()
			if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{next.ID}) {
				t.Fatalf("claimed %s, want %s", claimedIDs(got), next.ID)
			}
			f.verify()
			for _, id := range []SessionID{beside.ID, next.ID} {
				if err := f.report(f.admin, id, SessionCompleted); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.claimOne(); got.Session.ID != first.ID {
				t.Fatalf("claimed %s, want %s", got.Session.ID, first.ID)
			}
			f.verify()
		})
	}
}

// A session that has been offered a place passes it on when its agent begins to work on another
// session of the same issue.
func TestConcurrencyKeys_PlaceIsOfferedOn(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	running := f.dispatch(f.work(PriorityUrgent).ID, keyed("b", "k"))
	f.claimOne()
	busy := f.work(PriorityLow)
	beside := f.dispatch(busy.ID, keyed("a"))
	f.dispatch(busy.ID, keyed("a", "k"))
	next := f.dispatch(f.work(PriorityLow).ID, keyed("a", "k"))
	if err := f.report(f.admin, running.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if got := f.claimOne(); got.Session.ID != beside.ID {
		t.Fatalf("claimed %s, want %s", got.Session.ID, beside.ID)
	}
	f.verify()
	if got := f.claim(ClaimSessionsIn{Limit: 50}); claimedIDs(got) != fmt.Sprint([]SessionID{next.ID}) {
		t.Fatalf("claimed %s, want %s", claimedIDs(got), next.ID)
	}
	f.verify()
}

// A session that is offered a place during a claim of several comes before those that it precedes.
func TestConcurrencyKeys_PlaceIsOfferedOnWithinAClaim(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	running := f.dispatch(f.work(PriorityUrgent).ID, keyed("b", "k"))
	f.claimOne()
	busy := f.work(PriorityMedium)
	beside := f.dispatch(busy.ID, keyed("a"))
	f.dispatch(busy.ID, keyed("a", "k"))
	next := f.dispatch(f.work(PriorityMedium).ID, keyed("a", "k"))
	low := f.dispatch(f.work(PriorityLow).ID, keyed("a"))
	if err := f.report(f.admin, running.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if got := f.claim(ClaimSessionsIn{Limit: 3}); claimedIDs(got) != fmt.Sprint([]SessionID{beside.ID, next.ID, low.ID}) {
		t.Fatalf("claimed %s, want %s, %s and %s", claimedIDs(got), beside.ID, next.ID, low.ID)
	}
	f.verify()
}

// A place goes past a session whose issue the claimer may not see: without another claimer the
// place would never be taken.
func TestConcurrencyKeys_HiddenSessionHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	bot := f.token(f.home, &CreateTokenIn{AgentID: "bot"})
	claim := func() []ClaimedSession {
		return decode[ClaimedSessions](t, f.run(bot, ClaimSessions, &ClaimSessionsIn{Limit: 5}).Body).Sessions
	}
	running := f.dispatch(f.work(PriorityLow).ID, keyed("bot", "k"))
	claim()
	var hidden []DispatchedSession
	for range 2 {
		issue := f.work(PriorityHigh)
		f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "nobody"})
		hidden = append(hidden, f.dispatch(issue.ID, keyed("bot", "k")))
	}
	next := f.dispatch(f.work(PriorityLow).ID, keyed("bot", "k"))
	last := f.dispatch(f.work(PriorityLow).ID, keyed("bot", "k"))
	if err := f.report(f.admin, running.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	f.verify()
	if got := claim(); claimedIDs(got) != fmt.Sprint([]SessionID{next.ID}) {
		t.Fatalf("claimed %s, want %s", claimedIDs(got), next.ID)
	}
	f.verify()
	if got := claim(); len(got) != 0 {
		t.Fatalf("claimed %s of a full key", claimedIDs(got))
	}
	if err := f.report(f.admin, next.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	// An admin sees them all.
	for _, id := range []SessionID{hidden[0].ID, hidden[1].ID, last.ID} {
		if got := f.claimOne(); got.Session.ID != id {
			t.Fatalf("claimed %s, want %s", got.Session.ID, id)
		}
		f.verify()
		if err := f.report(f.admin, id, SessionCompleted); err != nil {
			t.Fatal(err)
		}
	}
}

// A lane sees no other session, so the refusal does not name the one that holds the key.
func TestConcurrencyKeys_FullForALane(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	agent := f.register(CreateAgentIn{Name: "A", ConcurrencyBy: Some([]ConcurrencyField{ConcurrentRepo})})
	bot := f.token(f.home, &CreateTokenIn{AgentID: string(agent.ID)})
	register := func(status SessionStatus) RegisteredSession {
		issue := decode[Issue](t, f.run(f.admin, CreateIssue, &CreateIssueIn{Title: "Work", IssueFields: IssueFields{Repo: Some("octo/hump")}}).Body)
		in := &RegisterSessionIn{IssueID: string(issue.ID), Provider: "p", Status: status}
		return decode[RegisteredSession](t, f.run(bot, RegisterSession, in).Body)
	}
	register(SessionRunning)
	waits := register(SessionCreated)
	wantConflict(t, f.report(*waits.LaneToken, waits.Session.ID, SessionRunning), SessionCreated, false)
	f.verify()
}
