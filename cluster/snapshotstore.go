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

// snapshotStore keeps, per group, the metadata of the newest snapshot: up to
// where the state instance durably holds what the log said, and the voters at
// that point. The data is the state instance itself; for a follower that is too far
// behind it is exported when it is sent, so that what arrives may be newer than its
// metadata. It implements raft.SnapshotStore.
type snapshotStore struct {
	store   *storage.Store
	shard   storage.Shard
	quit    <-chan struct{} // closed when the group stops
	exports *exports

	// received is an export on its way into the state machine, between the sink that
	// took it and Restore. Raft takes one at a time.
	received *receivedSnapshot
}

// receivedSnapshot is an export that another node sent, and what it belongs to.
type receivedSnapshot struct {
	meta raft.SnapshotMeta
	rows *storage.Import
}

// snapshotRow is what is kept of a snapshot.
type snapshotRow struct {
	raft.SnapshotMeta
	// Imported is the last entry in the export the state was made from, 0 when it
	// came entry by entry: entries up to there come once more.
	Imported uint64 `json:",omitempty"`
}

// Create begins a snapshot; it counts once the sink is closed and, when it came
// from another node, once it was restored.
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
	row, err := s.latest(kindSnapshot)
	if row == nil || err != nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{&row.SnapshotMeta}, nil
}

// latest reads the row of a kind: the newest snapshot, or the one being restored.
func (s *snapshotStore) latest(kind byte) (*snapshotRow, error) {
	value, err := readRow(s.store.Raft(), raftKey(s.shard, kind, nil))
	if err != nil || value == nil {
		return nil, err
	}
	var row snapshotRow
	if err := json.Unmarshal(value, &row); err != nil {
		return nil, fmt.Errorf("read the snapshot of shard %d: %w", s.shard, err)
	}
	return &row, nil
}

// put adds a row to a batch.
func (s *snapshotStore) put(b *pebble.Batch, kind byte, row snapshotRow) error {
	value, err := json.Marshal(&row)
	if err != nil {
		return err
	}
	return b.Set(raftKey(s.shard, kind, nil), value, nil)
}

// Open gives a snapshot's data: what was received, or an export of the state as it
// is now.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if r := s.received; r != nil && r.meta.ID == id {
		return &r.meta, nothing{}, nil
	}
	row, err := s.latest(kindSnapshot)
	if err != nil {
		return nil, nil, err
	}
	if row == nil || row.ID != id {
		return nil, nil, fmt.Errorf("cluster: shard %d has no snapshot %s", s.shard, id)
	}
	release, err := s.exports.begin(s.shard, s.quit)
	if err != nil {
		return nil, nil, err
	}
	export, err := s.store.Export(s.shard, s.quit)
	if err != nil {
		release()
		return nil, nil, err
	}
	row.Size = export.Size
	return &row.SnapshotMeta, &releasing{export, release}, nil
}

// nothing is the data of a snapshot that Restore finds elsewhere.
type nothing struct{}

// Read implements io.Reader.
func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (nothing) Close() error { return nil }

// releasing gives the place of an export free when it is closed.
type releasing struct {
	*storage.Export
	release func()
}

// Close implements io.Closer.
func (r *releasing) Close() error {
	r.release()
	return r.Export.Close()
}

// snapshotSink takes a snapshot: one made here has no data, one from another node
// is an export.
type snapshotSink struct {
	store *snapshotStore
	meta  raft.SnapshotMeta
	rows  *storage.Import // nil until data comes
}

// ID of the snapshot being made.
func (s *snapshotSink) ID() string { return s.meta.ID }

// Write takes a part of an export.
func (s *snapshotSink) Write(b []byte) (int, error) {
	if s.rows == nil {
		s.rows = s.store.store.Import(s.store.shard)
	}
	n, err := s.rows.Write(b)
	s.meta.Size += int64(n)
	return n, err
}

// Cancel forgets the snapshot.
func (s *snapshotSink) Cancel() error {
	if s.rows == nil {
		return nil
	}
	return s.rows.Close()
}

// Close makes a snapshot of this node's own the newest one, and returns when that
// is on disk. One that was received is left to Restore.
func (s *snapshotSink) Close() error {
	if s.rows != nil {
		if err := s.rows.Complete(); err != nil {
			return errors.Join(err, s.rows.Close())
		}
		s.store.received = &receivedSnapshot{s.meta, s.rows}
		return nil
	}
	row := snapshotRow{SnapshotMeta: s.meta}
	before, err := s.store.latest(kindSnapshot)
	if err != nil {
		return err
	}
	if before != nil && before.Imported > s.meta.Index {
		row.Imported = before.Imported
	}
	b := s.store.store.Raft().NewBatch()
	err = s.store.put(b, kindSnapshot, row)
	if err == nil {
		err = b.Commit(pebble.Sync)
	}
	if err := errors.Join(err, b.Close()); err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", s.store.shard, err)
	}
	return nil
}
