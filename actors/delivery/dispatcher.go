package delivery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Dispatcher makes the webhook deliveries of one shard while this node owns it.
// Deliveries are rows, and the results of attempts are written by the workspace's
// actor, so the dispatcher has no state that a restart or another owner would lack: a
// delivery that was sent but not recorded is sent again, under the same id.
//
// Each webhook has two queues: one for first attempts, in the order of commits, and one
// for retries, in the order of their due times. A queue sends one request at a time, so
// a slow receiver delays only its own deliveries.
type Dispatcher struct {
	of       *Dispatchers
	shard    storage.Shard
	readOnly func() (*tracker.ReadOnlySet, error)

	ctx    context.Context
	cancel context.CancelFunc
	wakeup chan struct{}
	// lost is set once the shard is owned no longer, or by a later dispatcher. This
	// dispatcher must not record any more results.
	lost atomic.Bool
	// renewed makes the loop look for the deliveries of all workspaces again.
	renewed atomic.Bool
	ended   chan queueRun // with room for all queues that run at once, so that they never block

	mu    sync.Mutex // guards dirty; never held while waiting
	dirty map[storage.ID]*dirtyHooks

	granted []*slot // guarded by the mutex of the node's capacity

	// Owned by the loop's goroutine.
	spaces    map[storage.ID]*workspaceHooks
	healthy   []*queue // ready to run, in order
	unhealthy []*queue // ready to run, of webhooks that did not answer quickly
	turns     int
	running   runCount
	due       dueHeap
	shrunk    time.Time // time of the last look for idle workspaces
}

// dirtyHooks are the kinds of changes in a workspace since the loop last looked.
type dirtyHooks struct {
	kinds dirtyKinds
	hooks []storage.ID // webhooks with new first attempts
}

type dirtyKinds uint8

const (
	dirtyOutbox   dirtyKinds = 1 << iota // first attempts, for any webhook
	dirtyQueued                          // first attempts, for the webhooks in hooks
	dirtyWebhooks                        // changes of webhooks or their retries
	dirtyRecorded                        // results were recorded
)

// workspaceHooks is a workspace with webhooks.
type workspaceHooks struct {
	id       storage.ID
	hooks    map[storage.ID]*hook
	recorder *recorder
	rates    *rateBuckets
	running  runCount
	parked   []*queue // ready to run, but the workspace has its share of running queues
	shares   [classes]share
}

// runCount counts running queues.
type runCount struct{ all, unhealthy int }

const (
	// dispatchLook is the longest time that the loop sleeps, in case the clock is set.
	dispatchLook = time.Minute
	// spacesKept is the number of workspaces up to which idle ones are cached.
	spacesKept = 1024
	// While more are cached, as at the start of a dispatcher, which loads all of them, some are
	// looked at every shrinkPause.
	shrinkPause = time.Second
	// readAgain is the time after which a failed read is made again.
	readAgain = time.Second
	// unhealthyTurn is the interval of turns that go to a queue of a slow webhook, if one is
	// waiting, so that the others can't starve it.
	unhealthyTurn = 4
)

// Start starts the deliveries of a shard. readOnly returns the read-only modes that hold in
// it. Start returns nil if the node stops.
func (d *Dispatchers) Start(shard storage.Shard, readOnly func() (*tracker.ReadOnlySet, error)) *Dispatcher {
	if !d.cfg.Enter() {
		return nil
	}
	r := d.dispatcher(shard, readOnly)
	go r.loop()
	return r
}

// dispatcher returns a dispatcher whose loop does not run yet.
func (d *Dispatchers) dispatcher(shard storage.Shard, readOnly func() (*tracker.ReadOnlySet, error)) *Dispatcher {
	r := &Dispatcher{
		of:       d,
		shard:    shard,
		readOnly: readOnly,
		wakeup:   make(chan struct{}, 1),
		ended:    make(chan queueRun, d.cfg.Most),
		dirty:    map[storage.ID]*dirtyHooks{},
		spaces:   map[storage.ID]*workspaceHooks{},
	}
	r.ctx, r.cancel = context.WithCancel(d.cfg.Stopped)
	return r
}

// Stop makes the loop end and cancels its requests; it doesn't wait. It is called
// before another dispatcher of the shard starts.
func (d *Dispatcher) Stop() {
	d.lost.Store(true)
	d.cancel()
}

// Notify makes the dispatcher look into a workspace. touched says what changed there, and
// queued are the webhooks that may have new deliveries; none means any.
func (d *Dispatcher) Notify(workspace storage.ID, touched storage.DirtyFlags, queued []storage.ID) {
	var kinds dirtyKinds
	if touched&tracker.DirtyOutbox != 0 {
		if kinds = dirtyOutbox; len(queued) > 0 {
			kinds = dirtyQueued
		}
	}
	if touched&tracker.DirtyWebhooks != 0 {
		kinds |= dirtyWebhooks
	}
	d.notify(workspace, kinds, queued...)
}

// Restart makes the dispatcher look into all workspaces again.
func (d *Dispatcher) Restart() {
	d.renewed.Store(true)
	d.wake()
}

func (d *Dispatcher) notify(workspace storage.ID, kinds dirtyKinds, hooks ...storage.ID) {
	d.mu.Lock()
	d.note(workspace, kinds, hooks)
	d.mu.Unlock()
	d.wake()
}

func (d *Dispatcher) wake() {
	select {
	case d.wakeup <- struct{}{}:
	default: // the loop is about to look
	}
}

