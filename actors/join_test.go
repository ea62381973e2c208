package actors

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// claimThenDispatch has a worker wait for a claim, and returns it with an issue to dispatch.
func (y *workspaceFixture) claimThenDispatch() (claim <-chan answer, dispatch func() (tracker.Reply, error)) {
	issue := decodeBody[tracker.Issue](y.t, y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Work"}).Body)
	claim = y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
	return claim, func() (tracker.Reply, error) {
		return y.as(tracker.System, tracker.DispatchIssue, &tracker.DispatchIssueIn{ID: string(issue.ID), AgentID: tracker.Some("x")})
	}
}

func TestJoin_AClaimIsInTheBatchOfItsDispatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		claim, dispatch := y.claimThenDispatch()
		before := y.engine.Stats()
		reply, err := dispatch()
		if err != nil {
			t.Fatal(err)
		}
		a := <-claim
		if got, id := a.sessions(t), decodeBody[tracker.DispatchedSession](t, reply.Body).ID; len(got) != 1 || got[0].Session.ID != id {
			t.Errorf("got %s, want session %s", a.reply.Body, id)
		}
		synctest.Wait()
		now := y.engine.Stats()
		if n := now.Batches - before.Batches; n != 1 {
			t.Errorf("a dispatch and its claim were %d batches", n)
		}
		if now.UnansweredCommands != 0 || now.Waiting != 0 {
			t.Errorf("%d commands are unanswered, %d requests wait", now.UnansweredCommands, now.Waiting)
		}
	})
}

// A claim whose batch was certainly not applied looks by itself, and goes on waiting.
func TestJoin_ARefusedBatchClaimsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		claim, dispatch := y.claimThenDispatch()
		y.local.setFate(func(int, storage.Shard) fate { return fails })
		_, err := dispatch()
		wantOutcome(t, err, "not_applied")
		y.local.setFate(nil)
		synctest.Wait()
		if n := y.engine.Stats().Waiting; n != 1 {
			t.Fatalf("%d requests wait, want 1", n)
		}
		reply, err := dispatch()
		if err != nil {
			t.Fatal(err)
		}
		a := <-claim
		if got, id := a.sessions(t), decodeBody[tracker.DispatchedSession](t, reply.Body).ID; len(got) != 1 || got[0].Session.ID != id {
			t.Errorf("got %s, want session %s", a.reply.Body, id)
		}
	})
}

// A claim shares the doubt about its batch.
func TestJoin_AnUnknownOutcomeIsTheClaimsToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		claim, dispatch := y.claimThenDispatch()
		next := int(y.local.proposed.Load()) + 1
		y.local.setFate(func(n int, _ storage.Shard) fate {
			if n == next {
				return failsApplied
			}
			return applies
		})
		_, err := dispatch()
		wantOutcome(t, err, "unknown")
		a := <-claim
		wantOutcome(t, a.err, "unknown")
	})
}

// The token of a waiting claim is revoked, or the client is gone. The session goes to the next
// claimer.
func TestJoin_LooksAtTheClaimerAgain(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(p *deliveryFixture, o onboarded, token tracker.CreatedToken, gone *bool){
		"revoked": func(p *deliveryFixture, o onboarded, token tracker.CreatedToken, _ *bool) { p.deleteToken(o, token.ID) },
		"gone":    func(_ *deliveryFixture, _ onboarded, _ tracker.CreatedToken, gone *bool) { *gone = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
				token, gone := p.token(o, "write"), false
				claim := func(credential string, left func() bool) <-chan answer {
					req := p.admitted(o.id, credential, tracker.ClaimSessions)
					req.Deadline, req.Gone = time.Now().Add(40*time.Second), left
					done := make(chan answer, 1)
					go func() {
						reply, err := p.engine.Do(req, tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
						done <- answer{reply: reply, err: err}
					}()
					synctest.Wait()
					return done
				}
				first := claim(token.Secret, func() bool { return gone })
				second := claim(o.credential, nil)
				var issue tracker.Issue
				p.mustAs(o, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Work"}, &issue)
				spoil(p, o, token, &gone)
				p.mustAs(o, tracker.DispatchIssue, &tracker.DispatchIssueIn{ID: string(issue.ID)}, nil)
				if a := <-first; a.err == nil {
					t.Errorf("the first claimer got %s", a.reply.Body)
				}
				if a := <-second; len(a.sessions(t)) != 1 {
					t.Errorf("the second claimer got %s", a.reply.Body)
				}
			})
		})
	}
}

// A claim is not made while the disk has no space for it, although the cancellation that frees its
// session is.
func TestJoin_NotWithoutSpace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var short atomic.Bool
		y := newWorkspaceFixture(t, func(c *Config) {
			c.Shortage = func() storage.Shortage {
				if short.Load() {
					return storage.Short
				}
				return storage.Ample
			}
		})
		agent := decodeBody[tracker.Agent](t, y.must(tracker.CreateAgent, &tracker.CreateAgentIn{Name: "A", MaxConcurrentSessions: tracker.Some(int64(1))}).Body)
		first := y.dispatch(string(agent.ID))
		y.dispatch(string(agent.ID))
		if _, err := y.as(worker("first"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{}); err != nil {
			t.Fatal(err)
		}
		claim := y.waiting(worker("a"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30})
		short.Store(true)
		y.must(tracker.CancelSession, &tracker.CancelSessionIn{ID: first})
		if a := <-claim; a.err == nil {
			t.Errorf("the claim is answered %s", a.reply.Body)
		}
	})
}

