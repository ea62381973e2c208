package actors

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/storage"
)

// fate is the outcome of a proposal, which a test chooses.
type fate int

const (
	applies      fate = iota
	fails             // not applied, with an error that says so
	failsApplied      // applied, with an error that doesn't say so
	failsLate         // applied only before the next proposal of the shard, after such an error
	failsLost         // never applied, after such an error
	waits             // applied when the test releases it
	panics            // the replicator breaks
)

// notApplied is the error of a proposal that changed nothing.
type notApplied struct{ error }

func (notApplied) NotApplied() bool { return true }

// localReplicator is a Replicator without replicas: it applies batches to a real Pebble in the
// order of their proposals, on one goroutine, and lets the test choose their outcome.
type localReplicator struct {
	store  *storage.Store
	shards int
	// fate returns the outcome of each proposal; nil means applies. It is called under
	// mu.
	fate func(n int, shard storage.Shard) fate

	proposed atomic.Int64
	// full is set while the shards' voters have no room: all proposals are refused.
	full atomic.Bool
	// barrier is what ReadBarrier returns.
	barrier atomic.Pointer[error]
	// onBarrier, if set, is called by ReadBarrier.
	onBarrier atomic.Pointer[func()]
	damaged   [8]atomic.Int32 // calls of Damaged, by shard

	mu       sync.Mutex
	cond     *sync.Cond
	epochs   map[storage.Shard]uint64 // owned ones
	last     uint64                   // last epoch
	queue    []*proposed
	late     map[storage.Shard][][]byte
	held     []*proposed // those with outcome waits, in order
	stopping bool
	instant  bool // applied before Propose returns
	ended    chan struct{}
}

type proposed struct {
	n     int
	shard storage.Shard
	epoch uint64
	batch []byte
	done  func(error)
}

func newLocal(store *storage.Store, shards int) *localReplicator {
	l := &localReplicator{store: store, shards: shards, epochs: map[storage.Shard]uint64{}, late: map[storage.Shard][][]byte{}, ended: make(chan struct{})}
	l.cond = sync.NewCond(&l.mu)
	go l.run()
	return l
}

func (l *localReplicator) stop() {
	l.mu.Lock()
	l.stopping = true
	l.cond.Broadcast()
	l.mu.Unlock()
	<-l.ended
}

func (l *localReplicator) Shards() int { return l.shards }

func (l *localReplicator) Owner(s storage.Shard) (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch := l.epochs[s]
	return epoch, epoch != 0
}

func (l *localReplicator) ReadBarrier(s storage.Shard, _ time.Time) error {
	if f := l.onBarrier.Load(); f != nil {
		(*f)()
	}
	if err := l.barrier.Load(); err != nil {
		return *err
	}
	if _, ok := l.Owner(s); !ok {
		return notApplied{errors.New("not the owner")}
	}
	return nil
}

func (l *localReplicator) HasRoom(storage.Shard) bool { return !l.full.Load() }

func (l *localReplicator) Damaged(s storage.Shard, _ error) { l.damaged[s].Add(1) }

func (l *localReplicator) Propose(s storage.Shard, epoch uint64, batch []byte, done func(error)) {
	n := int(l.proposed.Add(1))
	if l.full.Load() {
		done(notApplied{errors.New("no room")})
		return
	}
	p := &proposed{n, s, epoch, batch, done}
	l.mu.Lock()
	if l.fate != nil && l.fate(n, s) == panics {
		l.mu.Unlock()
		panic("the replicator broke")
	}
	if l.instant {
		err := l.apply(p)
		l.mu.Unlock()
		done(err)
		return
	}
	l.queue = append(l.queue, p)
	l.cond.Broadcast()
	l.mu.Unlock()
}

// release applies the held proposals.
func (l *localReplicator) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		err := l.apply(p)
		go p.done(err)
	}
	l.held = nil
}

// waitHeld returns when n proposals are held.
func (l *localReplicator) waitHeld(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.held) < n {
		l.cond.Wait()
	}
}

func (l *localReplicator) setFate(f func(n int, shard storage.Shard) fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fate = f
}

func (l *localReplicator) run() {
	defer close(l.ended)
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.queue) == 0 {
			if l.stopping {
				return
			}
			l.cond.Wait()
		}
		p := l.queue[0]
		l.queue = l.queue[1:]
		meets := applies
		if l.fate != nil {
			meets = l.fate(p.n, p.shard)
		}
		var err error
		switch meets {
		case applies:
			err = l.apply(p)
		case fails:
			err = notApplied{errors.New("refused")}
		case failsApplied:
			if err = l.apply(p); err == nil {
				err = errors.New("lost track")
			}
		case failsLate:
			l.late[p.shard] = append(l.late[p.shard], bytes.Clone(p.batch))
			err = errors.New("lost track")
		case failsLost:
			err = errors.New("lost track")
		case waits:
			l.held = append(l.held, p)
			l.cond.Broadcast()
			continue
		}
		l.mu.Unlock()
		p.done(err)
		l.mu.Lock()
	}
}

// apply writes a batch, and earlier late batches of its shard.
func (l *localReplicator) apply(p *proposed) error {
	if l.epochs[p.shard] != p.epoch {
		return notApplied{errors.New("fenced")}
	}
	for _, batch := range append(l.late[p.shard], bytes.Clone(p.batch)) {
		b := l.store.State().NewBatch()
		if err := b.SetRepr(batch); err != nil {
			return err
		}
		if err := l.store.CommitState(b); err != nil {
			return err
		}
	}
	delete(l.late, p.shard)
	return nil
}

// gain makes the engine the owner of every shard in the next epoch.
func (l *localReplicator) gain(t testing.TB, e *Engine) {
	t.Helper()
	for s := range storage.Shard(l.shards + 1) {
		l.mu.Lock()
		l.last++
		l.epochs[s] = l.last
		epoch := l.last
		l.mu.Unlock()
		e.Gained(s, epoch)
	}
}

// lose ends the ownership of one shard.
func (l *localReplicator) lose(e *Engine, s storage.Shard) {
	l.mu.Lock()
	epoch := l.epochs[s]
	l.epochs[s] = 0
	l.mu.Unlock()
	e.Lost(s, epoch)
}
