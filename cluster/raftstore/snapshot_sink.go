package raftstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// SnapshotSink writes one snapshot.
type SnapshotSink struct {
	store    *SnapshotStore
	meta     raft.SnapshotMeta
	recorded bool
	rows     *storage.Import // rows of a received snapshot, from its first byte on
}

// ID returns the snapshot's id.
func (s *SnapshotSink) ID() string { return s.meta.ID }

// ErrCovered is returned for another node's snapshot that has nothing new for this node (see Covers).
var ErrCovered = errors.New("raftstore: this node has the entries of the snapshot already")

// Write takes the next bytes of another node's snapshot. It refuses one that has nothing new. Raft's own
// goroutine calls it, and appends to the log: no entry comes between this check and the install.
func (s *SnapshotSink) Write(p []byte) (int, error) {
	if s.rows == nil {
		covered, err := s.store.Covers(s.meta.Index, s.meta.Term)
		if err != nil {
			return 0, err
		}
		if covered {
			return 0, ErrCovered
		}
		in, err := s.store.node.Import(s.store.shard)
		if err != nil {
			return 0, err
		}
		s.rows = in
	}
	return s.rows.Write(p)
}

// Cancel discards the snapshot.
func (s *SnapshotSink) Cancel() error {
	if s.rows == nil {
		return nil
	}
	return s.rows.Close()
}

// Close ends the snapshot. A snapshot of this node's own state is recorded already. A received
// snapshot is complete and valid if the error is nil; Raft then installs it by way of Open.
func (s *SnapshotSink) Close() error {
	if s.recorded {
		return nil
	}
	if s.rows == nil {
		return fmt.Errorf("cluster: a snapshot of shard %d without data", s.store.shard)
	}
	if err := s.rows.Finish(context.Background()); err != nil {
		return errors.Join(err, s.rows.Close())
	}
	s.store.mu.Lock()
	old := s.store.received
	s.store.received = &ReceivedSnapshot{Meta: s.meta, Rows: s.rows}
	s.store.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

// Record makes a snapshot of this node's own state the newest one. It returns when that is on disk.
func (s *SnapshotSink) Record() error {
	st := s.store
	st.rowMu.Lock()
	defer st.rowMu.Unlock()
	row := SnapshotRow{SnapshotMeta: s.meta}
	newest, err := st.Latest()
	if err != nil {
		return err
	}
	if newest != nil {
		if newest.Index > s.meta.Index {
			return fmt.Errorf("cluster: another node has sent a newer snapshot of shard %d", st.shard)
		}
		if newest.Ahead > s.meta.Index {
			row.Ahead = newest.Ahead
		}
	}
	value, err := json.Marshal(&row)
	if err == nil {
		err = st.db.Set(Key(st.shard, KindSnapshot, nil), value, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", st.shard, err)
	}
	s.recorded = true
	return nil
}

// ReceivedSnapshot is a complete snapshot that waits to be installed. It implements io.ReadCloser,
// the form in which Raft passes it on.
type ReceivedSnapshot struct {
	Meta raft.SnapshotMeta
	Rows *storage.Import
}

// Read returns io.EOF: the stream was read when it was received.
func (r *ReceivedSnapshot) Read([]byte) (int, error) { return 0, io.EOF }

// Close deletes the received data if it was not installed.
func (r *ReceivedSnapshot) Close() error { return r.Rows.Close() }
