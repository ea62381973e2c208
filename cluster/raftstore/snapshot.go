package raftstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// SnapshotStore keeps, per group, the metadata of the newest snapshot: the position up to which the
// state instance is durable, and the voters at that point. The data is the state instance itself;
// it is copied only when a follower needs it. It implements raft.SnapshotStore.
type SnapshotStore struct {
	node  *storage.Store
	db    *pebble.DB
	shard storage.Shard
	Log   *LogStore
	clock func() int64    // monotonic nanoseconds
	quit  <-chan struct{} // closed when the group stops; streams end then

	// Refused is called once when a follower can't be sent the state, as long as the disk has no room
	// for a copy of it. Nil does nothing.
	Refused func(error)

	rowMu sync.Mutex // held while the newest snapshot is read and replaced

	mu       sync.Mutex
	streams  int               // streams to followers under way
	lastSent int64             // end of the last stream, by clock; 0: none yet
	refused  bool              // Refused was called for the last copy
	received *ReceivedSnapshot // complete, waits for Raft to install it
}

// NewSnapshotStore returns the snapshot store of log's group. It sends streams until quit is closed.
func NewSnapshotStore(node *storage.Store, log *LogStore, clock func() int64, quit <-chan struct{}) *SnapshotStore {
	return &SnapshotStore{node: node, db: node.Raft(), shard: log.shard, Log: log, clock: clock, quit: quit}
}

// SnapshotRow is a snapshot's row on disk.
type SnapshotRow struct {
	raft.SnapshotMeta
	// Ahead is the position of the state of a received snapshot, if it is beyond Index: the sender
	// copies its state when it sends it. The entries between come again and are skipped.
	Ahead uint64 `json:",omitempty"`
}

// Create begins a snapshot: of this node's state, which Persist records, or one that another node
// sends.
func (s *SnapshotStore) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &SnapshotSink{store: s, meta: raft.SnapshotMeta{
		Version:            version,
		ID:                 fmt.Sprintf("%d-%d-%d", s.shard, term, index),
		Index:              index,
		Term:               term,
		Configuration:      configuration,
		ConfigurationIndex: configurationIndex,
	}}, nil
}

// List returns the newest snapshot, if there is one.
func (s *SnapshotStore) List() ([]*raft.SnapshotMeta, error) {
	row, err := s.Latest()
	if row == nil || err != nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{&row.SnapshotMeta}, nil
}

// Latest reads the newest snapshot; nil if there is none.
func (s *SnapshotStore) Latest() (*SnapshotRow, error) { return s.read(KindSnapshot) }

// Installing reads the mark of an install under way; nil if there is none.
func (s *SnapshotStore) Installing() (*SnapshotRow, error) { return s.read(KindInstall) }

func (s *SnapshotStore) read(kind byte) (*SnapshotRow, error) {
	value, err := ReadRow(s.db, Key(s.shard, kind, nil))
	if err != nil || value == nil {
		return nil, err
	}
	var row SnapshotRow
	if err := json.Unmarshal(value, &row); err != nil {
		return nil, fmt.Errorf("read the snapshot of shard %d: %w", s.shard, err)
	}
	return &row, nil
}

// Open returns the received snapshot with the id, for its install; or, for a follower, a copy of
// this node's state with the newest snapshot's metadata.
func (s *SnapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	in := s.received
	if in != nil && in.Meta.ID == id {
		s.received = nil
		s.mu.Unlock()
		meta := in.Meta
		return &meta, in, nil
	}
	s.mu.Unlock()
	// The row is read before the state is copied, so that the copy covers it.
	row, err := s.Latest()
	if err != nil {
		return nil, nil, err
	}
	if row == nil {
		return nil, nil, fmt.Errorf("cluster: shard %d has no snapshot", s.shard)
	}
	out, err := s.copyState()
	if err != nil {
		return nil, nil, err
	}
	meta := row.SnapshotMeta
	meta.Size = out.Size()
	return &meta, out, nil
}

// Discard deletes the data of a received snapshot that Raft, which has ended, did not install.
func (s *SnapshotStore) Discard() error {
	s.mu.Lock()
	in := s.received
	s.received = nil
	s.mu.Unlock()
	if in == nil {
		return nil
	}
	return in.Close()
}

// errStopped ends streams to followers when the group stops.
var errStopped = errors.New("raftstore: the group has stopped")

// exportWait is how long a stream waits for other streams to end before Raft has to try again.
const exportWait = 10 * time.Second

// sendGrace is how long the log is kept for a follower after its stream.
const sendGrace = 30 * time.Second

// Sending reports whether a follower is getting the state or got it recently: if the log were
// truncated now, the follower would need the state again.
func (s *SnapshotStore) Sending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams > 0 || s.lastSent != 0 && s.clock()-s.lastSent < int64(sendGrace)
}

// copyState copies the state for a stream.
func (s *SnapshotStore) copyState() (*outgoingSnapshot, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	out := &outgoingSnapshot{store: s, cancel: cancel, ended: make(chan struct{})}
	s.mu.Lock()
	s.streams++
	s.mu.Unlock()
	go func() {
		select {
		case <-s.quit:
			cancel(errStopped)
		case <-out.ended:
		}
	}()
	var err error
	out.Export, err = s.node.Export(ctx, s.shard, exportWait)
	s.noteRefusal(err)
	if err != nil {
		// A refused copy does not keep the log. Raft repeats it soon, and the log would never be truncated.
		out.finish(!errors.Is(err, storage.ErrNoRoom))
		return nil, err
	}
	return out, nil
}

// noteRefusal calls Refused if the disk has no room for a copy and had room for the one before.
func (s *SnapshotStore) noteRefusal(err error) {
	refused := errors.Is(err, storage.ErrNoRoom)
	s.mu.Lock()
	before := s.refused
	s.refused = refused
	s.mu.Unlock()
	if refused && !before && s.Refused != nil {
		s.Refused(err)
	}
}

// outgoingSnapshot is a stream to a follower.
type outgoingSnapshot struct {
	*storage.Export
	store  *SnapshotStore
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// Close ends the stream.
func (o *outgoingSnapshot) Close() error {
	err := o.Export.Close()
	o.finish(true)
	return err
}

// finish ends the stream. If it may have been read, the log is kept for a while.
func (o *outgoingSnapshot) finish(sent bool) {
	close(o.ended)
	o.cancel(nil)
	o.store.mu.Lock()
	o.store.streams--
	if sent {
		o.store.lastSent = o.store.clock()
	}
	o.store.mu.Unlock()
}
