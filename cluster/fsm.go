package cluster

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// applyBytes is where one Pebble batch made of several entries ends, well below
// half a memtable.
const applyBytes = 1 << 20

// logOverhead is roughly what an entry takes on disk beside its data.
const logOverhead = 64

// stateMachine writes a shard's committed entries into the state instance. It
// implements raft.BatchingFSM.
type stateMachine struct {
	shard   storage.Shard
	db      *pebble.DB
	flusher *flusher
	fail    func(error) // told once; must not block
	// grown is told how many bytes of log were added, with this shard's sum since the
	// last snapshot, and shrunk how many a snapshot covered. They must not block.
	grown  func(added, sum int64)
	shrunk func(covered int64)

	snapshots *snapshotStore
	guard     installGuard
	// needsReopen is told that Raft's member must be made anew before it can follow the
	// log again. It must not block.
	needsReopen func()

	// Owned by Raft's state machine goroutine.
	at    position
	err   error // set for good when the state could not follow the log
	entry pebble.Batch
	key   []byte
	row   []byte

	applied atomic.Uint64 // at.applied, for others to see
	pending atomic.Int64  // bytes of log since the last snapshot

	pendingMu sync.Mutex // held while pending is reduced
	installs  int        // snapshots put in place; under settling
}

func newStateMachine(store *storage.Store, shard storage.Shard, f *flusher) (*stateMachine, error) {
	at, err := readPosition(store.State(), shard)
	if err != nil {
		return nil, fmt.Errorf("read the position of shard %d: %w", shard, err)
	}
	m := &stateMachine{shard: shard, db: store.State(), flusher: f, at: at, key: positionKey(shard),
		fail: func(error) {}, grown: func(int64, int64) {}, shrunk: func(int64) {}, needsReopen: func() {}}
	m.applied.Store(at.applied)
	return m, nil
}

// claimed is the answer to a Claim.
type claimed struct {
	// settled: nobody else may still answer reads from an older epoch.
	settled bool
}

// ApplyBatch applies committed entries in order. A result is nil, a *claimed, or
// an error.
func (m *stateMachine) ApplyBatch(logs []*raft.Log) []any {
	results := make([]any, len(logs))
	var (
		batch *pebble.Batch
		next  = m.at
		since = 0 // first entry not written yet
		added int64
	)
	write := func(end int) {
		if batch == nil {
			return
		}
		if err := m.write(batch, next); err != nil {
			m.halt(err)
			for i := since; i < end; i++ {
				results[i] = m.err
			}
		}
		batch, since = nil, end
	}
	for i, l := range logs {
		added += int64(len(l.Data)) + logOverhead
		if m.err != nil {
			results[i] = m.err
			continue
		}
		if l.Index <= next.applied {
			results[i] = errReplayed
			continue
		}
		if batch == nil {
			batch, since = m.db.NewBatch(), i
		}
		result, err := m.apply(batch, &next, l)
		if err != nil {
			// What the open batch holds is in the log, and comes again at the next start.
			m.discard(batch)
			batch = nil
			m.halt(fmt.Errorf("apply entry %d of shard %d: %w", l.Index, m.shard, err))
			for j := since; j <= i; j++ {
				results[j] = m.err
			}
			continue
		}
		results[i] = result
		if batch.Len() >= applyBytes {
			write(i + 1)
		}
	}
	write(len(logs))
	m.grown(added, m.pending.Add(added))
	return results
}

// Apply applies one entry.
func (m *stateMachine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// apply adds one entry to batch and moves next behind it.
func (m *stateMachine) apply(batch *pebble.Batch, next *position, l *raft.Log) (any, error) {
	if l.Type != raft.LogCommand { // a change of the group's members
		next.applied = l.Index
		return nil, nil
	}
	kind, epoch, body, err := splitEntry(l.Data)
	if err != nil {
		return nil, err
	}
	next.applied = l.Index
	switch kind {
	case entryClaim:
		// A claim that lingered into a later term of the same leader names an epoch
		// that is not this entry's: the claimer tries again.
		// One that repeats the standing claim is as good as that, but not after a release:
		// who served the epoch until then may still propose in it.
		if epoch != l.Term || epoch < next.epoch || epoch == next.epoch && (string(body) != next.owner || next.released) {
			return errFenced, nil
		}
		next.claim(epoch, string(body))
		return &claimed{settled: next.settled}, nil
	case entryRelease:
		if epoch != next.epoch {
			return errFenced, nil
		}
		next.released = true
		return nil, nil
	case entryBatch:
		// The fence: a deposed owner's late batch is refused on every replica alike.
		if epoch != next.epoch || next.released {
			return errFenced, nil
		}
		// Raft still owns the entry's bytes, and Pebble writes into what it commits:
		// SetRepr only aliases them, Apply copies.
		if err := m.entry.SetRepr(body); err != nil {
			return nil, err
		}
		if err := batch.Apply(&m.entry, nil); err != nil {
			return nil, err
		}
		next.settled = true // who writes has waited
		return nil, nil
	}
	return nil, fmt.Errorf("%w: kind %d", errEntry, kind)
}

// write commits batch with the position it leads to.
func (m *stateMachine) write(batch *pebble.Batch, next position) error {
	m.row = next.append(m.row[:0])
	err := batch.Set(m.key, m.row, nil)
	if err == nil {
		err = batch.Commit(pebble.NoSync)
	}
	if err != nil {
		m.discard(batch)
		return fmt.Errorf("apply up to entry %d of shard %d: %w", next.applied, m.shard, err)
	}
	m.flusher.written()
	if err := batch.Close(); err != nil {
		return fmt.Errorf("apply up to entry %d of shard %d: %w", next.applied, m.shard, err)
	}
	m.at = next
	m.applied.Store(next.applied)
	return nil
}

// discard closes a batch after a failure that is reported already.
func (m *stateMachine) discard(batch *pebble.Batch) { _ = batch.Close() }

// halt ends the shard's service on this node: going on after an entry that could
// not be applied would make this replica differ from the others in silence.
func (m *stateMachine) halt(err error) {
	m.err = &Error{message: "the shard's state could not follow its log", cause: err}
	m.fail(m.err)
}

// snapshotCovered notes that a snapshot covered so many bytes of the log. The snapshot was
// begun after so many installs: one more since has settled everything.
func (m *stateMachine) snapshotCovered(covered int64, installs int) {
	m.pendingMu.Lock()
	defer m.pendingMu.Unlock()
	if installs != m.installs {
		return
	}
	m.pending.Add(-covered)
	m.shrunk(covered)
}

// Snapshot notes that the state stands at the last entry applied.
func (m *stateMachine) Snapshot() (raft.FSMSnapshot, error) {
	if m.err != nil {
		return nil, m.err
	}
	m.pendingMu.Lock()
	defer m.pendingMu.Unlock()
	return &snapshot{machine: m, covered: m.pending.Load(), installs: m.installs}, nil
}

// snapshot makes what was applied durable, so that the log before it may go.
type snapshot struct {
	machine  *stateMachine
	covered  int64
	installs int
}

// Persist flushes the state; only then is the snapshot recorded.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.machine.flusher.flush(); err != nil {
		return err
	}
	own, ok := sink.(*snapshotSink)
	if !ok {
		return fmt.Errorf("cluster: a snapshot of shard %d goes to a foreign store", s.machine.shard)
	}
	if err := own.record(); err != nil {
		return err
	}
	s.machine.snapshotCovered(s.covered, s.installs)
	return nil
}

// Release does nothing: a snapshot holds nothing.
func (s *snapshot) Release() {}
