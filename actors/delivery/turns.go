package delivery

import (
	"container/heap"
	"time"
)

// This file says which queues run, and when.

// wait makes the due queues ready and returns the time until the next is due.
func (d *Dispatcher) wait() time.Duration {
	now := d.of.cfg.Clock()
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

// ready queues a queue that has deliveries.
func (d *Dispatcher) ready(l *queue) {
	if l.queued || l.running || !l.runnable() {
		return
	}
	l.queued = true
	d.enqueue(l)
}

func (d *Dispatcher) enqueue(l *queue) {
	if l.hook.healthy {
		d.healthy = append(d.healthy, l)
	} else {
		d.unhealthy = append(d.unhealthy, l)
	}
}

// start runs queues while there is room. Queues of webhooks that did not answer quickly
// have at most half of it, so that hanging receivers leave room for others, and a
// workspace at most a quarter.
func (d *Dispatcher) start() {
	d.startGranted()
	for d.running.all < d.of.cfg.Most {
		l := d.pick(d.of.cfg.Most / 2)
		if l == nil {
			return
		}
		if d.mayRun(l) {
			d.take(l)
		}
	}
}

// mayRun reports whether a queue may run as far as its webhook and its workspace are concerned. If not, it
// has put the queue where it is found again.
func (d *Dispatcher) mayRun(l *queue) bool {
	s, share := l.hook.space, max(d.of.cfg.Most/4, 2)
	switch {
	case l.hook.removed:
		l.queued = false
	case s.readOnly():
		l.queued, l.more = false, true
	case s.running.all >= share, !l.hook.healthy && s.running.unhealthy >= share/2:
		s.parked = append(s.parked, l)
	default:
		return true
	}
	return false
}

// take runs a queue if the node has room for it. Otherwise the queue waits.
func (d *Dispatcher) take(l *queue) {
	s := &l.hook.space.shares[l.hook.class()]
	if len(s.queues) == 0 {
		if slot := d.of.capacity.take(s, l.body); slot != nil {
			d.launch(l, slot)
			return
		}
	}
	s.queues = append(s.queues, l)
}

// startGranted runs queues that have waited for slots of the node.
func (d *Dispatcher) startGranted() {
	for _, slot := range d.of.capacity.grants(d) {
		s := slot.share
		l := s.queues[0]
		s.queues[0] = nil
		s.queues = s.queues[1:]
		full := d.running.all >= d.of.cfg.Most || s.class == unhealthyClass && d.running.unhealthy >= d.of.cfg.Most/2
		switch {
		case full, l.hook.class() != s.class:
			d.enqueue(l)
			slot.give()
		case d.mayRun(l):
			d.launch(l, slot)
		default:
			slot.give()
		}
		if len(s.queues) > 0 {
			d.of.capacity.wait(s, s.queues[0].body)
		} else {
			s.queues = nil
		}
	}
}

// returnSlots gives back the slots that were granted. Their queues are ready to run again.
func (d *Dispatcher) returnSlots() {
	for _, slot := range d.of.capacity.grants(d) {
		s := slot.share
		for _, l := range s.queues {
			d.enqueue(l)
		}
		s.queues = nil
		slot.give()
	}
}

func (d *Dispatcher) pick(unhealthy int) *queue {
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

func (d *Dispatcher) launch(l *queue, held *slot) {
	if !d.of.cfg.Enter() {
		held.give()
		return
	}
	l.queued, l.running, l.more, l.unhealthy = false, true, false, !l.hook.healthy
	l.slot = held
	for _, n := range [...]*runCount{&d.running, &l.hook.space.running} {
		n.all++
		if l.unhealthy {
			n.unhealthy++
		}
	}
	go func() {
		defer d.of.cfg.Leave()
		d.ended <- func() queueRun {
			defer held.give() // even if the loop has ended
			return d.run(l)
		}()
	}()
}

// done continues after a run of a queue.
func (d *Dispatcher) done(end queueRun) {
	l := end.queue
	t, s := l.hook, l.hook.space
	l.running, l.slot, l.body = false, nil, end.body
	for _, n := range [...]*runCount{&d.running, &s.running} {
		n.all--
		if l.unhealthy {
			n.unhealthy--
		}
	}
	if end.tried {
		t.healthy = end.healthy
	}
	l.more = l.more || end.more || end.body > 0
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
		d.enqueue(p)
	}
	s.parked = s.parked[:0]
	d.ready(l)
	d.ready(&t.again)
}

// setDue sets the time at which a queue becomes ready; zero for never.
func (d *Dispatcher) setDue(l *queue, at time.Time) {
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

// dueHeap are the queues with a due time, each once, the earliest first.
type dueHeap []*queue

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	l := x.(*queue)
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
