package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// The steps by which a received snapshot replaces this node's state, and the outcome of a crash after
// each:
//
//	write the mark (synced)         before it nothing has changed
//	ingest the tables (atomic)      the mark, and a state before its index: the mark is deleted
//	record the snapshot, delete the the mark, and a state at its index: this step is repeated
//	mark and the log (one batch)
//
// So the metadata of the newest snapshot never names a state that does not exist.

var (
	errForeignStream = errors.New("cluster: the snapshot was not received by this node")
	errServing       = errors.New("cluster: this node still serves the shard")
)

// Restore replaces the shard's state by a received snapshot.
func (m *stateMachine) Restore(source io.ReadCloser) error {
	defer func() { _ = source.Close() }()
	if w, ok := source.(raft.ReadCloserWrapper); ok {
		source = w.WrappedReadCloser()
	}
	r, ok := source.(*raftstore.ReceivedSnapshot)
	switch {
	case !ok:
		return errForeignStream
	case m.err != nil:
		return m.err
	case !m.guard.beginInstall():
		return errServing
	}
	defer m.guard.endInstall()
	if err := m.install(r); err != nil {
		if storage.IsDamage(err) {
			m.spoil(err)
		}
		return fmt.Errorf("install a snapshot of shard %d: %w", m.shard, err)
	}
	return nil
}

func (m *stateMachine) install(r *raftstore.ReceivedSnapshot) error {
	_, last := m.snapshots.Log.Bounds()
	var err error
	if m.at.applied < r.Meta.Index {
		err = m.replace(r)
	} else {
		// The state came with an earlier snapshot and was ahead of it. The log does not reach so far yet,
		// or the snapshot would have been refused (see SnapshotSink.Write).
		if err = m.flusher.flush(); err == nil {
			err = m.snapshots.Adopt(raftstore.SnapshotRow{SnapshotMeta: r.Meta, Ahead: m.at.applied})
		}
	}
	if err != nil {
		return err
	}
	m.pendingMu.Lock()
	m.installs++
	m.shrunk(m.pending.Swap(0))
	m.pendingMu.Unlock()
	if last > r.Meta.Index {
		m.needsReopen()
	}
	return nil
}

// replace replaces an older state by the received one.
func (m *stateMachine) replace(r *raftstore.ReceivedSnapshot) error {
	ctx := context.Background() // an install must not stop half way
	row, err := r.Rows.Value(ctx, m.key)
	if err != nil {
		return err
	}
	next, err := parsePosition(row)
	if err != nil {
		return err
	}
	if next.applied < r.Meta.Index {
		return fmt.Errorf("cluster: its state is at entry %d, before %d", next.applied, r.Meta.Index)
	}
	// This flush is for speed: the ingest would wait for a flush and block all writers meanwhile.
	if err := m.flusher.flush(); err != nil {
		return err
	}
	mark := raftstore.SnapshotRow{SnapshotMeta: r.Meta, Ahead: next.applied}
	if err := m.snapshots.Mark(mark); err != nil {
		return err
	}
	if err := r.Rows.Ingest(ctx); err != nil {
		if e := m.snapshots.Unmark(); e != nil {
			// With later entries the mark would look like that of a finished install.
			m.halt(errors.Join(err, e))
		}
		return err
	}
	if err := m.snapshots.Adopt(mark); err != nil {
		// The state is ahead of the log. A restart finishes the install.
		m.halt(err)
		return err
	}
	m.at = next
	m.applied.Store(next.applied)
	return nil
}
