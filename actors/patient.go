package actors

import (
	"time"

	"switchyard/actors/tracker"
)

// waitSlack is how long before its deadline a request stops waiting, to be answered
// in time.
const waitSlack = 2 * time.Second

// patient runs an operation that may wait, on its caller's goroutine: again each
// time that what it waits for happened, and until it has an answer or its time is
// up.
//
// Where what happened is for one alone, it is the waiter's until it has looked:
// then it has used it, or passes it on to the next. Without this two would get up
// for one thing, or nobody.
func (e *Engine) patient(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	workspace := target(req, op)
	news := &e.waits.stripe(workspace).news
	before := news.Load()
	reply, err := e.do(req, op, in)
	if err != nil || reply.Wait == nil {
		return reply, err
	}
	until := time.Now().Add(reply.Wait.Until.Sub(e.now()))
	if last := req.Deadline.Add(-waitSlack); last.Before(until) {
		until = last
	}
	w := e.waits.join(workspace, reply.Wait.Topic)
	if w == nil {
		return e.unheard(req, op, in, reply)
	}
	used := false
	defer func() { e.waits.leave(w, used) }()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	// What happened between the look and joining woke nobody.
	for missed := news.Load() != before; ; {
		if !missed {
			select {
			case <-w.woken:
			case <-timer.C:
				return e.unheard(req, op, in, reply)
			case <-e.stopped.Done():
				return e.unheard(req, op, in, reply)
			}
		}
		if op.Kind == tracker.Command && req.Gone != nil && req.Gone() {
			return tracker.Reply{}, tracker.NotApplied("Whoever asked has left.")
		}
		if reply, err = e.do(req, op, in); err != nil {
			return reply, err
		}
		if reply.Wait == nil {
			used = true
			return reply, nil
		}
		missed = e.waits.rest(w, reply.Wait.Pass)
	}
}

// unheard answers a request for which nothing happened.
func (e *Engine) unheard(req *tracker.Request, op *tracker.Op, in any, reply tracker.Reply) (tracker.Reply, error) {
	if reply.Body != nil {
		reply.Wait = nil
		return reply, nil
	}
	req.Final = true
	return e.do(req, op, in)
}
