package actors

import (
	"sync"
	"time"

	"switchyard/actors/tracker"
)

var _ tracker.Waiting = (*longPoll)(nil)

// Begin is like Do for a long-poll operation, for callers that don't block a goroutine:
// if the request has to wait, Begin returns a Waiting instead of a reply.
func (e *Engine) Begin(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, tracker.Waiting, error) {
	work := &e.shardOf(target(req, op)).work
	if !work.enter() {
		return tracker.Reply{}, nil, errClosing()
	}
	defer work.leave()
	if err := req.Admitted(op); err != nil {
		return tracker.Reply{}, nil, e.clientError(req, op, err)
	}
	reply, p, err := e.begin(req, op, in)
	if p == nil {
		return reply, nil, err
	}
	return tracker.Reply{}, p, nil
}

// Arm implements tracker.Waiting.
func (p *longPoll) Arm(wake func()) {
	once := sync.OnceFunc(wake)
	if p.missed {
		once()
		return
	}
	p.timer = time.AfterFunc(time.Until(p.until), once)
	p.engine.waits.listen(p.waiter, p, once)
}

// Resume implements tracker.Waiting.
func (p *longPoll) Resume() (tracker.Reply, bool, error) {
	work := &p.engine.shardOf(target(p.req, p.op)).work
	if !work.enter() {
		p.Leave()
		return tracker.Reply{}, false, errClosing()
	}
	defer work.leave()
	if p.timer != nil {
		p.timer.Stop()
	}
	var err error
	if p.missed || p.engine.waits.woken(p.waiter) {
		err = p.again()
	} else {
		err = p.timedOut() // the time is up, or the caller has to leave
	}
	if err == nil && p.reply.Wait != nil {
		return tracker.Reply{}, true, nil
	}
	p.Leave()
	return p.reply, false, err
}

// Leave implements tracker.Waiting.
func (p *longPoll) Leave() {
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.waiter != nil {
		p.engine.waits.leave(p.waiter, p.used)
		p.waiter = nil
	}
	if p.follows {
		p.follows = false
		p.engine.unfollowPoll(p.req.Workspace)
	}
}
