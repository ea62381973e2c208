package actors

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// workspaceFixture is an engine with one workspace in it.
type workspaceFixture struct {
	*testEngine
	workspace storage.ID
	team      storage.ID
}

func newWorkspaceFixture(t testing.TB, adjust ...func(*Config)) *workspaceFixture {
	t.Helper()
	y := &workspaceFixture{testEngine: setup(t, append(adjust, withRoot)...)}
	reply, err := y.engine.Do(request(storage.ID{}), tracker.OnboardWorkspace, &tracker.NewWorkspaceIn{Name: "Yard", Slug: "yard"})
	if err != nil {
		t.Fatal(err)
	}
	home := decodeBody[tracker.Onboarded](t, reply.Body)
	y.workspace, _ = storage.ParseID(home.Workspace.ID)
	y.team, _ = storage.ParseID(home.Team.ID)
	return y
}

func decodeBody[T any](t testing.TB, body []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
	return v
}

// worker returns a caller with all rights, except for what is hidden from it. Its lanes
// are made with the operator's token.
func worker(id string, hidden ...storage.ID) tracker.Caller {
	c := tracker.Caller{Principal: tracker.Principal{Type: tracker.ActorUser, ID: id, Token: tracker.OperatorPrincipal().Token}, Role: tracker.RoleMember, Level: tracker.Write}
	for _, team := range hidden {
		c.Hidden = map[storage.ID]struct{}{team: {}}
	}
	return c
}

// as runs an operation as a caller, with a deadline after the longest wait.
func (y *workspaceFixture) as(who tracker.Caller, op *tracker.Op, in any) (tracker.Reply, error) {
	req := request(y.workspace)
	req.Caller = who
	req.Deadline = time.Now().Add(40 * time.Second)
	return y.engine.Do(req, op, in)
}

func (y *workspaceFixture) must(op *tracker.Op, in any) tracker.Reply {
	y.t.Helper()
	reply, err := y.as(tracker.System, op, in)
	if err != nil {
		y.t.Fatalf("%s: %v", op.Name, err)
	}
	return reply
}

// dispatch makes an issue and a session of it.
func (y *workspaceFixture) dispatch(agent string) tracker.SessionID {
	y.t.Helper()
	issue := decodeBody[tracker.Issue](y.t, y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Work"}).Body)
	return decodeBody[tracker.DispatchedSession](y.t, y.must(tracker.DispatchIssue, &tracker.DispatchIssueIn{ID: string(issue.ID), AgentID: tracker.Some(agent)}).Body).ID
}

// laneDo runs an operation with a lane token, like a request.
func (y *workspaceFixture) laneDo(lane string, op *tracker.Op, in any) (tracker.Reply, error) {
	req := request(y.workspace)
	req.Credential = lane
	if err := y.engine.Admit(req, op); err != nil {
		return tracker.Reply{}, err
	}
	return y.engine.Do(req, op, in)
}

// answer is the answer to a request that waited in the background, with the time that
// it took.
type answer struct {
	reply tracker.Reply
	err   error
	after time.Duration
}

func (y *workspaceFixture) waiting(who tracker.Caller, op *tracker.Op, in any) <-chan answer {
	done := make(chan answer, 1)
	began := time.Now()
	go func() {
		reply, err := y.as(who, op, in)
		done <- answer{reply, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

func (a answer) sessions(t testing.TB) []tracker.ClaimedSession {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	return decodeBody[tracker.ClaimedSessions](t, a.reply.Body).Sessions
}

func TestLongPoll_AClaimGetsWhatIsDispatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		other := y.waiting(worker("b"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{AgentID: tracker.Some("y"), Wait: 20})
		done := y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 20})
		pass(5 * time.Second)
		id := y.dispatch("x")
		a := <-done
		if got := a.sessions(t); len(got) != 1 || got[0].Session.ID != id || a.after > 6*time.Second {
			t.Errorf("got %+v after %s", got, a.after)
		}
		if a := <-other; len(a.sessions(t)) != 0 || a.after != 20*time.Second {
			t.Errorf("who waits for another agent's got %s after %s", a.reply.Body, a.after)
		}
		if n := y.engine.Stats().Waiting; n != 0 {
			t.Errorf("%d are waiting", n)
		}
	})
}

func TestLongPoll_OneIsWokenForOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		var done []<-chan answer
		for n := range 100 {
			in := &tracker.ClaimSessionsIn{Wait: 30}
			if n%2 == 1 {
				in.AgentID = tracker.Some("x")
			}
			done = append(done, y.waiting(worker(fmt.Sprint(n)), tracker.ClaimSessions, in))
		}
		before := y.engine.Stats().Commands
		for range 20 {
			y.dispatch("x")
		}
		synctest.Wait()
		if n := y.engine.Stats().Commands - before; n != 60 { // two to dispatch, one to claim
			t.Errorf("%d commands were run", n)
		}
		for n, d := range done {
			want := 0
			if n < 20 { // in the order of their arrival
				want = 1
			}
			if got := (<-d).sessions(t); len(got) != want {
				t.Errorf("waiter %d got %d sessions, want %d", n, len(got), want)
			}
		}
	})
}

