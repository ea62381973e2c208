package actors

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// listSets keeps the filter sets of workspaces whose lists need them: with sets a list
// costs in proportion to its page, with any filter. They are built when lists of a
// workspace have wasted about as much work as building takes, and dropped when no list has
// used them for Limits.Idle, when the shard is lost, and when the outcome of a batch is
// unknown. Without sets lists walk through indexes, within bounds.
type listSets struct {
	engine *Engine
	limit  int64 // bytes of all sets
	bytes  atomic.Int64
	built  atomic.Int64 // how many workspaces have sets, also such as are being made

	mu sync.RWMutex // guards of; nothing waits while it is held
	of map[storage.ID]*workspaceSets
}

// workspaceSets has the filter sets of one workspace, and the work that its lists have
// wasted without.
type workspaceSets struct {
	// sets are changed together with bytes, under mu; nil: none.
	sets   atomic.Pointer[storage.FilterSets]
	mu     sync.Mutex
	bytes  int64        // of sets, as counted in listSets.bytes
	wasted atomic.Int64 // by lists without sets
	used   atomic.Bool  // since the last sweep
	idle   int          // sweeps without a list; owned by the sweeper
	// barred is for how many more sweeps no sets are built, because that failed.
	barred atomic.Int64
}

const (
	// wasteSeen is the wasted work of a list that is too little to count.
	wasteSeen = 256
	// wasteWorth is the wasted work after which sets are built.
	wasteWorth = 20_000
	// watchedLists is the number of workspaces whose lists are watched.
	watchedLists = 4096
	// barredSweeps is how long sets that could not be built aren't tried again.
	barredSweeps = 2 * sweepsPerIdle
	// A build waits for the batch that is being replicated as it begins.
	buildLook, buildLooks = 2 * time.Millisecond, 1000
)

var (
	errNoRoom     = errors.New("filter sets: no memory is left for them")
	errSetsBroken = errors.New("filter sets: given up")
)

func (l *listSets) find(workspace storage.ID) *workspaceSets {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.of[workspace]
}

// filter gives a query the sets of its workspace, if there are any.
func (l *listSets) filter(v *tracker.View) {
	w := l.find(v.Workspace())
	if w == nil {
		return
	}
	if !w.used.Load() {
		w.used.Store(true)
	}
	sets := w.sets.Load()
	if sets == nil || !sets.Ready() {
		return
	}
	if epoch, _ := l.engine.replicator.Owner(v.Shard()); epoch != sets.Epoch() {
		l.clear(w, sets) // they were begun just as the shard was lost
		return
	}
	v.Filter(sets)
}

// listed ends a list. Where it used sets nobody else may have changed the workspace
// before it was read: the sets know the batches of their epoch alone.
func (l *listSets) listed(v *tracker.View, s *shard, deadline time.Time) error {
	sets := v.Filtered()
	if sets == nil {
		l.charge(s, v.Workspace(), v.Wasted())
		return nil
	}
	l.engine.stats.filtered.Add(1)
	epoch, err := l.engine.readable(s.number, deadline)
	if err != nil {
		return err
	}
	if epoch != sets.Epoch() {
		return errNotServed()
	}
	return nil
}

// charge counts what a list without sets has wasted, and has sets built when they would
// have cost as much.
func (l *listSets) charge(s *shard, workspace storage.ID, wasted int) {
	if wasted < wasteSeen || l.limit <= 0 {
		return
	}
	w := l.watch(workspace)
	if w == nil || w.wasted.Add(int64(wasted)) < wasteWorth || w.barred.Load() > 0 {
		return
	}
	epoch, owned := l.engine.replicator.Owner(s.number)
	if !owned || w.sets.Load() != nil || !l.engine.background.enter() {
		return
	}
	sets := storage.NewFilterSets(&tracker.IssueSets, epoch)
	l.mu.RLock() // so that w is not forgotten just now
	begun := l.of[workspace] == w && w.sets.CompareAndSwap(nil, sets)
	l.mu.RUnlock()
	if !begun {
		l.engine.background.leave()
		return
	}
	l.built.Add(1)
	w.wasted.Store(0)
	go func() {
		defer l.engine.background.leave()
		l.build(s, workspace, w, sets)
	}()
}