// Claims whose time runs out at any moment meet dispatches. Each session is claimed once, and
// none is left while a claimer waits.
func TestJoin_ClaimsThatRunOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		random := rand.New(rand.NewPCG(1, 2))
		const sessions, claimers = 60, 8
		var mu sync.Mutex
		claimed := map[tracker.SessionID]int{}
		var all sync.WaitGroup
		over := make(chan struct{})
		for n := range claimers {
			waits := random.IntN(3) + 1
			all.Go(func() {
				for {
					reply, err := y.as(worker(fmt.Sprint(n)), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: waits, LeaseSeconds: 3600})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, s := range decodeBody[tracker.ClaimedSessions](t, reply.Body).Sessions {
						claimed[s.Session.ID]++
					}
					mu.Unlock()
					select {
					case <-over:
						return
					default:
					}
				}
			})
		}
		for range sessions {
			// Often just when the waits of claims end.
			pass(time.Duration(random.IntN(4)) * 500 * time.Millisecond)
			y.dispatch("x")
		}
		pass(10 * time.Second)
		close(over)
		all.Wait()
		if len(claimed) != sessions {
			t.Errorf("%d of %d sessions were claimed", len(claimed), sessions)
		}
		for id, n := range claimed {
			if n != 1 {
				t.Errorf("session %s was claimed %d times", id, n)
			}
		}
	})
}

// Two sessions come in one batch. The claim that waits longest can have both, and takes the more urgent
// one, which the other claim can't have. The other claim gets the session that is left.
func TestJoin_WhatAClaimDoesNotTakeGoesToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		wait := func(provider tracker.Opt[string]) <-chan answer {
			defer synctest.Wait()
			return y.waiting(worker("w"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30, AgentID: tracker.Some("a"), Provider: provider})
		}
		wide, narrow := wait(tracker.Opt[string]{}), wait(tracker.Some("p1"))
		y.must(tracker.PutHold, &tracker.PutHoldIn{HoldIn: tracker.HoldIn{Scope: "agent:a"}, Reason: "Both at once."})
		for i, priority := range []tracker.IssuePriority{tracker.PriorityLow, tracker.PriorityUrgent} {
			in := &tracker.CreateIssueIn{Title: "Work", IssueFields: tracker.IssueFields{Priority: tracker.Some(priority)}}
			issue := decodeBody[tracker.Issue](t, y.must(tracker.CreateIssue, in).Body)
			y.must(tracker.DispatchIssue, &tracker.DispatchIssueIn{ID: string(issue.ID), AgentID: tracker.Some("a"), Provider: tracker.Some(fmt.Sprint("p", i+1))})
		}
		began := time.Now()
		y.must(tracker.DeleteHold, &tracker.HoldIn{Scope: "agent:a"})
		for provider, claim := range map[string]<-chan answer{"p2": wide, "p1": narrow} {
			if got := (<-claim).sessions(t); len(got) != 1 || got[0].Session.Provider != provider || time.Since(began) > time.Second {
				t.Errorf("%d sessions after %s, want that of %s", len(got), time.Since(began), provider)
			}
		}
	})
}

// Claims are not made in the batch of what they wait for while other workspaces leave no memory for more changes. They are
// made after it.
func TestJoin_NotWithoutMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, fewChanges)
		for range 2 {
			y.must(tracker.PutHold, &tracker.PutHoldIn{HoldIn: tracker.HoldIn{Scope: "agent:a"}, Reason: "Both at once."})
			y.dispatch("a")
		}
		var claims []<-chan answer
		for range 2 {
			claims = append(claims, y.waiting(worker("w"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 30, AgentID: tracker.Some("a")}))
			synctest.Wait()
		}
		m := &y.engine.changes
		more := m.small(5 * m.most)
		freed := make(chan error, 1)
		go func() {
			_, err := y.as(tracker.System, tracker.DeleteHold, &tracker.HoldIn{Scope: "agent:a"})
			freed <- err
		}()
		synctest.Wait()
		// As much as may be in use, and more as soon as the command has run.
		most, _ := m.take(changeUse{all: farOver * m.most}, false, func(*changeTurn) {})
		last, _ := m.take(changeUse{all: 1}, false, func(*changeTurn) {})
		more()
		if err := <-freed; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.end(most)
		m.end(last)
		for _, claim := range claims {
			if got := (<-claim).sessions(t); len(got) != 1 {
				t.Errorf("%d sessions were claimed, want 1", len(got))
			}
		}
		synctest.Wait()
		if used, waits := m.used.Load(), m.waits(); used != 0 || waits != 0 {
			t.Errorf("%d bytes are taken, and %d workspaces wait for memory", used, waits)
		}
		if now := y.engine.Stats(); now.UnansweredCommands != 0 || now.Waiting != 0 {
			t.Errorf("%d commands are unanswered, %d requests wait", now.UnansweredCommands, now.Waiting)
		}
	})
}
