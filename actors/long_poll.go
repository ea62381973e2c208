package actors

import (
	"time"

	"switchyard/actors/tracker"
)

// waitSlack is how long before its deadline a request stops waiting, to be answered
// in time.
const waitSlack = 2 * time.Second

// longPoll is a request that waits. It lies on the heap so that its goroutine's
// stack holds little while it sleeps: thousands of them may.
type longPoll struct {
	engine *Engine
	req    *tracker.Request
	op     *tracker.Op
	in     any
	reply  tracker.Reply
	waiter *waiter
	timer  *time.Timer
	until  time.Time
	// missed is set when a wake-up arrives while the request is checking its condition.
	missed bool
	used   bool
	// follows is set if the request counts as a follower of the workspace's events.
	follows bool
}

// longPoll runs an operation that may wait, on its caller's goroutine. It runs the
// operation again after each wake-up, until there is an answer or the time is up.
//
// A wake-up for something that only one request can have belongs to the request that was
// woken until it has run: then it has used the wake-up, or passes it on to the next
// waiter. Otherwise two requests would be woken for one thing, or none. A request that
// is looking right now may be too early to see the thing: it looks again.
func (e *Engine) longPoll(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	reply, p, err := e.begin(req, op, in)
	if p == nil {
		return reply, err
	}
	err = p.wait()
	return p.reply, err
}

// begin runs the operation a first time. If it asks to wait it joins those who do, and
// there is no answer yet.
func (e *Engine) begin(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, *longPoll, error) {
	before := e.waits.wakes(target(req, op))
	reply, err := e.do(req, op, in)
	if err != nil || reply.Wait == nil {
		return reply, nil, err
	}
	p := &longPoll{engine: e, req: req, op: op, in: in, reply: reply}
	until := time.Now().Add(reply.Wait.Until.Sub(e.now()))
	if last := req.Deadline.Add(-waitSlack); last.Before(until) {
		until = last
	}
	if p.waiter = e.waits.join(target(req, op), reply.Wait.Topic); p.waiter == nil {
		err := p.timedOut()
		return p.reply, nil, err
	}
	if p.follows = reply.Wait.Topic == tracker.EventTopic; p.follows {
		e.followPoll(req.Workspace)
	}
	p.until = until
	p.missed = e.waits.missed(p.waiter, before)
	return tracker.Reply{}, p, nil
}

// evaluate runs the operation.
func (p *longPoll) evaluate() (err error) {
	p.reply, err = p.engine.do(p.req, p.op, p.in)
	return err
}

// wait returns when there is an answer.
func (p *longPoll) wait() error {
	defer p.Leave()
	p.timer = time.NewTimer(time.Until(p.until))
	for {
		if !p.missed && !p.sleep() {
			return p.timedOut()
		}
		if err := p.again(); err != nil || p.reply.Wait == nil {
			return err
		}
	}
}

// again looks once more.
func (p *longPoll) again() error {
	if answered, err := p.joined(); answered {
		return err
	}
	if err := p.look(); err != nil {
		return err
	}
	p.looked()
	return nil
}

// look runs the operation for a caller that is still there, and may still do so.
func (p *longPoll) look() error {
	if p.op.Kind == tracker.Command && p.req.Gone != nil && p.req.Gone() {
		return tracker.NotApplied("The client has closed the connection.")
	}
	if err := p.admit(); err != nil {
		return err
	}
	return p.evaluate()
}

// admit returns an error if the caller's rights have ended since the request arrived.
func (p *longPoll) admit() error {
	if p.req.Credential == "" {
		return nil
	}
	return p.engine.Admit(p.req, p.op)
}

// looked notes whether the operation has used what the request was woken for. A kept answer
// uses nothing, and one that has taken something else leaves it to the next request.
func (p *longPoll) looked() {
	if p.reply.Wait != nil {
		p.missed = p.engine.waits.rest(p.waiter, p.reply.Wait.Pass)
		return
	}
	p.used = !p.reply.Replayed && p.engine.waits.served(p.waiter, p.reply.Took)
}

// sleep returns when something happened; false when the time is up.
func (p *longPoll) sleep() bool {
	waits := &p.engine.waits
	p.timer.Reset(time.Until(p.until)) // it may have run out at a wake-up
	waits.listen(p.waiter, p, nil)
	select {
	case <-p.waiter.woken:
	case <-p.timer.C:
	case <-p.engine.stopped.Done():
	}
	return waits.woken(p.waiter)
}

// timedOut answers a request for which nothing happened.
func (p *longPoll) timedOut() error {
	p.reply.Wait = nil
	if p.reply.Body == nil {
		p.req.Final = true
		return p.look()
	}
	// The answer says that there was nothing. It is still right if the rights can't be looked at now.
	if err := p.admit(); err != nil && outcome(err) == "" {
		return err
	}
	return nil
}
