package actors

import (
	"crypto/sha256"
	"math"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// A claim that waits would be woken when the batch with the dispatched session is committed,
// and would then need a batch of its own: two rounds of replication between a dispatch and
// its claim. So the workspace's actor runs the claim in the batch of the dispatch. The
// request sleeps until the batch is committed, and has its answer then.
//
// The actor does this only where it can decide everything by itself at once. Where it can't,
// or where the claim finds nothing, the request is woken after the commit as usual.

// offer returns the request that a wake-up would go to, if it sleeps and waits for a command.
// The request has been woken then, by c: the actor runs the command, and calls rouse or
// withdraw.
func (w *waiters) offer(workspace storage.ID, why *tracker.Wake, c *call) *longPoll {
	s := w.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	r, _ := s.first(workspace, why, 0)
	if r == nil || r.asleep == nil || r.asleep.op.Kind != tracker.Command {
		return nil
	}
	r.signaled, r.why, r.joined, c.waiter = true, *why, c, r
	return r.asleep
}

// withdraw makes a waiter that offer has returned wait on, and reports whether it does. It
// doesn't if the request has come for the answer of the call.
func (w *waiters) withdraw(r *waiter) bool {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.taken {
		return false
	}
	r.signaled, r.joined = false, nil
	if r.again { // something else happened meanwhile
		why := r.whyAgain
		r.again, r.whyAgain = false, tracker.Wake{}
		r.signal(&why)
	}
	return true
}

// rouse ends the sleep of a waiter whose call was answered.
func (w *waiters) rouse(r *waiter) {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.rouse()
}

// take returns the call that is run for a waiter, or nil.
func (w *waiters) take(r *waiter) *call {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.taken = r.joined != nil
	return r.joined
}

// joinClaims runs the claims that wait for what the open batch has brought, in the same
// batch.
func (w *workspaceActor) joinClaims() {
	if w.batch[len(w.batch)-1].reply.More || w.buffer.Dirty()&tracker.DirtyAccess != 0 {
		return // the last command goes on in the next batch, or the rights of callers change
	}
	var c *call
	for i := 0; i < len(w.buffer.WakeUps()); i++ {
		why := w.buffer.WakeUps()[i]
		if !why.One {
			continue
		}
		if w.full() {
			break
		}
		if c == nil {
			c = w.engine.calls.Get().(*call)
		}
		p := w.engine.waits.offer(w.h.workspace, &why, c)
		if p == nil {
			continue
		}
		if !w.join(c, p) {
			c.empty()
			continue
		}
		w.buffer.Used(i)
		if c.reply.More {
			return
		}
		c = nil
	}
	if c != nil {
		w.engine.calls.Put(c)
	}
}

// join runs the command of a sleeping request in the open batch. It reports whether the
// request will have its answer from there; otherwise it sleeps on.
func (w *workspaceActor) join(c *call, p *longPoll) bool {
	e, r, ran := w.engine, c.waiter, false
	c.fill(p.req, w.h.workspace, p.op, p.in)
	c.state.Store(callTaken)
	// It counts as a command from here on. The latch is open: the actor has other commands.
	e.commands.Add(1)
	w.h.shard.commands.Add(1)
	w.h.latch.enter(math.MaxInt32)
	// Where much memory is in use, a command may have to wait for some, which one in the middle of a batch can't.
	if !e.closing.Load() && (c.req.Gone == nil || !c.req.Gone()) && w.admits(c) && hasSpace(e.cfg.Shortage(), c.op, c.req.Caller.Root) && !e.changes.isOver() {
		e.stats.commands.Add(1)
		w.write(c)
		ran = c.err == nil && c.reply.Wait == nil
	}
	if !ran && e.waits.withdraw(r) {
		c.giveUp()
		w.h.shard.counted()
		w.h.latch.leave()
		return false
	}
	if !ran {
		c.err = errNotJoined // the request has come for the answer, and has to look by itself
	}
	w.keep(c)
	return true
}

// errNotJoined is the answer of a call that ran nothing.
var errNotJoined = tracker.NotApplied("The claim was not made.")

// admits reports whether a sleeping request is still admitted, as far as the actor can tell
// from what is remembered of the caller. It sets the request's caller.
func (w *workspaceActor) admits(c *call) bool {
	req := &c.req
	if req.Credential == "" {
		return true // of the service itself
	}
	hash := req.CredentialSum
	if hash == nil {
		sum := sha256.Sum256([]byte(req.Credential))
		hash = &sum
	}
	e := w.engine
	a := e.callers.find(hash, w.h.workspace)
	if a == nil || a.maker != nil || a.expired(e.now()) || !w.unchanged(&a.target) || !w.unchanged(&a.home) {
		return false
	}
	req.Caller = a.caller
	return req.Admit(c.op, c.op.Needs) == nil
}

// unchanged reports whether a caller depends on nothing but this workspace there, and on
// nothing that has changed since the caller was resolved. Whether this node still owns the
// shard is shown by the commit of the batch.
func (w *workspaceActor) unchanged(p *accessVersion) bool {
	switch p.workspace {
	case storage.ID{}:
		return true
	case w.h.workspace:
		return p.epoch == w.h.epoch && p.generation == w.engine.generations.of(p.workspace).Load()
	}
	return false
}

// joined waits for the answer of the call that the actor runs for the request, if there is
// one. It reports whether the request has an answer, or goes on waiting, by that.
func (p *longPoll) joined() (answered bool, err error) {
	e := p.engine
	c := e.waits.take(p.waiter)
	if c == nil {
		return false, nil
	}
	done, err := c.await(p.req.Deadline)
	if !done {
		return true, err
	}
	reply, err := c.reply, c.err
	c.empty()
	e.calls.Put(c)
	if err != nil {
		if err = e.clientError(p.req, p.op, err); outcome(err) == "not_applied" {
			return false, nil // nothing was claimed: the request looks by itself
		}
		return true, err
	}
	p.reply = reply
	p.looked()
	return true, nil
}
