package actors

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// dispatcher makes the webhook deliveries of one shard while this node owns it.
// What is to be delivered are rows, and what became of a try is written back
// through the workspace's actor, so it keeps nothing that a restart or another
// owner would miss: what was sent and not yet recorded is sent again, under the
// same id.
//
// Each webhook has two lanes: one for first tries, in the order of commits, and one
// for retries, in the order in which they come due. A lane sends one request at a
// time, so a slow receiver holds up nobody but itself.
type dispatcher struct {
	shard  *shard
	ctx    context.Context
	cancel context.CancelFunc
	wakeup chan struct{}
	// lost: the shard is owned no longer, or again; what was not recorded by then is
	// not recorded by this dispatcher.
	lost  atomic.Bool
	ended chan laneEnd // as wide as the lanes that run at once, so that none waits for the loop

	mu   sync.Mutex // guards news; never held while waiting for anything
	news map[storage.ID]news

	// Owned by the loop's goroutine.
	spaces  map[storage.ID]*hookedSpace
	steady  []*lane // ready to run, first come first served
	shaky   []*lane // those of webhooks that are not known to answer quickly
	turns   int
	running laneCount
	due     dueHeap
}

// news is what may have changed in a workspace.
type news uint8

const (
	newsOutbox   news = 1 << iota // there are first tries
	newsWebhooks                  // webhooks changed, or their retries
	newsRecorded                  // outcomes were written
)

// hookedSpace is a workspace with webhooks.
type hookedSpace struct {
	id       storage.ID
	hooks    map[storage.ID]*hook
	recorder *recorder
	running  laneCount
	parked   []*lane // ready, but the workspace has its share of lanes running
}

// laneCount counts lanes that run.
type laneCount struct{ all, shaky int }

const (
	// dispatchLook is the longest the loop sleeps, for clocks that are set.
	dispatchLook = time.Minute
	// spacesKept is how many workspaces without anything to do are remembered.
	spacesKept = 1024
	// shakyTurn gives every so many-th lane to a webhook that is not steady, if one
	// waits, so that the others don't keep it from being tried at all.
	shakyTurn = 4
)

// startDispatcher makes a shard's deliveries until stop; nil when the engine is
// closed.
func startDispatcher(s *shard) *dispatcher {
	e := s.engine
	if !e.background.enter() {
		return nil
	}
	d := &dispatcher{
		shard:  s,
		wakeup: make(chan struct{}, 1),
		ended:  make(chan laneEnd, e.cfg.Limits.Deliveries),
		news:   map[storage.ID]news{},
		spaces: map[storage.ID]*hookedSpace{},
	}
	d.ctx, d.cancel = context.WithCancel(e.stopped)
	go d.loop()
	return d
}

// stop makes the loop end and cuts its requests short; it doesn't wait. It comes
// before another dispatcher of the shard starts.
func (d *dispatcher) stop() {
	d.lost.Store(true)
	d.cancel()
}

// deliver has the dispatcher of an owned shard look into a workspace.
func (s *shard) deliver(workspace storage.ID, touched storage.Touch) {
	s.mu.RLock()
	d := s.dispatcher
	s.mu.RUnlock()
	if d == nil {
		return
	}
	var n news
	if touched&tracker.TouchesOutbox != 0 {
		n |= newsOutbox
	}
	if touched&tracker.TouchesWebhooks != 0 {
		n |= newsWebhooks
	}
	d.tell(workspace, n)
}

func (d *dispatcher) tell(workspace storage.ID, n news) {
	d.mu.Lock()
	d.news[workspace] |= n
	d.mu.Unlock()
	select {
	case d.wakeup <- struct{}{}:
	default: // it is going to look anyway
	}
}

func (d *dispatcher) loop() {
	e := d.shard.engine
	defer e.background.leave()
	timer := time.NewTimer(0)
	defer timer.Stop()
	begun := false
	for {
		sleep := retryFirst
		if !e.cfg.Full() { // else no outcome could be written
			if !begun {
				begun = d.begin()
			}
			if begun {
				d.hear()
				sleep = d.wait()
				d.start()
			}
		}
		timer.Reset(sleep)
		select {
		case <-d.ctx.Done():
			return
		case <-timer.C:
		case <-d.wakeup:
		case end := <-d.ended:
			d.done(end)
		}
		for more := true; more; {
			select {
			case end := <-d.ended:
				d.done(end)
			default:
				more = false
			}
		}
	}
}

