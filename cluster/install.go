package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// How a snapshot from another node takes this node's place, and what a crash
// leaves:
//
//	write the mark (synced)         before it nothing has changed
//	ingest the tables (atomic)      the mark, and a state short of it: the mark is dropped
//	record the snapshot, drop the   the mark, and a state that reached it: this step is
//	mark and the log (one batch)    done again
//
// So the newest snapshot's metadata never names a state that is not there.

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
	r, ok := source.(*receivedSnapshot)
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
		return fmt.Errorf("install a snapshot of shard %d: %w", m.shard, err)
	}
	return nil
}

func (m *stateMachine) install(r *receivedSnapshot) error {
	_, last := m.snapshots.log.bounds()
	var err error
	if m.at.applied < r.meta.Index {
		err = m.replace(r)
	} else {
		// The state has all of it already: the stream was repeated.
		if err = m.flusher.flush(); err == nil {
			err = m.snapshots.adopt(snapshotRow{SnapshotMeta: r.meta, Ahead: m.at.applied})
		}
	}
	if err != nil {
		return err
	}
	m.pendingMu.Lock()
	m.installs++
	m.shrunk(m.pending.Swap(0))
	m.pendingMu.Unlock()
	if last > r.meta.Index {
		m.needsReopen()
	}
	return nil
}

// replace replaces an older state by the received one.
func (m *stateMachine) replace(r *receivedSnapshot) error {
	ctx := context.Background() // an install must not stop half way
	row, err := r.rows.Value(ctx, m.key)
	if err != nil {
		return err
	}
	next, err := parsePosition(row)
	if err != nil {
		return err
	}
	if next.applied < r.meta.Index {
		return fmt.Errorf("cluster: its state is at entry %d, before %d", next.applied, r.meta.Index)
	}
	// This flush is for speed: the ingest would wait for a flush and block all writers meanwhile.
	if err := m.flusher.flush(); err != nil {
		return err
	}
	mark := snapshotRow{SnapshotMeta: r.meta, Ahead: next.applied}
	if err := m.snapshots.mark(mark); err != nil {
		return err
	}
	if err := r.rows.Ingest(ctx); err != nil {
		if e := m.snapshots.unmark(); e != nil {
			// With later entries the mark would look like that of a finished install.
			m.halt(errors.Join(err, e))
		}
		return err
	}
	if err := m.snapshots.adopt(mark); err != nil {
		// The state is ahead of the log. A restart finishes the install.
		m.halt(err)
		return err
	}
	m.at = next
	m.applied.Store(next.applied)
	return nil
}

// mark records on disk that an install begins.
func (s *snapshotStore) mark(row snapshotRow) error {
	value, err := json.Marshal(&row)
	if err == nil {
		err = s.db.Set(raftKey(s.shard, kindInstall, nil), value, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("mark an install of shard %d: %w", s.shard, err)
	}
	return nil
}

func (s *snapshotStore) unmark() error {
	if err := s.db.Delete(raftKey(s.shard, kindInstall, nil), pebble.Sync); err != nil {
		return fmt.Errorf("unmark an install of shard %d: %w", s.shard, err)
	}
	return nil
}

// adopt makes the installed snapshot the newest one. The log stays if it holds the snapshot's last
// entry; otherwise all of it is deleted, since its entries may differ from those in the snapshot.
func (s *snapshotStore) adopt(row snapshotRow) (err error) {
	s.rowMu.Lock()
	defer s.rowMu.Unlock()
	if row.Ahead <= row.Index {
		row.Ahead = 0
	}
	connected, err := s.connects(row.SnapshotMeta)
	if err != nil {
		return err
	}
	row.Size = 0
	value, err := json.Marshal(&row)
	if err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", s.shard, err)
	}
	batch := s.db.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	err = errors.Join(
		batch.Set(raftKey(s.shard, kindSnapshot, nil), value, nil),
		batch.Delete(raftKey(s.shard, kindInstall, nil), nil),
	)
	if !connected {
		err = errors.Join(err, batch.DeleteRange(raftKey(s.shard, kindLog, nil), raftKey(s.shard, kindLog+1, nil), nil))
	}
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", s.shard, err)
	}
	if !connected {
		s.log.forget()
	}
	return nil
}

func (s *snapshotStore) connects(meta raft.SnapshotMeta) (bool, error) {
	var entry raft.Log
	err := s.log.GetLog(meta.Index, &entry)
	if errors.Is(err, raft.ErrLogNotFound) {
		return false, nil
	}
	return err == nil && entry.Term == meta.Term, err
}

// resume finishes or undoes an install that a crash interrupted. applied is the position of the
// state.
func (s *snapshotStore) resume(applied uint64) error {
	mark, err := s.read(kindInstall)
	if err != nil {
		return err
	}
	switch {
	case mark == nil:
	case applied < mark.Index:
		err = s.unmark()
	default:
		mark.Ahead = applied
		err = s.adopt(*mark)
	}
	if err != nil {
		return err
	}
	// A log that ends before the snapshot holds nothing that the state lacks, and the next entry
	// would leave a gap behind it.
	newest, err := s.latest()
	if first, last := s.log.bounds(); err == nil && newest != nil && last != 0 && last < newest.Index {
		err = s.log.DeleteRange(first, last)
	}
	return err
}

// fits checks that the state belongs to the log. A state behind the truncated log has lost writes.
// A state ahead of the log would take new entries for repeated ones and skip them, unless it came
// from another node with the snapshot.
func (s *snapshotStore) fits(applied uint64) error {
	newest, err := s.latest()
	if err != nil {
		return err
	}
	var covered, ahead uint64
	if newest != nil {
		covered, ahead = newest.Index, newest.Ahead
	}
	_, last := s.log.bounds()
	switch last = max(last, covered); {
	case applied < covered:
		return fmt.Errorf("cluster: the state of shard %d is at entry %d and its log begins after %d: state/ and raft/ do not belong together",
			s.shard, applied, covered)
	case applied > last && applied != ahead:
		return fmt.Errorf("cluster: the state of shard %d is at entry %d and its log ends at %d: state/ and raft/ do not belong together",
			s.shard, applied, last)
	}
	return nil
}
