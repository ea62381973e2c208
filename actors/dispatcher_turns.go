package actors

import (
	"container/heap"
	"time"
)

// This file says which lanes run, and when.

// wait makes the due lanes ready and returns the time until the next is due.
func (d *dispatcher) wait() time.Duration {
	now := d.shard.engine.cfg.Clock()
	for len(d.due) > 0 {
		l := d.due[0]
		if l.due.After(now) {
			return min(l.due.Sub(now), dispatchLook)
		}
		d.setDue(l, time.Time{})
		l.more, l.held = true, false
		d.ready(l)
	}
	return dispatchLook
}

// ready queues a lane that has deliveries.
func (d *dispatcher) ready(l *deliveryQueue) {
	if l.queued || l.running || !l.runnable() {
		return
	}
	l.queued = true
	d.queue(l)
}

func (d *dispatcher) queue(l *deliveryQueue) {
	if l.hook.healthy {
		d.healthy = append(d.healthy, l)
	} else {
		d.unhealthy = append(d.unhealthy, l)
	}
}

// start runs lanes while there is room. Lanes of webhooks that did not answer quickly
// have at most half of it, so that hanging receivers leave room for others, and a
// workspace at most a quarter.
func (d *dispatcher) start() {
	most := d.shard.engine.cfg.Limits.Deliveries
	share := max(most/4, 2)
	for d.running.all < most {
		l := d.pick(most / 2)
		if l == nil {
			return
		}
		s := l.hook.space
		switch {
		case l.hook.removed:
			l.queued = false
		case s.readOnly():
			l.queued, l.more = false, true
		case s.running.all >= share, !l.hook.healthy && s.running.unhealthy >= share/2:
			s.parked = append(s.parked, l)
		default:
			d.launch(l)
		}
	}
}

func (d *dispatcher) pick(unhealthy int) *deliveryQueue {
	d.turns++
	from := &d.healthy
	if room := d.running.unhealthy < unhealthy && len(d.unhealthy) > 0; room && (len(d.healthy) == 0 || d.turns%unhealthyTurn == 0) {
		from = &d.unhealthy
	}
	if len(*from) == 0 {
		return nil
	}
	l := (*from)[0]
	(*from)[0] = nil
	if *from = (*from)[1:]; len(*from) == 0 {
		*from = nil
	}
	return l
}

func (d *dispatcher) launch(l *deliveryQueue) {
	e := d.shard.engine
	if !e.background.enter() {
		return
	}
	l.queued, l.running, l.more, l.unhealthy = false, true, false, !l.hook.healthy
	for _, n := range [...]*runCount{&d.running, &l.hook.space.running} {
		n.all++
		if l.unhealthy {
			n.unhealthy++
		}
	}
	go func() {
		defer e.background.leave()
		d.ended <- d.run(l)
	}()
}

// done continues after a run of a lane.
func (d *dispatcher) done(end queueRun) {
	l := end.lane
	t, s := l.hook, l.hook.space
	l.running = false
	for _, n := range [...]*runCount{&d.running, &s.running} {
		n.all--
		if l.unhealthy {
			n.unhealthy--
		}
	}
	if end.tried {
		t.healthy = end.healthy
	}
	l.more = l.more || end.more
	if l.retry() || end.failed { // there may be a retry once the results are recorded
		t.again.mark = max(t.again.mark, end.mark)
	}
	t.again.more = t.again.more || end.failed
	switch {
	case t.removed:
	case !end.held.IsZero():
		l.held = true
		d.setDue(l, end.held)
	case l.retry():
		d.setDue(l, end.next)
	}
	for _, p := range s.parked {
		d.queue(p)
	}
	s.parked = s.parked[:0]
	d.ready(l)
	d.ready(&t.again)
}

// setDue sets the time at which a lane becomes ready; zero for never.
func (d *dispatcher) setDue(l *deliveryQueue, at time.Time) {
	was := !l.due.IsZero()
	l.due = at
	switch {
	case was && at.IsZero():
		heap.Remove(&d.due, l.place)
	case was:
		heap.Fix(&d.due, l.place)
	case !at.IsZero():
		heap.Push(&d.due, l)
	}
}

// dueHeap are the lanes with a due time, each once, the earliest first.
type dueHeap []*deliveryQueue

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	l := x.(*deliveryQueue)
	l.place = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	old[last] = nil
	*h = old[:last]
	return l
}
