package actors

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

// keyed has a claim wait under an Idempotency-Key.
func (b *testEngine) keyed(req *tracker.Request, wait int) <-chan answer {
	req.Deadline, req.Idempotency = time.Now().Add(40*time.Second), &tracker.Idempotency{Key: "key"}
	done, began := make(chan answer, 1), time.Now()
	go func() {
		reply, err := b.engine.Do(req, tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: wait, LeaseSeconds: 3600})
		done <- answer{reply, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

func (y *workspaceFixture) keyedClaim(wait int) <-chan answer {
	req := request(y.workspace)
	req.Caller = worker("a")
	return y.keyed(req, wait)
}

// A repeat of a claim that waits gets the answer of the first one.
func TestLongPoll_ARepeatedClaimGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		first, repeat := y.keyedClaim(10), y.keyedClaim(10)
		pass(time.Second)
		id := y.dispatch("x")
		a := <-first
		if got := a.sessions(t); len(got) != 1 || got[0].Session.ID != id || a.reply.Replayed {
			t.Errorf("got %s, replayed %t, want session %s", a.reply.Body, a.reply.Replayed, id)
		}
		b := <-repeat
		if b.err != nil || string(b.reply.Body) != string(a.reply.Body) || !b.reply.Replayed {
			t.Errorf("the repeat got %s, %v, replayed %t, want %s", b.reply.Body, b.err, b.reply.Replayed, a.reply.Body)
		}
	})
}

// An answer with nothing is not kept, and a repeat looks anew.
func TestLongPoll_AClaimOfNothingIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		if a := <-y.keyedClaim(10); len(a.sessions(t)) != 0 || a.after != 10*time.Second {
			t.Errorf("got %s after %s", a.reply.Body, a.after)
		}
		id := y.dispatch("x")
		if a := <-y.keyedClaim(10); len(a.sessions(t)) != 1 || a.sessions(t)[0].Session.ID != id || a.reply.Replayed {
			t.Errorf("the repeat got %s, want session %s", a.reply.Body, id)
		}
	})
}

// A repeat that is woken takes nothing, and the next claim that waits is woken in its place.
func TestLongPoll_ARepeatPassesOnItsWakeUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		first, repeat := y.keyedClaim(20), y.keyedClaim(20)
		other := y.waiting(worker("b"), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 20})
		pass(time.Second)
		y.dispatch("x")
		a := <-first
		id := y.dispatch("x")
		if b := <-repeat; string(b.reply.Body) != string(a.reply.Body) || b.after != time.Second {
			t.Errorf("the repeat got %s after %s, want %s", b.reply.Body, b.after, a.reply.Body)
		}
		if c := <-other; len(c.sessions(t)) != 1 || c.sessions(t)[0].Session.ID != id || c.after != time.Second {
			t.Errorf("the next claim got %s after %s, want session %s", c.reply.Body, c.after, id)
		}
	})
}

// A claim looks a last time for a caller that is still there, and has its rights still.
func TestLongPoll_TheLastLookIsAdmitted(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(p *deliveryFixture, o onboarded, token tracker.CreatedToken, gone *atomic.Bool){
		"revoked": func(p *deliveryFixture, o onboarded, token tracker.CreatedToken, _ *atomic.Bool) {
			p.deleteToken(o, token.ID)
		},
		"gone": func(_ *deliveryFixture, _ onboarded, _ tracker.CreatedToken, gone *atomic.Bool) { gone.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *deliveryFixture, o onboarded) {
				token, gone := p.token(o, "write"), new(atomic.Bool)
				req := p.admitted(o.id, token.Secret, tracker.ClaimSessions)
				req.Gone = gone.Load
				claim := p.keyed(req, 10)
				spoil(p, o, token, gone)
				if a := <-claim; a.err == nil {
					t.Errorf("the claim is answered %s", a.reply.Body)
				}
			})
		})
	}
}
