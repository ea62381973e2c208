package actors

import (
	"context"
	"slices"
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
	news map[storage.ID]*news

	// Owned by the loop's goroutine.
	spaces  map[storage.ID]*hookedSpace
	steady  []*lane // ready to run, first come first served
	shaky   []*lane // those of webhooks that are not known to answer quickly
	turns   int
	running laneCount
	due     dueHeap
}

// news is what may have changed in a workspace.
type news struct {
	kinds newsKinds
	hooks []storage.ID // those that there are first tries for
}

type newsKinds uint8

const (
	newsOutbox   newsKinds = 1 << iota // there are first tries, for whichever webhook
	newsQueued                         // there are first tries, for those named
	newsWebhooks                       // webhooks changed, or their retries
	newsRecorded                       // outcomes were written
)

// hookedSpace is a workspace with webhooks.
type hookedSpace struct {
	id       storage.ID
	hooks    map[storage.ID]*hook
	recorder *recorder
	rates    *rateBuckets
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
		news:   map[storage.ID]*news{},
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

// deliver has the dispatcher of an owned shard look into a workspace. queued are the
// webhooks that there may be deliveries for; none: it could be any.
func (s *shard) deliver(workspace storage.ID, touched storage.Touch, queued []storage.ID) {
	s.mu.RLock()
	d := s.dispatcher
	s.mu.RUnlock()
	if d == nil {
		return
	}
	var kinds newsKinds
	if touched&tracker.TouchesOutbox != 0 {
		if kinds = newsOutbox; len(queued) > 0 {
			kinds = newsQueued
		}
	}
	if touched&tracker.TouchesWebhooks != 0 {
		kinds |= newsWebhooks
	}
	d.tell(workspace, kinds, queued...)
}

func (d *dispatcher) tell(workspace storage.ID, kinds newsKinds, hooks ...storage.ID) {
	d.mu.Lock()
	d.note(workspace, kinds, hooks)
	d.mu.Unlock()
	select {
	case d.wakeup <- struct{}{}:
	default: // it is going to look anyway
	}
}

// note adds to the news; its caller holds mu.
func (d *dispatcher) note(workspace storage.ID, kinds newsKinds, hooks []storage.ID) {
	n := d.news[workspace]
	if n == nil {
		n = &news{}
		d.news[workspace] = n
	}
	n.kinds |= kinds
	for _, id := range hooks { // no more than a workspace can have
		if !slices.Contains(n.hooks, id) {
			n.hooks = append(n.hooks, id)
		}
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
		if e.cfg.Shortage() == storage.Ample { // else no outcome could be written
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
		d.note(id, newsWebhooks, nil)
	}
	return true
}

func (d *dispatcher) broken(workspace storage.ID, err error) {
	d.shard.engine.log.Error("webhooks can't be read", "shard", int(d.shard.number), "workspace", workspace.String(), "error", err)
}

// hear takes up what was told.
func (d *dispatcher) hear() {
	var heard map[storage.ID]*news
	d.mu.Lock()
	if len(d.news) > 0 {
		heard, d.news = d.news, map[storage.ID]*news{}
	}
	d.mu.Unlock()
	for id, n := range heard {
		d.take(id, n)
	}
}

func (d *dispatcher) take(id storage.ID, n *news) {
	s := d.spaces[id]
	if s == nil && n.kinds == newsRecorded {
		return
	}
	if s == nil || n.kinds&newsWebhooks != 0 {
		if s = d.load(id); s == nil {
			return
		}
	}
	for _, hook := range n.hooks {
		if t := s.hooks[hook]; t != nil {
			t.first.more = true
			d.ready(&t.first)
		}
	}
	if n.kinds == newsQueued {
		return
	}
	for _, t := range s.hooks {
		if n.kinds&newsOutbox != 0 {
			t.first.more = true
		}
		d.ready(&t.first)
		d.ready(&t.again)
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
		s = &hookedSpace{id: id, recorder: &recorder{dispatcher: d, workspace: id}, rates: e.cfg.Webhooks.Workspace.buckets()}
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
			d.setDue(&t.first, time.Time{})
			d.setDue(&t.again, time.Time{})
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
