package actors

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// waiters has the requests that wait for a change in a workspace that this node serves.
// They are woken after the commit of a batch with their topic; a waiting request costs no
// goroutine and no polling.
//
// A waiter is in the list of its topic, the one that waits longest in front. If only one
// request can have the thing that the waiters want, the first is woken, and passes the
// wake-up on if it can't use it (see longPoll).
type waiters struct {
	limits  *Limits
	count   atomic.Int64
	number  atomic.Uint64 // of the last waiter, for their order
	stripes [64]waitStripe
}

// waitStripe keeps the waiters of some workspaces.
type waitStripe struct {
	// wakes counts the wake-ups, so that a request can see whether there was one between
	// running its operation and joining the waiters.
	wakes atomic.Uint64

	mu         sync.Mutex // never held while waiting for anything
	topics     map[waitKey]*waitList
	workspaces map[storage.ID]int // waiters
	claims     map[waitKey]int    // waiting claims, by the topic itself and by its group
}

type waitKey struct {
	workspace storage.ID
	topic     tracker.Topic
}

// waitList is a list of waiters in the order of their coming.
type waitList struct{ first, last *waiter }

// waiter is a request that waits.
type waiter struct {
	key        waitKey
	number     uint64
	next, prev *waiter
	// woken has room for one value, so that the sender of a wake-up never waits.
	woken chan struct{}
	// Guarded by the stripe's mutex.
	notify   func()       // called instead, when it is set; it never blocks
	signaled bool         // it was woken, and has not come to rest since
	again    bool         // and something else happened meanwhile: it will look again
	why      tracker.Wake // what it was woken for
	whyAgain tracker.Wake // what it will look again for; zero for something that others were woken for
	// asleep is the request while it sleeps: then its operation may be run for it.
	asleep *longPoll
	// joined is the call by which the workspace's actor runs the operation, and taken is set
	// once the request has come for the answer.
	joined *call
	taken  bool
}

func (w *waiters) stripe(workspace storage.ID) *waitStripe {
	return &w.stripes[binary.LittleEndian.Uint16(workspace[14:])%uint16(len(w.stripes))]
}

// join adds a waiter; nil when there are as many as there may be.
func (w *waiters) join(workspace storage.ID, topic tracker.Topic) *waiter {
	free := int64(w.limits.Waiting) - w.count.Add(1)
	if free < 0 {
		w.count.Add(-1)
		return nil
	}
	s := w.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workspaces[workspace] >= fairShare(w.limits.WorkspaceWaiting, free+1) {
		w.count.Add(-1)
		return nil
	}
	if s.topics == nil {
		s.topics, s.workspaces, s.claims = map[waitKey]*waitList{}, map[storage.ID]int{}, map[waitKey]int{}
	}
	s.workspaces[workspace]++
	r := &waiter{key: waitKey{workspace, topic}, number: w.number.Add(1), woken: make(chan struct{}, 1)}
	list := s.topics[r.key]
	if list == nil {
		list = &waitList{}
		s.topics[r.key] = list
	}
	if r.prev = list.last; r.prev == nil {
		list.first = r
	} else {
		r.prev.next = r
	}
	list.last = r
	s.countClaims(&r.key, 1)
	return r
}

// wakes returns a number that changes with each wake-up in a workspace.
func (w *waiters) wakes(workspace storage.ID) uint64 { return w.stripe(workspace).wakes.Load() }

// missed reports whether there were wake-ups since wakes returned a number, before the
// waiter joined. The waiter has to look again then, and does so for what happens while it looks.
func (w *waiters) missed(r *waiter, before uint64) bool {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wakes.Load() == before {
		return false
	}
	r.signaled = true
	return true
}

// countClaims counts the waiting claims of a topic, and of its group.
func (s *waitStripe) countClaims(key *waitKey, by int) {
	group, is := key.topic.Group()
	if !is {
		return
	}
	for _, k := range [...]waitKey{*key, {key.workspace, group}} {
		if s.claims[k] += by; s.claims[k] == 0 {
			delete(s.claims, k)
		}
	}
}

// claimers returns the number of waiting claims of a topic or a group of topics.
func (w *waiters) claimers(workspace storage.ID, of tracker.Topic) int {
	s := w.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[waitKey{workspace, of}]
}

