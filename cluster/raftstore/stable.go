package raftstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// StableStore keeps a group's term and vote in the raft instance. It implements
// raft.StableStore.
type StableStore struct {
	db    *pebble.DB
	shard storage.Shard
	log   *LogStore // of the same group; it notes the writes
}

// Set writes a row and returns when it is on disk.
func (s *StableStore) Set(name, value []byte) error {
	// Raft writes the term that it has just read at every start; this saves the fsync.
	if old, err := s.Get(name); err == nil && old != nil && bytes.Equal(old, value) {
		return nil
	}
	s.log.begin()
	err := s.db.Set(Key(s.shard, KindStable, name), value, pebble.Sync)
	s.log.end()
	if err != nil {
		return fmt.Errorf("write %s of shard %d: %w", name, s.shard, err)
	}
	return nil
}

// SetInTerm writes a row and the term of a group that has never run, and returns when both are on disk.
func (s *StableStore) SetInTerm(name, value []byte, term uint64) (err error) {
	batch := s.db.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	err = errors.Join(
		batch.Set(Key(s.shard, KindStable, name), value, nil),
		batch.Set(Key(s.shard, KindStable, []byte(termName)), binary.BigEndian.AppendUint64(nil, term), nil),
	)
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("write %s of shard %d: %w", name, s.shard, err)
	}
	return nil
}

// Get reads a row; nil if it does not exist.
func (s *StableStore) Get(name []byte) ([]byte, error) {
	return ReadRow(s.db, Key(s.shard, KindStable, name))
}

// SetUint64 writes a number and returns when it is on disk.
func (s *StableStore) SetUint64(name []byte, n uint64) error {
	return s.Set(name, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 reads a number; 0 if it does not exist.
func (s *StableStore) GetUint64(name []byte) (uint64, error) {
	value, err := s.Get(name)
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("cluster: %s of shard %d has %d bytes", name, s.shard, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// termName is Raft's name of the row with the current term.
const termName = "CurrentTerm"

// SetTerm sets the term of a group that has never run.
func (s *StableStore) SetTerm(term uint64) error { return s.SetUint64([]byte(termName), term) }

// ReadRow copies a row of a Pebble instance; nil if it does not exist.
func ReadRow(db pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a row: %w", err)
	}
	out := append(make([]byte, 0, len(value)), value...)
	if err := closer.Close(); err != nil {
		return nil, fmt.Errorf("read a row: %w", err)
	}
	return out, nil
}
