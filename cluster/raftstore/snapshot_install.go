package raftstore

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// Mark records on disk that an install begins.
func (s *SnapshotStore) Mark(row SnapshotRow) error {
	value, err := json.Marshal(&row)
	if err == nil {
		err = s.db.Set(Key(s.shard, KindInstall, nil), value, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("mark an install of shard %d: %w", s.shard, err)
	}
	return nil
}

// Unmark deletes the mark of an install.
func (s *SnapshotStore) Unmark() error {
	if err := s.db.Delete(Key(s.shard, KindInstall, nil), pebble.Sync); err != nil {
		return fmt.Errorf("unmark an install of shard %d: %w", s.shard, err)
	}
	return nil
}

// Adopt makes the installed snapshot the newest one. The log stays if it holds the snapshot's last
// entry; otherwise all of it is deleted, since its entries may differ from those in the snapshot.
func (s *SnapshotStore) Adopt(row SnapshotRow) (err error) {
	s.rowMu.Lock()
	defer s.rowMu.Unlock()
	if row.Ahead <= row.Index {
		row.Ahead = 0
	}
	connected, err := s.logHas(row.Index, row.Term)
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
		batch.Set(Key(s.shard, KindSnapshot, nil), value, nil),
		batch.Delete(Key(s.shard, KindInstall, nil), nil),
	)
	if !connected {
		err = errors.Join(err, batch.DeleteRange(Key(s.shard, KindLog, nil), Key(s.shard, KindLog+1, nil), nil))
	}
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("write the snapshot of shard %d: %w", s.shard, err)
	}
	if !connected {
		s.Log.forget()
	}
	return nil
}

// Covers reports whether this node has a committed entry and all before it, in its log or in its newest
// snapshot. Another node's snapshot that ends with such an entry must not be installed. The install would
// delete the whole log, also the entries behind the snapshot, which this node may have acknowledged.
func (s *SnapshotStore) Covers(index, term uint64) (bool, error) {
	// The log is read first. A truncation follows its snapshot, so the snapshot has what was deleted meanwhile.
	has, err := s.logHas(index, term)
	if has || err != nil {
		return has, err
	}
	newest, err := s.Latest()
	return err == nil && newest != nil && newest.Index >= index, err
}

// logHas reports whether the log has an entry. If so, log and newest snapshot have all entries before it.
func (s *SnapshotStore) logHas(index, term uint64) (bool, error) {
	var entry raft.Log
	err := s.Log.GetLog(index, &entry)
	if errors.Is(err, raft.ErrLogNotFound) {
		return false, nil
	}
	return err == nil && entry.Term == term, err
}

// Resume finishes or undoes an install that a crash interrupted. applied is the position of the
// state.
func (s *SnapshotStore) Resume(applied uint64) error {
	mark, err := s.Installing()
	if err != nil {
		return err
	}
	switch {
	case mark == nil:
	case applied < mark.Index:
		err = s.Unmark()
	default:
		mark.Ahead = applied
		err = s.Adopt(*mark)
	}
	if err != nil {
		return err
	}
	// A log that ends before the snapshot holds nothing that the state lacks, and the next entry
	// would leave a gap behind it.
	newest, err := s.Latest()
	if first, last := s.Log.Bounds(); err == nil && newest != nil && last != 0 && last < newest.Index {
		err = s.Log.DeleteRange(first, last)
	}
	return err
}

// CheckState checks that the state belongs to the log. A state behind the truncated log has lost writes.
// A state ahead of the log would take new entries for repeated ones and skip them, unless it came
// from another node with the snapshot.
func (s *SnapshotStore) CheckState(applied uint64) error {
	newest, err := s.Latest()
	if err != nil {
		return err
	}
	var covered, ahead uint64
	if newest != nil {
		covered, ahead = newest.Index, newest.Ahead
	}
	_, last := s.Log.Bounds()
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