// leave takes a waiter out, and passes on a wake-up that it has not used.
func (w *waiters) leave(r *waiter, used bool) {
	w.count.Add(-1)
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.topics[r.key]
	if r.prev == nil {
		list.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		list.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	if list.first == nil {
		delete(s.topics, r.key)
	}
	s.countClaims(&r.key, -1)
	r.notify, r.asleep = nil, nil
	if s.workspaces[r.key.workspace]--; s.workspaces[r.key.workspace] == 0 {
		delete(s.workspaces, r.key.workspace)
	}
	if r.signaled && r.why.One && !used {
		s.wakeOne(r.key.workspace, &r.why, 0)
	}
	if r.again && r.whyAgain.One {
		s.wakeOne(r.key.workspace, &r.whyAgain, 0)
	}
}

// served reports whether a waiter that has taken what has these topics has what it was woken for. With
// none it has: it waits for one kind of thing alone. After a wake-up with Each it never has: there may be more.
func (w *waiters) served(r *waiter, took []tracker.Topic) bool {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	return !r.why.Each && (took == nil || slices.Contains(took, r.why.Topics[0]))
}

// rest makes a waiter that has looked ready to be woken again; true when something
// happened while it looked. With pass, what it was woken for goes to the one that
// has waited next longest.
func (w *waiters) rest(r *waiter, pass bool) (again bool) {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	why := r.why
	if pass && why.One {
		s.wakeOne(r.key.workspace, &why, r.number)
	}
	select {
	case <-r.woken: // a word that was not listened to
	default:
	}
	again = r.again
	r.signaled, r.again, r.joined, r.taken = again, false, nil, false
	r.why, r.whyAgain = r.whyAgain, tracker.Wake{}
	return again
}

// woken reports whether a waiter was woken since it began to wait; it gets the next
// wake-up when it waits again. The request sleeps no longer.
func (w *waiters) woken(r *waiter) bool {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.notify, r.asleep = nil, nil
	return r.signaled
}

// listen says that a request sleeps from now on. notify is called when it is woken: at once,
// if it was already. Without notify a value is sent to woken.
func (w *waiters) listen(r *waiter, p *longPoll, notify func()) {
	s := w.stripe(r.key.workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.notify, r.asleep = notify, p
	if r.signaled && notify != nil {
		notify()
	}
}

// wake tells those concerned that something was committed.
func (w *waiters) wake(workspace storage.ID, wakes []tracker.Wake) {
	if len(wakes) == 0 {
		return
	}
	s := w.stripe(workspace)
	s.wakes.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workspaces[workspace] == 0 {
		return
	}
	for i := range wakes {
		switch {
		case wakes[i].Each:
			s.wakeEach(workspace, &wakes[i])
			continue
		case wakes[i].One:
			s.wakeOne(workspace, &wakes[i], 0)
			continue
		}
		for _, topic := range wakes[i].Topics {
			if topic != (tracker.Topic{}) {
				s.topics[waitKey{workspace, topic}].each(func(r *waiter) { r.signal(&wakes[i]) })
			}
		}
	}
}

// wakeEach wakes the claim of each topic in some groups, or in all, that came first. A claim passes the wake-up on if it
// succeeds, or has met sessions that its caller may not see. So the claims of a topic look one after
// another, and no more of them than it takes.
func (s *waitStripe) wakeEach(workspace storage.ID, why *tracker.Wake) {
	all := why.Topics == [4]tracker.Topic{}
	for key := range s.topics {
		group, is := key.topic.Group()
		if is && key.workspace == workspace && (all || slices.Contains(why.Topics[:], group)) {
			s.wakeOne(workspace, &tracker.Wake{One: true, Each: true, Topics: [4]tracker.Topic{key.topic}}, 0)
		}
	}
}

// wakeOne wakes the waiter that came first behind the one with a number. Those in front of
// it that are looking right now look again: they may have been too early, and the one that
// is woken may not be able to use what they can. If all are looking, the first that would
// not look again does so for this; there is nothing to do if all will.
func (s *waitStripe) wakeOne(workspace storage.ID, why *tracker.Wake, behind uint64) {
	best, looking := s.first(workspace, why, behind)
	if best == nil {
		if looking != nil {
			looking.signal(why)
		}
		return
	}
	best.signal(why)
	for _, topic := range why.Topics {
		list := s.topics[waitKey{workspace, topic}]
		if list == nil {
			continue
		}
		// The list is in the order of the numbers, and no waiter behind this point is concerned.
		for r := list.first; r != nil && r.number < best.number; r = r.next {
			r.again = r.again || r.signaled && r.number > behind
		}
	}
}

// first returns the waiter that came first behind the one with a number, and the first
// that is looking right now and would not look again.
func (s *waitStripe) first(workspace storage.ID, why *tracker.Wake, behind uint64) (best, looking *waiter) {
	for _, topic := range why.Topics {
		list := s.topics[waitKey{workspace, topic}]
		if list == nil {
			continue
		}
		r := list.first
		for ; r != nil && (r.signaled || r.number <= behind); r = r.next {
			if !r.again && r.number > behind && (looking == nil || r.number < looking.number) {
				looking = r
			}
		}
		if r != nil && (best == nil || r.number < best.number) {
			best = r
		}
	}
	return best, looking
}

func (l *waitList) each(fn func(*waiter)) {
	if l == nil {
		return
	}
	for r := l.first; r != nil; r = r.next {
		fn(r)
	}
}

// signal has a waiter look, or look again if it is looking.
func (r *waiter) signal(why *tracker.Wake) {
	if r.signaled {
		r.again = true
		if !r.whyAgain.One {
			r.whyAgain = *why
		}
		return
	}
	r.signaled, r.why = true, *why
	r.rouse()
}

// rouse ends the sleep of a waiter.
func (r *waiter) rouse() {
	if r.notify != nil {
		r.notify()
		return
	}
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// wakeAll has everyone who waits in a workspace look again.
func (w *waiters) wakeAll(workspace storage.ID) {
	w.wakeWhere(w.stripe(workspace), func(id storage.ID) bool { return id == workspace })
}

// wakeShard has everyone who waits in a shard's workspaces look again: they are
// served elsewhere from now on.
func (w *waiters) wakeShard(e *Engine, shard *shard) {
	for i := range w.stripes {
		w.wakeWhere(&w.stripes[i], func(id storage.ID) bool { return e.shardOf(id) == shard })
	}
}

func (w *waiters) wakeWhere(s *waitStripe, where func(storage.ID) bool) {
	s.wakes.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, list := range s.topics {
		if where(key.workspace) {
			list.each(func(r *waiter) { r.signal(&tracker.Wake{}) })
		}
	}
}
