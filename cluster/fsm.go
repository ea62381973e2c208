package cluster

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// applyBytes is the size from which a Pebble batch takes no more entries. It is well below half a
// memtable.
const applyBytes = 1 << 20

// logOverhead is about the disk space of an entry beside its data.
const logOverhead = 64

// stateMachine writes a shard's committed entries into the state instance. It
// implements raft.BatchingFSM.
type stateMachine struct {
	shard   storage.Shard
	store   *storage.Store
	flusher *flusher
	fail    func(error) // called once; must not block
	// grown is called with the number of bytes added to the log and the shard's sum since the last
	// snapshot, shrunk with the number of bytes that a snapshot covered. They must not block.
	grown  func(added, sum int64)
	shrunk func(covered int64)

	snapshots *raftstore.SnapshotStore
	guard     installGuard
	// needsReopen is called when Raft's member must be reopened before it can follow the log again.
	// It must not block.
	needsReopen func()
	// spoil is called with the error of an install that met damage on the disk. It must not block.
	spoil func(error)

	// Owned by Raft's state machine goroutine.
	at    position
	err   error // set for good when the state could not follow the log
	entry pebble.Batch
	batch []byte // of a packed entry
	key   []byte
	row   []byte

	applied atomic.Uint64       // copy of at.applied for other goroutines
	cut     atomic.Pointer[cut] // nil: nobody waits for the rows at an entry
	pending atomic.Int64        // bytes of log since the last snapshot
	logged  atomic.Int64        // bytes of log since the start

	pendingMu sync.Mutex // held while pending is reduced
	installs  int        // snapshots installed; under pendingMu
}

func newStateMachine(store *storage.Store, shard storage.Shard, f *flusher) (*stateMachine, error) {
	at, err := readPosition(store.State(), shard)
	if err != nil {
		return nil, fmt.Errorf("read the position of shard %d: %w", shard, err)
	}
	m := &stateMachine{shard: shard, store: store, flusher: f, at: at, key: positionKey(shard),
		fail: func(error) {}, grown: func(int64, int64) {}, shrunk: func(int64) {}, needsReopen: func() {}, spoil: func(error) {}}
	m.applied.Store(at.applied)
	return m, nil
}

// claimed is the result of a Claim entry.
type claimed struct {
	// settled is set if no other node can hold a read lease of an older epoch.
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
		if c := m.cut.Load(); c != nil && l.Index > c.entry {
			write(i)
			m.cutBefore(c)
		}
		if m.err != nil {
			results[i] = m.err
			continue
		}
		if l.Index <= next.applied {
			results[i] = errReplayed
			continue
		}
		if batch == nil {
			batch, since = m.store.State().NewBatch(), i
		}
		result, err := m.apply(batch, &next, l)
		if err != nil {
			// The entries of the open batch are in the log and are applied again at the next start.
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
	m.logged.Add(added)
	m.grown(added, m.pending.Add(added))
	return results
}

// Apply applies one entry.
func (m *stateMachine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// noBatch is a batch without writes. Nothing writes into it.
var noBatch [batchHeader]byte

// apply adds one entry to batch and advances next.
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
		// A claim that stayed in the queue into a later term of the same leader has another epoch
		// than the entry's term: the node claims again. A repeated claim of the current epoch is
		// accepted, but not after a release: actors of the released epoch may still propose in it.
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
	case entryBatch, entryPacked:
		// The fence: every replica refuses a deposed owner's late batch.
		if epoch != next.epoch || next.released {
			return errFenced, nil
		}
		if kind == entryPacked {
			if body, err = unpack(m.batch, body); err != nil {
				return nil, err
			}
			if m.batch = nil; cap(body) <= maxPooledBuffer {
				m.batch = body
			}
		}
		// Raft still owns the entry's bytes, and Pebble writes into what it commits:
		// SetRepr only aliases them, Apply copies.
		if err := m.entry.SetRepr(body); err != nil {
			return nil, err
		}
		if err := batch.Apply(&m.entry, nil); err != nil {
			return nil, err
		}
		if err := m.entry.SetRepr(noBatch[:]); err != nil { // lets go of the bytes
			return nil, err
		}
		next.settled = true // an owner that writes has waited out older leases
		return nil, nil
	}
	return nil, fmt.Errorf("%w: kind %d", errEntry, kind)
}

// write commits batch with its position.
func (m *stateMachine) write(batch *pebble.Batch, next position) error {
	m.row = next.append(m.row[:0])
	err := batch.Set(m.key, m.row, nil)
	if err == nil {
		err = m.store.CommitState(batch)
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

// discard closes a batch after a failure that was reported.
func (m *stateMachine) discard(batch *pebble.Batch) { _ = batch.Close() }

// halt stops serving the shard on this node: a replica that skipped an entry would silently differ
// from the others.
func (m *stateMachine) halt(err error) {
	m.err = &Error{message: "the shard's state could not follow its log", cause: err}
	m.fail(m.err)
}

// snapshotCovered subtracts the bytes of log that a snapshot covered. installs is the number of
// installs when the snapshot began: an install since then has already reset the count.
func (m *stateMachine) snapshotCovered(covered int64, installs int) {
	m.pendingMu.Lock()
	defer m.pendingMu.Unlock()
	if installs != m.installs {
		return
	}
	m.pending.Add(-covered)
	m.shrunk(covered)
}

// Snapshot records the position of the last entry applied.
func (m *stateMachine) Snapshot() (raft.FSMSnapshot, error) {
	if m.err != nil {
		return nil, m.err
	}
	m.pendingMu.Lock()
	defer m.pendingMu.Unlock()
	return &snapshot{machine: m, covered: m.pending.Load(), installs: m.installs}, nil
}

// snapshot makes the applied entries durable, so that the log before them may be truncated.
type snapshot struct {
	machine  *stateMachine
	covered  int64
	installs int
}

// Persist flushes the state and then records the snapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.machine.flusher.flush(); err != nil {
		return err
	}
	own, ok := sink.(*raftstore.SnapshotSink)
	if !ok {
		return fmt.Errorf("cluster: the sink of a snapshot of shard %d is of another type", s.machine.shard)
	}
	if err := own.Record(); err != nil {
		return err
	}
	s.machine.snapshotCovered(s.covered, s.installs)
	return nil
}

// Release does nothing: a snapshot holds no resources.
func (s *snapshot) Release() {}