// watch returns the entry of a workspace, or nil if there are too many entries.
func (l *listSets) watch(workspace storage.ID) *workspaceSets {
	if w := l.find(workspace); w != nil {
		return w
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of[workspace]
	if w == nil && len(l.of) < watchedLists {
		w = &workspaceSets{}
		w.used.Store(true)
		l.of[workspace] = w
	}
	return w
}

// build fills sets that notes batches already.
func (l *listSets) build(s *shard, workspace storage.ID, w *workspaceSets, sets *storage.FilterSets) {
	err := l.fill(s, workspace, w, sets)
	l.count(w, sets, sets.Bytes())
	outcome := setsBuilt
	switch {
	case errors.Is(err, errNoRoom):
		outcome = setsNoRoom
	case err != nil:
		outcome = setsFailed
	}
	l.engine.stats.sets[outcome].Add(1)
	if err != nil {
		l.engine.log.Debug("filter sets not built", "workspace", workspace.String(), "error", err)
		w.barred.Store(barredSweeps)
		l.clear(w, sets)
	}
}

func (l *listSets) fill(s *shard, workspace storage.ID, w *workspaceSets, sets *storage.FilterSets) error {
	e := l.engine
	snapshot, err := l.moment(s, workspace)
	if err != nil {
		return err
	}
	defer func() { _ = snapshot.Close() }()
	v := storage.NewView(snapshot, s.number, workspace)
	return e.inTurns(func(pause func() error) error {
		return sets.Build(&v, func(bytes int64) error {
			if sets.Broken() {
				return errSetsBroken
			}
			if l.count(w, sets, bytes) > l.limit && !l.makeRoom(w) {
				return errNoRoom
			}
			return pause()
		})
	})
}

// moment takes a snapshot with every batch that the sets will not be notified of: those
// proposed before the sets existed. It waits until these are applied.
func (l *listSets) moment(s *shard, workspace storage.ID) (*pebble.Snapshot, error) {
	var proposed uint64
	s.mu.RLock()
	if h := s.handles[workspace]; h != nil {
		proposed = h.proposed.Load()
	}
	s.mu.RUnlock()
	wait := time.NewTicker(buildLook)
	defer wait.Stop()
	for range buildLooks {
		snapshot := l.engine.state.NewSnapshot()
		v := storage.NewView(snapshot, s.number, workspace)
		version, err := tracker.IssueSets.VersionAt(&v)
		if err == nil && version >= proposed {
			return snapshot, nil
		}
		if err = errors.Join(err, snapshot.Close()); err != nil {
			return nil, fmt.Errorf("look for a moment to build from: %w", err)
		}
		select {
		case <-wait.C:
		case <-l.engine.stopped.Done():
			return nil, errClosing()
		}
	}
	return nil, errSetsBroken
}

// count puts the bytes of a workspace's sets, and gives those of all.
func (l *listSets) count(w *workspaceSets, sets *storage.FilterSets, bytes int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets.Load() != sets {
		return l.bytes.Load()
	}
	more := bytes - w.bytes
	w.bytes = bytes
	return l.bytes.Add(more)
}

// clear makes an end of sets of a workspace.
func (l *listSets) clear(w *workspaceSets, sets *storage.FilterSets) {
	sets.Break()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets.CompareAndSwap(sets, nil) {
		l.built.Add(-1)
		l.bytes.Add(-w.bytes)
		w.bytes = 0
	}
}

// note tells the sets of a workspace of a batch that is about to be proposed.
func (l *listSets) note(shard storage.Shard, workspace storage.ID, repr []byte, from, to uint64) {
	if l.built.Load() == 0 {
		return
	}
	w := l.find(workspace)
	if w == nil {
		return
	}
	sets := w.sets.Load()
	if sets == nil {
		return
	}
	v := storage.NewView(nil, shard, workspace)
	sets.Note(&v, repr, from, to)
	if sets.Broken() || sets.Ready() && l.count(w, sets, sets.Bytes()) > l.limit && !l.makeRoom(w) {
		l.clear(w, sets)
	}
}

// drop gives up the sets of a workspace of which a batch was not applied, or may not
// have been.
func (l *listSets) drop(workspace storage.ID) {
	if w := l.find(workspace); w != nil {
		if sets := w.sets.Load(); sets != nil {
			l.clear(w, sets)
		}
	}
}

// dropShard forgets the workspaces of a shard.
func (l *listSets) dropShard(n storage.Shard) {
	l.forget(func(workspace storage.ID, _ *workspaceSets) bool {
		return storage.ShardOf(workspace, len(l.engine.shards)-1) == n
	})
}

// sweep forgets the workspaces without lists.
func (l *listSets) sweep() {
	l.forget(func(_ storage.ID, w *workspaceSets) bool {
		if w.barred.Load() > 0 {
			w.barred.Add(-1)
		}
		if w.used.Swap(false) {
			w.idle = 0
		} else {
			w.idle++
		}
		if sets := w.sets.Load(); sets != nil && sets.Broken() {
			l.clear(w, sets)
		}
		return w.idle >= sweepsPerIdle
	})
}

// makeRoom drops sets that no list has used since the last sweep, but not those of w;
// false when all are over the limit still.
func (l *listSets) makeRoom(w *workspaceSets) bool {
	l.forget(func(_ storage.ID, other *workspaceSets) bool {
		return other != w && l.bytes.Load() > l.limit && other.sets.Load() != nil && !other.used.Load()
	})
	return l.bytes.Load() <= l.limit
}

func (l *listSets) forget(which func(storage.ID, *workspaceSets) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for workspace, w := range l.of {
		if !which(workspace, w) {
			continue
		}
		delete(l.of, workspace)
		if sets := w.sets.Load(); sets != nil {
			l.clear(w, sets)
		}
	}
}