// begin looks for what an earlier owner left to do.
func (d *dispatcher) begin() bool {
	v := storage.NewView(d.shard.engine.state, d.shard.number, storage.SystemID)
	list, err := tracker.ListWebhookWorkspaces(&v)
	if err != nil {
		d.broken(storage.SystemID, err)
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range list {
		d.news[id] |= newsWebhooks
	}
	return true
}

func (d *dispatcher) broken(workspace storage.ID, err error) {
	d.shard.engine.log.Error("webhooks can't be read", "shard", int(d.shard.number), "workspace", workspace.String(), "error", err)
}

// hear takes up what was told.
func (d *dispatcher) hear() {
	var heard map[storage.ID]news
	d.mu.Lock()
	if len(d.news) > 0 {
		heard, d.news = d.news, map[storage.ID]news{}
	}
	d.mu.Unlock()
	for id, n := range heard {
		s := d.spaces[id]
		if s == nil && n == newsRecorded {
			continue
		}
		if s == nil || n&newsWebhooks != 0 {
			if s = d.load(id); s == nil {
				continue
			}
		}
		for _, t := range s.hooks {
			if n&newsOutbox != 0 {
				t.first.more = true
			}
			d.ready(&t.first)
			d.ready(&t.again)
		}
	}
}

// load reads a workspace's webhooks anew; nil when it has none.
func (d *dispatcher) load(id storage.ID) *hookedSpace {
	e := d.shard.engine
	v := storage.NewView(e.state, d.shard.number, id)
	list, err := tracker.ListWebhookTargets(&v)
	if err != nil {
		d.broken(id, err)
		time.AfterFunc(retryFirst, func() { d.tell(id, newsWebhooks|newsOutbox) })
		return nil
	}
	s := d.spaces[id]
	if s == nil {
		if len(list) == 0 {
			return nil
		}
		d.evict()
		s = &hookedSpace{id: id, recorder: &recorder{dispatcher: d, workspace: id}}
		d.spaces[id] = s
	}
	before := s.hooks
	s.hooks = make(map[storage.ID]*hook, len(list))
	for i := range list {
		t := before[list[i].ID]
		if t == nil {
			t = newHook(s, list[i].ID)
		}
		t.renew(&list[i])
		s.hooks[t.id] = t
	}
	for id, t := range before {
		if s.hooks[id] == nil {
			t.removed = true
		}
	}
	if len(list) == 0 && s.running.all == 0 {
		delete(d.spaces, id)
		return nil
	}
	return s
}

// evict forgets a workspace that has nothing to do when there are many.
func (d *dispatcher) evict() {
	if len(d.spaces) < spacesKept {
		return
	}
	const sample = 32
	looked := 0
	for id, s := range d.spaces { // in random order
		if s.idle() {
			delete(d.spaces, id)
			return
		}
		if looked++; looked == sample {
			return
		}
	}
}

func (s *hookedSpace) idle() bool {
	if s.running.all > 0 || len(s.parked) > 0 || !s.recorder.empty() {
		return false
	}
	for _, t := range s.hooks {
		if t.first.busy() || t.again.busy() || !t.again.due.IsZero() {
			return false
		}
	}
	return true
}

// wait readies the retries that are due and gives the time until the next.
func (d *dispatcher) wait() time.Duration {
	now := d.shard.engine.cfg.Clock()
	for len(d.due) > 0 {
		next := d.due[0]
		if !next.lane.due.Equal(next.at) || next.lane.hook.removed {
			heap.Pop(&d.due) // it was moved, and is in the heap again
			continue
		}
		if next.at.After(now) {
			return min(next.at.Sub(now), dispatchLook)
		}
		heap.Pop(&d.due)
		next.lane.due, next.lane.more = time.Time{}, true
		d.ready(next.lane)
	}
	return dispatchLook
}

// ready queues a lane that has something to do.
func (d *dispatcher) ready(l *lane) {
	if l.queued || l.running || !l.runnable() {
		return
	}
	l.queued = true
	d.queue(l)
}

func (d *dispatcher) queue(l *lane) {
	if l.hook.steady {
		d.steady = append(d.steady, l)
	} else {
		d.shaky = append(d.shaky, l)
	}
}

// start runs lanes while there is room. Webhooks that did not answer quickly the
// last time have at most half of it, so that those which hang leave room for the
// others, and a workspace at most a quarter.
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
		case s.running.all >= share, !l.hook.steady && s.running.shaky >= share/2:
			s.parked = append(s.parked, l)
		default:
			d.launch(l)
		}
	}
}

func (d *dispatcher) pick(shaky int) *lane {
	d.turns++
	from := &d.steady
	if room := d.running.shaky < shaky && len(d.shaky) > 0; room && (len(d.steady) == 0 || d.turns%shakyTurn == 0) {
		from = &d.shaky
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

func (d *dispatcher) launch(l *lane) {
	e := d.shard.engine
	if !e.background.enter() {
		return
	}
	l.queued, l.running, l.more, l.shaky = false, true, false, !l.hook.steady
	for _, n := range [...]*laneCount{&d.running, &l.hook.space.running} {
		n.all++
		if l.shaky {
			n.shaky++
		}
	}
	go func() {
		defer e.background.leave()
		d.ended <- d.run(l)
	}()
}

// done goes on after a run of a lane.
func (d *dispatcher) done(end laneEnd) {
	l := end.lane
	t, s := l.hook, l.hook.space
	l.running = false
	for _, n := range [...]*laneCount{&d.running, &s.running} {
		n.all--
		if l.shaky {
			n.shaky--
		}
	}
	if end.tried {
		t.steady = end.steady
	}
	l.more = l.more || end.more
	l.mark = max(l.mark, end.mark)
	if end.failed { // there will be a retry once that is recorded
		t.again.more = true
		t.again.mark = max(t.again.mark, end.mark)
	}
	if l == &t.again {
		if l.due = end.next; !l.due.IsZero() {
			heap.Push(&d.due, dueLane{l.due, l})
		}
	}
	for _, p := range s.parked {
		d.queue(p)
	}
	s.parked = s.parked[:0]
	d.ready(l)
	d.ready(&t.again)
}

// dueHeap are the lanes with retries to come, the earliest first. A lane's entry
// counts only while it agrees with the lane's due.
type dueHeap []dueLane

type dueLane struct {
	at   time.Time
	lane *lane
}

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(dueLane)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
