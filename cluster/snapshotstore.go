package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// errNoExport refuses what would need a shard's data in a stream: this node's
// state is on its disk, and a snapshot says only up to where.
var errNoExport = errors.New("cluster: snapshots hold no data: a shard's state can't be sent to or restored from another node")

// snapshotStore keeps, per group, the metadata of the newest snapshot: up to
// where the state instance durably holds what the log said, and the voters at
// that point. The data is the state instance itself. It implements
// raft.SnapshotStore.
type snapshotStore struct {
	db    *pebble.DB
	shard storage.Shard
}

// Create begins a snapshot; it counts once the sink is closed.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &snapshotSink{store: s, meta: raft.SnapshotMeta{
		Version:            version,
		ID:                 fmt.Sprintf("%d-%d-%d", s.shard, term, index),
		Index:              index,
		Term:               term,
		Configuration:      configuration,
		ConfigurationIndex: configurationIndex,
	}}, nil
}

// List gives the newest snapshot, if there is one.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	meta, err := s.latest()
	if meta == nil || err != nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{meta}, nil
}

func (s *snapshotStore) latest() (*raft.SnapshotMeta, error) {
	row, err := readRow(s.db, raftKey(s.shard, kindSnapshot, nil))
	if err != nil || row == nil {
		return nil, err
	}
	var meta raft.SnapshotMeta
	if err := json.Unmarshal(row, &meta); err != nil {
		return nil, fmt.Errorf("read the snapshot of shard %d: %w", s.shard, err)
	}
	return &meta, nil
}

// Open would give the snapshot's data, of which there is none.
func (s *snapshotStore) Open(string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	return nil, nil, errNoExport
}

type snapshotSink struct {
	store *snapshotStore
	meta  raft.SnapshotMeta
}

// ID of the snapshot being made.
func (s *snapshotSink) ID() string { return s.meta.ID }

// Write refuses data.
func (s *snapshotSink) Write([]byte) (int, error) { return 0, errNoExport }

// Cancel forgets the snapshot.
func (s *snapshotSink) Cancel() error { return nil }

// Close makes the snapshot the newest one and returns when that is on disk.
func (s *snapshotSink) Close() error {
	row, err := json.Marshal(&s.meta)
	if err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", s.store.shard, err)
	}
	if err := s.store.db.Set(raftKey(s.store.shard, kindSnapshot, nil), row, pebble.Sync); err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", s.store.shard, err)
	}
	return nil
}