// note adds to the noted changes; the caller holds mu.
func (d *Dispatcher) note(workspace storage.ID, kinds dirtyKinds, hooks []storage.ID) {
	n := d.dirty[workspace]
	if n == nil {
		n = &dirtyHooks{}
		d.dirty[workspace] = n
	}
	n.kinds |= kinds
	for _, id := range hooks { // at most as many as a workspace can have
		if !slices.Contains(n.hooks, id) {
			n.hooks = append(n.hooks, id)
		}
	}
}

func (d *Dispatcher) loop() {
	defer d.of.cfg.Leave()
	defer d.of.capacity.leave(d)
	timer := time.NewTimer(0)
	defer timer.Stop()
	begun := false
	for {
		sleep := readAgain
		if d.of.cfg.Shortage(d.shard) == storage.Ample { // otherwise results could not be recorded
			if d.renewed.Swap(false) {
				begun = false
			}
			if !begun {
				begun = d.begin()
			}
			if begun {
				d.takeChanges()
				sleep = d.wait()
				d.start()
				sleep = d.shrink(sleep)
			}
		} else {
			d.returnSlots()
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

// begin finds the deliveries that an earlier owner left.
func (d *Dispatcher) begin() bool {
	v := storage.NewView(d.of.cfg.State, d.shard, storage.SystemID)
	list, err := tracker.ListWebhookWorkspaces(&v)
	if err != nil {
		d.broken(storage.SystemID, err)
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range list {
		d.note(id, dirtyWebhooks, nil)
	}
	return true
}

func (d *Dispatcher) broken(workspace storage.ID, err error) {
	d.of.cfg.Logger.Error("read webhooks", "shard", int(d.shard), "workspace", workspace.String(), "error", err)
}

// takeChanges processes the noted changes.
func (d *Dispatcher) takeChanges() {
	var heard map[storage.ID]*dirtyHooks
	d.mu.Lock()
	if len(d.dirty) > 0 {
		heard, d.dirty = d.dirty, map[storage.ID]*dirtyHooks{}
	}
	d.mu.Unlock()
	for id, n := range heard {
		d.refreshSpace(id, n)
	}
}

func (d *Dispatcher) refreshSpace(id storage.ID, n *dirtyHooks) {
	s := d.spaces[id]
	if s == nil && n.kinds == dirtyRecorded {
		return
	}
	loaded := s == nil || n.kinds&dirtyWebhooks != 0
	if loaded {
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
	if !loaded && n.kinds == dirtyQueued {
		return
	}
	for _, t := range s.hooks {
		if n.kinds&dirtyOutbox != 0 {
			t.first.more = true
		}
		d.ready(&t.first)
		d.ready(&t.again)
	}
}

// load reads a workspace's webhooks again; it returns nil if there are none.
func (d *Dispatcher) load(id storage.ID) *workspaceHooks {
	v := storage.NewView(d.of.cfg.State, d.shard, id)
	list, err := tracker.ListWebhookTargets(&v)
	if err != nil {
		d.broken(id, err)
		time.AfterFunc(readAgain, func() { d.notify(id, dirtyWebhooks|dirtyOutbox) })
		return nil
	}
	s := d.spaces[id]
	if s == nil {
		if len(list) == 0 {
			return nil
		}
		d.evict(32)
		s = d.space(id)
		d.spaces[id] = s
	}
	before := s.hooks
	s.hooks = make(map[storage.ID]*hook, len(list))
	for i := range list {
		t := before[list[i].ID]
		if t == nil {
			t = newHook(s, list[i].ID)
			if t.healthy, err = tracker.WebhookSucceeded(&v, t.id); err != nil {
				d.broken(id, err) // it is healthy after its next quick success
			}
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

// space returns a workspace whose webhooks are not loaded.
func (d *Dispatcher) space(id storage.ID) *workspaceHooks {
	return &workspaceHooks{id: id, recorder: &recorder{dispatcher: d, workspace: id}, rates: d.of.cfg.Workspace.buckets(), shares: newShares(d)}
}

// evict drops idle workspaces from the cache until there is room for one more. It looks at up to
// most workspaces.
func (d *Dispatcher) evict(most int) {
	now := d.of.cfg.Clock()
	for id, s := range d.spaces { // in random order
		if most == 0 || len(d.spaces) < spacesKept {
			return
		}
		if most--; s.idle(now) {
			delete(d.spaces, id)
		}
	}
}

// shrink drops idle workspaces now and then while the cache has too many, and returns the time
// until the loop has to call it again, at most sleep.
func (d *Dispatcher) shrink(sleep time.Duration) time.Duration {
	if len(d.spaces) <= spacesKept {
		return sleep
	}
	if now := time.Now(); now.Sub(d.shrunk) >= shrinkPause {
		d.shrunk = now
		d.evict(spacesKept)
	}
	return min(sleep, shrinkPause)
}

// readOnly reports whether the workspace's deliveries wait for the end of a read-only mode.
func (s *workspaceHooks) readOnly() bool {
	modes, err := s.recorder.dispatcher.readOnly()
	return err != nil || modes.Forbids(s.id)
}

// idle reports whether a workspace has nothing under way and can be loaded again when it has
// deliveries. Its rates must be full: they are when it is loaded, so it could use them twice.
func (s *workspaceHooks) idle(now time.Time) bool {
	if s.running.all > 0 || len(s.parked) > 0 || !s.recorder.empty() || s.rates != nil && !s.rates.full(now) {
		return false
	}
	for _, t := range s.hooks {
		if t.first.busy() || t.again.busy() || !t.again.due.IsZero() {
			return false
		}
	}
	return true
}
