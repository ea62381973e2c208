package actors

import (
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// call is one command on its way through a workspace's actor. It is used again
// only by the caller that received its answer: one that was left behind at its
// deadline is never put back, so a late answer meets nobody.
type call struct {
	// Written by the caller before the call is sent; read by the actor, which
	// doesn't look at the caller's own Request, since the caller may leave first.
	op   *tracker.Op
	req  tracker.Request
	idem tracker.Idempotency
	in   any

	// state is where caller and actor decide who was first: the caller withdraws, or
	// the actor takes.
	state atomic.Uint32

	// Written by the actor until it sends answered.
	reply tracker.Reply
	err   error
	// partial: a run that asked for More was committed.
	partial bool
	// took and ran are when the actor took the call last, and when its run ended; zero
	// unless the time is measured.
	took, ran time.Time
	// waiter is the request for which the actor runs the call by itself; nil for others.
	waiter *waiter
	// unproven: answered from state that no commit has shown to be the latest.
	unproven bool

	// answered holds one answer, so that the actor never waits for the caller.
	answered chan struct{}
	timer    *time.Timer // the caller's
}

// The states of a call.
const (
	callWaiting uint32 = iota
	callTaken
	callWithdrawn
)

func newCall() *call {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &call{answered: make(chan struct{}, 1), timer: timer}
}

// fill readies a call for a command, which holds the memory of its content until the actor has
// answered it or found it withdrawn.
func (c *call) fill(req *tracker.Request, workspace storage.ID, op *tracker.Op, in any) {
	c.op, c.in, c.req = op, in, *req
	c.req.Workspace = workspace
	c.req.Buf = nil // the caller's
	if req.Idempotency != nil {
		c.idem = *req.Idempotency
		c.req.Idempotency = &c.idem
	}
	if req.Memory != nil {
		req.Memory.Hold()
	}
}

// giveUp gives up the memory of the command's content.
func (c *call) giveUp() {
	if c.req.Memory != nil {
		c.req.Memory.GiveUp()
	}
}

// empty forgets everything of the command, so that the pool keeps nothing alive.
func (c *call) empty() {
	c.op, c.in, c.req, c.idem = nil, nil, tracker.Request{}, tracker.Idempotency{}
	c.reply, c.err, c.partial, c.unproven, c.waiter = tracker.Reply{}, nil, false, false, nil
	c.took, c.ran = time.Time{}, time.Time{}
	c.state.Store(callWaiting)
}

// markTaken is the actor's: false when the caller has withdrawn the call.
func (c *call) markTaken() bool {
	return c.state.CompareAndSwap(callWaiting, callTaken) || c.state.Load() == callTaken
}

// isWithdrawn reports whether the caller has withdrawn the call.
func (c *call) isWithdrawn() bool { return c.state.Load() == callWithdrawn }

// spent returns where the time of an answered command went since it was sent. A command that
// continued in further batches counts the time until its last run as waiting.
func (c *call) spent(sent time.Time) tracker.Spent {
	if c.ran.IsZero() {
		return tracker.Spent{Queue: time.Since(sent)}
	}
	return tracker.Spent{Queue: c.took.Sub(sent), Engine: c.ran.Sub(c.took), Commit: time.Since(c.ran)}
}

// await waits for the answer until the deadline of the request. If there is none by then,
// done is false and err is the error for the caller, with the outcome.
func (c *call) await(deadline time.Time) (done bool, err error) {
	c.timer.Reset(time.Until(deadline))
	select {
	case <-c.answered:
		c.timer.Stop()
		return true, nil
	case <-c.timer.C:
	}
	if c.state.CompareAndSwap(callWaiting, callWithdrawn) {
		return false, tracker.NotApplied("The workspace is busy: the request timed out while it waited for its turn.")
	}
	select {
	case <-c.answered:
		return true, nil
	default:
		return false, tracker.OutcomeUnknown("The change was not confirmed in time.")
	}
}
