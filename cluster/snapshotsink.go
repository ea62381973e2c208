package cluster

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

// snapshotSink writes one snapshot.
type snapshotSink struct {
	store    *snapshotStore
	meta     raft.SnapshotMeta
	recorded bool
	rows     *storage.Import // rows of a received snapshot, from its first byte on
}

// ID returns the snapshot's id.
func (s *snapshotSink) ID() string { return s.meta.ID }

// Write takes the next bytes of another node's snapshot.
func (s *snapshotSink) Write(p []byte) (int, error) {
	if s.rows == nil {
		in, err := s.store.node.Import(s.store.shard)
		if err != nil {
			return 0, err
		}
		s.rows = in
	}
	return s.rows.Write(p)
}

// Cancel discards the snapshot.
func (s *snapshotSink) Cancel() error {
	if s.rows == nil {
		return nil
	}
	return s.rows.Close()
}

// Close ends the snapshot. A snapshot of this node's own state is recorded already. A received
// snapshot is complete and valid if the error is nil; Raft then installs it by way of Open.
func (s *snapshotSink) Close() error {
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
	s.store.received = &receivedSnapshot{meta: s.meta, rows: s.rows}
	s.store.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

// record makes a snapshot of this node's own state the newest one. It returns when that is on disk.
func (s *snapshotSink) record() error {
	st := s.store
	st.rowMu.Lock()
	defer st.rowMu.Unlock()
	row := snapshotRow{SnapshotMeta: s.meta}
	newest, err := st.latest()
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
		err = st.db.Set(raftKey(st.shard, kindSnapshot, nil), value, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", st.shard, err)
	}
	s.recorded = true
	return nil
}

// receivedSnapshot is a complete snapshot that waits to be installed. It implements io.ReadCloser,
// the form in which Raft passes it on.
type receivedSnapshot struct {
	meta raft.SnapshotMeta
	rows *storage.Import
}

// Read returns io.EOF: the stream was read when it was received.
func (r *receivedSnapshot) Read([]byte) (int, error) { return 0, io.EOF }

// Close deletes the received data if it was not installed.
func (r *receivedSnapshot) Close() error { return r.rows.Close() }