func TestLongPoll_PassesOnWhatItCannotUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		blind := y.waiting(worker("blind", y.team), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
		left := request(y.workspace)
		left.Caller, left.Deadline = worker("left"), time.Now().Add(40*time.Second)
		left.Gone = func() bool { return true }
		go func() { _, _ = y.engine.Do(left, tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30}) }()
		synctest.Wait()
		done := y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
		y.dispatch("x")
		a := <-done
		if got := a.sessions(t); len(got) != 1 || a.after > time.Second {
			t.Errorf("got %s after %s", a.reply.Body, a.after)
		}
		if a := <-blind; len(a.sessions(t)) != 0 {
			t.Errorf("who can't see the issue got %s", a.reply.Body)
		}
	})
}

func TestLongPoll_AFreedAgentIsGivenMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		agent := decodeBody[tracker.Agent](t, y.must(tracker.CreateAgent, &tracker.CreateAgentIn{Name: "A", MaxConcurrentSessions: tracker.Some(int64(1))}).Body)
		y.dispatch(string(agent.ID))
		y.dispatch(string(agent.ID))
		reply, err := y.as(worker("first"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{})
		if err != nil {
			t.Fatal(err)
		}
		first := decodeBody[tracker.ClaimedSessions](t, reply.Body).Sessions[0]
		done := y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{LeaseSeconds: 10, Wait: 30})
		pass(time.Second)
		if _, err := y.laneDo(first.LaneToken, tracker.ReportSession, &tracker.ReportSessionIn{ID: first.Session.ID, Status: tracker.Some(tracker.SessionCompleted)}); err != nil {
			t.Fatal(err)
		}
		if a := <-done; len(a.sessions(t)) != 1 || a.after > 2*time.Second {
			t.Errorf("got %s after %s", a.reply.Body, a.after)
		}
		// The expiry of a lease wakes claimers, too.
		done = y.waiting(worker("b"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
		if a := <-done; len(a.sessions(t)) != 1 || a.after < 9*time.Second || a.after > 12*time.Second {
			t.Errorf("got %s after %s", a.reply.Body, a.after)
		}
	})
}

func TestLongPoll_PollSeesChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		id := y.dispatch("x")
		watching := y.waiting(worker("w"), tracker.PollSession, &tracker.PollSessionIn{ID: id, Wait: 30})
		idle := y.waiting(worker("w"), tracker.PollSession, &tracker.PollSessionIn{ID: y.dispatch("x"), Wait: 7})
		pass(3 * time.Second)
		y.must(tracker.LogActivities, &tracker.LogActivitiesIn{ID: id, ActivityFields: tracker.ActivityFields{Message: tracker.Some("hm")}})
		a := <-watching
		if a.err != nil || a.after != 3*time.Second || len(decodeBody[tracker.PolledSession](t, a.reply.Body).Activities) != 1 {
			t.Errorf("got %s, %v after %s", a.reply.Body, a.err, a.after)
		}
		if a := <-idle; a.err != nil || a.after != 7*time.Second || len(a.reply.Body) == 0 {
			t.Errorf("got %s, %v after %s", a.reply.Body, a.err, a.after)
		}
	})
}

func TestLongPoll_EndsWithTheShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		id := y.dispatch("x")
		y.must(tracker.ClaimSessions, &tracker.ClaimSessionsIn{LeaseSeconds: 3600})
		for _, waiting := range []<-chan answer{
			y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30}),
			y.waiting(worker("a"), tracker.PollSession, &tracker.PollSessionIn{ID: id, Wait: 30}),
		} {
			pass(time.Second)
			y.local.lose(y.engine, y.engine.shardOf(y.workspace).number)
			a := <-waiting
			wantOutcome(t, a.err, "not_applied")
			if a.after > 2*time.Second {
				t.Errorf("answered after %s", a.after)
			}
		}
	})
}

func TestLongPoll_EndsWithTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		claim := y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
		if err := y.engine.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if a := <-claim; a.after > time.Second {
			t.Errorf("answered after %s", a.after)
		}
	})
}

func TestLongPoll_NotMoreThanThereMayBe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, func(c *Config) { c.Limits.WorkspaceWaiting = 2 })
		first := y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
		second := y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
		if a := <-y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30}); len(a.sessions(t)) != 0 || a.after != 0 {
			t.Errorf("got %s after %s", a.reply.Body, a.after)
		}
		<-first
		<-second
	})
}

