package actors

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
	"switchyard/storage"
)

// shard is the engine's part of one shard. While this node owns the shard it has the
// handles of the active workspaces, the scheduler and the dispatcher.
type shard struct {
	engine *Engine
	number storage.Shard
	// work counts the requests in progress, for closing.
	work     inflight
	commands atomic.Int64 // unanswered
	modes    readOnlyModes

	mu      sync.RWMutex // guards the rest; never held while waiting for anything
	owned   bool
	epoch   uint64
	handles map[storage.ID]*handle
	timers  *scheduler
	// dispatcher delivers to webhooks; the directory's shard has none.
	dispatcher *delivery.Dispatcher
}

// handle refers to the actor of an active workspace.
type handle struct {
	shard     *shard
	workspace storage.ID
	epoch     uint64
	pid       *actor.PID
	latch     passivationLatch // counts what the actor still has to do
	used      atomic.Bool      // since the last sweep
	// proposed is the version that the last proposed batch leads to; see
	// tracker.IssueSets.
	proposed atomic.Uint64

	// idle counts the sweeps without a command; owned by the sweeper.
	idle int

	// The rest outlives a panic of the actor and is owned by it.

	// leaving: the shard was lost; everything is turned away until the actor ends.
	leaving bool
	// doubtful: a batch may or may not have been applied, or may yet be, so nothing
	// read from the workspace can be built upon until an empty batch that was
	// proposed behind it is applied. While it lasts the latch is held.
	doubtful bool
	// doubted are the kinds of rows that the batches in doubt changed.
	doubted storage.DirtyFlags
}

func newShard(e *Engine, n storage.Shard) *shard {
	s := &shard{engine: e, number: n}
	s.work.ended = make(chan struct{})
	return s
}

// Gained says that this node owns a shard from now on, in an epoch.
func (e *Engine) Gained(n storage.Shard, epoch uint64) {
	s := e.shards[n]
	s.lose() // an epoch that ended without word
	if e.closing.Load() {
		return
	}
	s.forgetReadOnly()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned, s.epoch, s.handles = true, epoch, map[storage.ID]*handle{}
	s.timers = startScheduler(s)
	if n != storage.DirectoryShard {
		s.dispatcher = e.deliveries.Start(n, s.readOnly)
	}
}

// Lost stops the work of a shard that this node does not own any longer. Requests that
// wait for its workspaces are answered.
func (e *Engine) Lost(n storage.Shard, epoch uint64) {
	s := e.shards[n]
	s.mu.RLock()
	current := s.owned && s.epoch == epoch
	s.mu.RUnlock()
	if current {
		s.lose()
	}
}

func (s *shard) lose() {
	s.mu.Lock()
	handles, timers, dispatcher := s.handles, s.timers, s.dispatcher
	s.owned, s.handles, s.timers, s.dispatcher = false, nil, nil, nil
	s.mu.Unlock()
	s.engine.active.Add(-int64(len(handles)))
	if timers != nil {
		timers.stop()
	}
	if dispatcher != nil {
		dispatcher.Stop()
	}
	s.engine.waits.wakeShard(s.engine, s)
	s.engine.endFeeds(s)
	s.engine.lists.dropShard(s.number)
	for _, h := range handles {
		if h.latch.hold() { // else it is passivated already
			s.engine.root.Send(h.pid, lost{})
		}
	}
}

// admit counts one more command to a workspace and gives the handle it is to be
// sent to; the actor counts it off when it answers.
func (s *shard) admit(workspace storage.ID) (*handle, error) {
	e, limits := s.engine, &s.engine.cfg.Limits
	free := int64(limits.Commands) - e.commands.Add(1)
	if free < 0 {
		e.commands.Add(-1)
		e.stats.refused[refusedEngineFull].Add(1)
		return nil, tracker.NotApplied("Too many changes are waiting on this node.")
	}
	inShard := int64(limits.ShardCommands) - s.commands.Add(1)
	if inShard < 0 {
		s.counted()
		e.stats.refused[refusedShardFull].Add(1)
		return nil, tracker.NotApplied("Too many changes are waiting in the part of the service that holds the workspace.")
	}
	// The command itself is counted already, and may be the last that fits.
	share := fairShare(limits.WorkspaceCommands, min(free, inShard)+1)
	for {
		h, err := s.handle(workspace)
		if err != nil {
			s.counted()
			return nil, err
		}
		ok, full := h.latch.enter(share)
		if ok {
			if !h.used.Load() {
				h.used.Store(true)
			}
			return h, nil
		}
		if full {
			s.counted()
			return nil, e.refuseShare(share < limits.WorkspaceCommands, free < inShard)
		}
		// It was passivated or lost between the look-up and the latch: look again.
	}
}

// refuseShare is the answer to a command of a workspace that has as many unanswered ones as
// it may. With common, that is its share of what others use too: of the node with
// ofNode, else of the shard.
func (e *Engine) refuseShare(common, ofNode bool) error {
	switch {
	case !common:
		e.stats.refused[refusedWorkspaceFull].Add(1)
		return tracker.NotApplied("Too many changes of the workspace are waiting.")
	case ofNode:
		e.stats.refused[refusedEngineFull].Add(1)
		return tracker.NotApplied("Many changes are waiting on this node, and the workspace has its share of them.")
	}
	e.stats.refused[refusedShardFull].Add(1)
	return tracker.NotApplied("Many changes are waiting in the part of the service that holds the workspace, and it has its share of them.")
}

// counted takes a command off the counts of shard and engine.
func (s *shard) counted() {
	s.commands.Add(-1)
	s.engine.commands.Add(-1)
}

// handle finds or makes the handle of a workspace.
func (s *shard) handle(workspace storage.ID) (*handle, error) {
	s.mu.RLock()
	h, owned := s.handles[workspace], s.owned
	s.mu.RUnlock()
	if h != nil {
		return h, nil
	}
	if !owned {
		s.engine.stats.refused[refusedNotOwner].Add(1)
		return nil, errNotServed()
	}
	return s.activate(workspace)
}

func (s *shard) activate(workspace storage.ID) (*handle, error) {
	e := s.engine
	if e.active.Add(1) > int64(e.cfg.Limits.ActiveActors) && !e.evict() {
		e.active.Add(-1)
		e.stats.refused[refusedActors].Add(1)
		return nil, tracker.NotApplied("Too many workspaces are being changed.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.handles[workspace]; h != nil {
		e.active.Add(-1)
		return h, nil
	}
	if !s.owned || !e.actors.enter() {
		e.active.Add(-1)
		e.stats.refused[refusedNotOwner].Add(1)
		return nil, errNotServed()
	}
	h := &handle{shard: s, workspace: workspace, epoch: s.epoch}
	// The library's own limit on restarts would stop the actor with its mailbox
	// unread; this strategy always restarts it.
	h.pid = e.root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &workspaceActor{engine: e, h: h} },
		actor.WithGuardian(alwaysRestart), actor.WithDispatcher(&e.workers)))
	s.handles[workspace] = h
	return h, nil
}

var alwaysRestart = actor.NewRestartingStrategy()

// passivate ends the actor of a workspace unless it has something to do.
func (s *shard) passivate(h *handle) bool {
	s.mu.Lock()
	// Both under the lock: a sender that finds the latch shut must not find the handle
	// again.
	shut := s.handles[h.workspace] == h && h.latch.shut()
	if shut {
		delete(s.handles, h.workspace)
	}
	s.mu.Unlock()
	if shut {
		s.engine.active.Add(-1)
		s.engine.root.Poison(h.pid)
	}
	return shut
}
