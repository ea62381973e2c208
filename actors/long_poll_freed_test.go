package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

// freedFixture has an agent that works on one session, of provider p.
type freedFixture struct {
	*workspaceFixture
	agent   string
	issue   tracker.IssueID // of the session that the agent works on
	running tracker.SessionID
}

func newFreedFixture(t *testing.T, most int64) *freedFixture {
	y := &freedFixture{workspaceFixture: newWorkspaceFixture(t)}
	in := &tracker.CreateAgentIn{Name: "A", MaxConcurrentSessions: tracker.Some(most)}
	y.agent = string(decodeBody[tracker.Agent](t, y.must(tracker.CreateAgent, in).Body).ID)
	y.issue = y.work()
	y.running = y.queue(y.issue, "p")
	if got := (<-y.claim("p", 0)).sessions(t); len(got) != 1 || got[0].Session.ID != y.running {
		t.Fatalf("claimed %+v", got)
	}
	return y
}

func (y *freedFixture) work() tracker.IssueID {
	y.t.Helper()
	return decodeBody[tracker.Issue](y.t, y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Work"}).Body).ID
}

// queue dispatches an issue to the agent.
func (y *freedFixture) queue(issue tracker.IssueID, provider string) tracker.SessionID {
	y.t.Helper()
	in := &tracker.DispatchIssueIn{ID: string(issue), AgentID: tracker.Some(y.agent), Provider: tracker.Some(provider)}
	return decodeBody[tracker.DispatchedSession](y.t, y.must(tracker.DispatchIssue, in).Body).ID
}

func (y *freedFixture) claim(provider string, wait int) <-chan answer {
	return y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{
		AgentID: tracker.Some(y.agent), Provider: tracker.Some(provider), LeaseSeconds: 3600, Wait: wait,
	})
}

// wantClaimed checks that a claim was answered with a session as soon as it could be.
func (y *freedFixture) wantClaimed(claim <-chan answer, id tracker.SessionID) {
	y.t.Helper()
	if a := <-claim; len(a.sessions(y.t)) != 1 || a.sessions(y.t)[0].Session.ID != id || a.after > time.Second {
		y.t.Errorf("got %s after %s, want session %s", a.reply.Body, a.after, id)
	}
}

func (y *freedFixture) complete(id tracker.SessionID) {
	y.t.Helper()
	y.must(tracker.ReportSession, &tracker.ReportSessionIn{ID: id, Status: tracker.Some(tracker.SessionCompleted)})
}

// A place of an agent goes to a claim that waits for it, although sessions of a provider that
// nobody claims for come first.
func TestFreedPlace_IsNotLostToAnIdleProvider(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]int{"one ahead": 1, "many ahead": 150} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newFreedFixture(t, 1)
				for range ahead {
					y.queue(y.work(), "q")
				}
				next := y.queue(y.work(), "p")
				claim := y.claim("p", 20)
				y.complete(y.running)
				y.wantClaimed(claim, next)
				// The service remembers the providers, and notes those that come anew.
				other := y.queue(y.work(), "r")
				claim = y.claim("r", 20)
				y.complete(next)
				y.wantClaimed(claim, other)
			})
		})
	}
}

// The service remembers a number of providers of an agent's queue. The others are not forgotten.
func TestFreedPlace_OfManyProviders(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ ahead, providers int }{
		"as many as are remembered":        {0, 16},
		"one more":                         {0, 17},
		"one more, behind many sessions":   {150, 17},
		"many":                             {0, 50},
		"more than are looked at":          {0, 150},
		"the last behind the queue's head": {66, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newFreedFixture(t, 1)
				for range row.ahead {
					y.queue(y.work(), "q")
				}
				var next tracker.SessionID
				for n := range row.providers {
					next = y.queue(y.work(), fmt.Sprint("p", n))
				}
				last := fmt.Sprint("p", row.providers-1)
				claim := y.claim(last, 20)
				y.complete(y.running)
				y.wantClaimed(claim, next)
				// The agent has its providers in memory now.
				for range 2 {
					running := next
					next = y.queue(y.work(), last)
					claim = y.claim(last, 20)
					y.complete(running)
					y.wantClaimed(claim, next)
				}
			})
		})
	}
}

// Places that become free together go to as many claims of one provider.
func TestFreedPlace_OfManyProvidersByAHigherLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newFreedFixture(t, 1)
		for n := range 100 {
			y.queue(y.work(), fmt.Sprint("p", n))
		}
		first, second := y.queue(y.work(), "last"), y.queue(y.work(), "last")
		one, two := y.claim("last", 20), y.claim("last", 20)
		y.must(tracker.PatchAgent, &tracker.PatchAgentIn{ID: y.agent, MaxConcurrentSessions: tracker.Some(int64(3))})
		y.wantClaimed(one, first)
		y.wantClaimed(two, second)
	})
}

// An agent is at one session of an issue at a time.
func TestFreedPlace_OfAnIssue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newFreedFixture(t, 10)
		y.queue(y.work(), "q")
		next := y.queue(y.issue, "p")
		claim := y.claim("p", 20)
		y.complete(y.running)
		y.wantClaimed(claim, next)
	})
}

func TestFreedPlace_ByAHigherLimit(t *testing.T) {
	t.Parallel()
	for name, raise := range map[string]func(y *freedFixture){
		"raised": func(y *freedFixture) {
			y.must(tracker.PatchAgent, &tracker.PatchAgentIn{ID: y.agent, MaxConcurrentSessions: tracker.Some(int64(3))})
		},
		"removed": func(y *freedFixture) {
			y.must(tracker.PatchAgent, &tracker.PatchAgentIn{ID: y.agent, MaxConcurrentSessions: tracker.Opt[int64]{Set: true, Null: true}})
		},
		"gone with the agent": func(y *freedFixture) { y.must(tracker.DeleteAgent, &tracker.AgentByIDIn{ID: y.agent}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newFreedFixture(t, 1)
				for range 70 {
					y.queue(y.work(), "q")
				}
				first, second := y.queue(y.work(), "p"), y.queue(y.work(), "p")
				one, two := y.claim("p", 20), y.claim("p", 20)
				raise(y)
				y.wantClaimed(one, first)
				y.wantClaimed(two, second)
			})
		})
	}
}