// 64 claimers, some of which die with sessions: each session ends once, and no claimer
// gets one that another still holds.
func TestClaimers_NothingIsHeldTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const claimers, all = 64, 600
		y := newWorkspaceFixture(t)
		for n := range all {
			y.dispatch(fmt.Sprint("agent", n%5))
		}
		var mu sync.Mutex
		holder := map[tracker.SessionID]string{}
		ended := map[tracker.SessionID]int{}
		var deaths atomic.Int64
		var wg sync.WaitGroup
		for n := range claimers {
			wg.Go(func() {
				name := fmt.Sprint("claimer", n)
				for round := 0; ; round++ {
					reply, err := y.as(worker(name), tracker.ClaimSessions, &tracker.ClaimSessionsIn{LeaseSeconds: 10, Wait: 30, Limit: 1 + n%3})
					if err != nil {
						t.Error(err)
						return
					}
					got := decodeBody[tracker.ClaimedSessions](t, reply.Body).Sessions
					if len(got) == 0 {
						return
					}
					for i, s := range got {
						mu.Lock()
						if other := holder[s.Session.ID]; other != "" {
							t.Errorf("%s was given what %s holds", name, other)
						}
						holder[s.Session.ID] = name
						mu.Unlock()
						if (n*31+round*17+i)%9 == 0 { // it dies, and only this test knows
							deaths.Add(1)
							pass(9 * time.Second)
							mu.Lock()
							delete(holder, s.Session.ID)
							mu.Unlock()
							pass(3 * time.Second)
							_, err := y.laneDo(s.LaneToken, tracker.ReportSession, &tracker.ReportSessionIn{ID: s.Session.ID, Status: tracker.Some(tracker.SessionCompleted)})
							wantCode(t, err, tracker.CodeConflict)
							break // its other sessions expire as well
						}
						y.finish(name, &s, &mu, holder, ended)
					}
					mu.Lock()
					for _, s := range got {
						if holder[s.Session.ID] == name {
							delete(holder, s.Session.ID)
						}
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		y.settled(all, ended)
		t.Logf("%d deaths", deaths.Load())
	})
}

func (y *workspaceFixture) finish(name string, s *tracker.ClaimedSession, mu *sync.Mutex, holder map[tracker.SessionID]string, ended map[tracker.SessionID]int) {
	for range 3 {
		if _, err := y.laneDo(s.LaneToken, tracker.LogActivities, &tracker.LogActivitiesIn{ID: s.Session.ID, ActivityFields: tracker.ActivityFields{Message: tracker.Some("on it")}}); err != nil {
			y.t.Error(err)
		}
		pass(100 * time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	if holder[s.Session.ID] == name {
		delete(holder, s.Session.ID)
	}
	if _, err := y.laneDo(s.LaneToken, tracker.ReportSession, &tracker.ReportSessionIn{ID: s.Session.ID, Status: tracker.Some(tracker.SessionCompleted)}); err != nil {
		y.t.Error(err)
	}
	ended[s.Session.ID]++
}

// settled checks the results of the sessions in the event log.
func (y *workspaceFixture) settled(all int, ended map[tracker.SessionID]int) {
	y.t.Helper()
	statuses := map[tracker.SessionStatus]int{}
	cursor := tracker.Opt[string]{}
	for {
		page := decodeBody[struct {
			Sessions   []tracker.SessionSummary
			NextCursor string
		}](y.t, y.must(tracker.ListSessions, &tracker.ListSessionsIn{Limit: 100, Summary: "1", Cursor: cursor}).Body)
		for _, s := range page.Sessions {
			statuses[s.Status]++
			if n := ended[s.ID]; s.Status == tracker.SessionCompleted && n != 1 {
				y.t.Errorf("session %s was finished %d times", s.ID, n)
			}
		}
		if page.NextCursor == "" {
			break
		}
		cursor = tracker.Some(page.NextCursor)
	}
	if done := statuses[tracker.SessionCompleted] + statuses[tracker.SessionFailed]; done != all || statuses[tracker.SessionCompleted] < all*9/10 {
		y.t.Errorf("sessions are %v", statuses)
	}
	var left []string
	v := storage.NewView(y.store.State(), y.engine.shardOf(y.workspace).number, storage.SystemID)
	_, err := tracker.ReadDue(&v, nil, time.Now().Add(time.Hour), func(d tracker.DueTimer) bool {
		left = append(left, d.Kind)
		return true
	})
	if err != nil {
		y.t.Fatal(err)
	}
	if slices.Contains(left, "session.lease") {
		y.t.Errorf("timers are left: %v", left)
	}
}

// A session that a waiting claim could get says that it waits for nothing; once the claims
// have gone it says that there is none.
func TestLongPoll_SessionsShowWhetherAClaimWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		blind := y.waiting(worker("blind", y.team), tracker.ClaimSessions, &tracker.ClaimSessionsIn{AgentID: tracker.Some("x"), Wait: 20})
		id := y.dispatch("x")
		reason := func() string {
			reply, err := y.as(worker("a"), tracker.SessionByID, &tracker.SessionByIDIn{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			w := decodeBody[tracker.ShownSession](t, reply.Body).WaitingFor
			if w == nil {
				return ""
			}
			return string(w.Reason)
		}
		if got := reason(); got != "" {
			t.Errorf("with a waiting claim the session waits for %s", got)
		}
		<-blind
		if got := reason(); got != string(tracker.WaitingNoClaimer) {
			t.Errorf("without a waiting claim the session waits for %q", got)
		}
		if n := len(y.engine.waits.stripe(y.workspace).claims); n != 0 {
			t.Errorf("%d counts of waiting claims are left", n)
		}
	})
}
