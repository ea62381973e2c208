package raftstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// LogStore is the log of one group. All groups share the raft instance, so that one fsync serves
// all shards that write at the same moment. It implements raft.LogStore and raft.MonotonicLogStore.
type LogStore struct {
	db    *pebble.DB
	shard storage.Shard

	// Failed is called at each read of an entry that is damaged. It is set before use and must not block.
	// Nil does nothing.
	Failed func(error)
	// Written is told how long each append took, until it was on disk. It is set before use. Nil does
	// nothing.
	Written func(took time.Duration)

	opened  time.Time
	writing atomic.Int64 // when the write under way began, in nanoseconds after opened; 0: there is none

	// The bounds are cached; both are 0 for an empty log. Raft asks for them often, and Pebble
	// would open an iterator each time.
	mu          sync.Mutex
	first, last uint64
	keep        uint64 // the oldest entry that stays when the beginning is deleted; 0: none has to
	configured  uint64 // see Configured
}

// OpenLog opens the log of a shard's group.
func OpenLog(db *pebble.DB, shard storage.Shard) (*LogStore, error) {
	s := &LogStore{db: db, shard: shard, opened: time.Now()}
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: Key(shard, KindLog, nil),
		UpperBound: Key(shard, KindLog+1, nil),
	})
	if err != nil {
		return nil, fmt.Errorf("open the log of shard %d: %w", shard, err)
	}
	if it.First() {
		s.first = indexOf(it.Key())
	}
	if it.Last() {
		s.last = indexOf(it.Key())
		s.configured = s.last // any entry may be one: the log is not read
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, fmt.Errorf("open the log of shard %d: %w", shard, err)
	}
	return s, nil
}

func indexOf(key []byte) (index uint64) {
	for _, c := range key[3:] {
		index = index<<8 | uint64(c)
	}
	return index
}

// Bounds returns the indexes of the oldest and the newest entry; 0 and 0 for an empty log.
func (s *LogStore) Bounds() (first, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first, s.last
}

// Configured returns an index that the newest configuration in the log is not behind: no entry after
// it changes the group's members. Once the entry at that index is committed, so is the configuration.
func (s *LogStore) Configured() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.configured
}

// Stable returns the store of the same group's term and vote.
func (s *LogStore) Stable() *StableStore { return &StableStore{db: s.db, shard: s.shard, log: s} }

// begin notes that a write for the group begins, and end that it is on disk or failed. Raft makes one at a
// time.
func (s *LogStore) begin() { s.writing.Store(max(1, int64(time.Since(s.opened)))) }

func (s *LogStore) end() { s.writing.Store(0) }

// Waits returns for how long the write under way, of entries or of the term and vote, has waited for the
// disk; 0 if there is none.
func (s *LogStore) Waits() time.Duration {
	began := s.writing.Load()
	if began == 0 {
		return 0
	}
	return time.Since(s.opened) - time.Duration(began)
}

// FirstIndex returns the index of the oldest entry; 0 if there is none.
func (s *LogStore) FirstIndex() (uint64, error) {
	first, _ := s.Bounds()
	return first, nil
}

// LastIndex returns the index of the newest entry; 0 if there is none.
func (s *LogStore) LastIndex() (uint64, error) {
	_, last := s.Bounds()
	return last, nil
}

// IsMonotonic reports true: the indexes of entries have no gaps.
func (s *LogStore) IsMonotonic() bool { return true }

// GetLog reads an entry. It returns raft.ErrLogNotFound if the entry does not exist.
func (s *LogStore) GetLog(index uint64, l *raft.Log) error {
	if first, last := s.Bounds(); index < first || index > last || last == 0 {
		return raft.ErrLogNotFound
	}
	var key [logKeyLen]byte
	logKey(key[:], s.shard, index)
	value, closer, err := s.db.Get(key[:])
	if errors.Is(err, pebble.ErrNotFound) { // truncated meanwhile
		return raft.ErrLogNotFound
	}
	if err == nil {
		err = errors.Join(readLog(value, index, l), closer.Close())
	}
	if err != nil {
		return s.failed(fmt.Errorf("read entry %d of shard %d: %w", index, s.shard, err))
	}
	return nil
}

// failed calls Failed if the error of a read says that an entry is damaged, and returns the error.
func (s *LogStore) failed(err error) error {
	if s.Failed != nil && (errors.Is(err, errLogDamaged) || errors.Is(err, errLogEntry) || storage.IsDamage(err)) {
		s.Failed(err)
	}
	return err
}

// StoreLog appends an entry.
func (s *LogStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends entries and returns when they are on disk.
func (s *LogStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	_, last := s.Bounds()
	configured := uint64(0)
	size := 16
	for i, l := range logs {
		if i == 0 && last == 0 {
			last = l.Index - 1
		}
		if last++; l.Index != last {
			return fmt.Errorf("append to the log of shard %d: entry %d where %d is due", s.shard, l.Index, last)
		}
		if l.Type == raft.LogConfiguration {
			configured = l.Index
		}
		size += logKeyLen + logSize(l) + 16
	}
	batch := s.db.NewBatchWithSize(size)
	for _, l := range logs {
		op := batch.SetDeferred(logKeyLen, logSize(l))
		logKey(op.Key, s.shard, l.Index)
		putLog(op.Value, l)
		if err := op.Finish(); err != nil {
			return errors.Join(fmt.Errorf("append to the log of shard %d: %w", s.shard, err), batch.Close())
		}
	}
	began := time.Now()
	s.begin()
	err := errors.Join(batch.Commit(pebble.Sync), batch.Close())
	s.end()
	if err != nil {
		return fmt.Errorf("append to the log of shard %d: %w", s.shard, err)
	}
	if s.Written != nil {
		s.Written(time.Since(began))
	}
	s.mu.Lock()
	if s.last == 0 {
		s.first = logs[0].Index
	}
	s.last = last
	s.configured = max(s.configured, configured)
	s.mu.Unlock()
	return nil
}

// forget resets the bounds after all entries were deleted.
func (s *LogStore) forget() {
	s.mu.Lock()
	s.first, s.last, s.configured = 0, 0, 0
	s.mu.Unlock()
}

// Keep has the entries from an index on stay when the beginning of the log is deleted; 0: none.
func (s *LogStore) Keep(from uint64) {
	s.mu.Lock()
	s.keep = from
	s.mu.Unlock()
}

// DeleteRange deletes the entries from least to most, both included: the oldest ones after a
// snapshot, but for those that are kept, or the newest ones when a new leader overwrites them.
func (s *LogStore) DeleteRange(least, most uint64) error {
	s.mu.Lock()
	if s.keep != 0 && least <= s.first && most < s.last {
		most = min(most, s.keep-1)
	}
	s.mu.Unlock()
	if most < least {
		return nil
	}
	var from, to [logKeyLen]byte
	logKey(from[:], s.shard, least)
	logKey(to[:], s.shard, most+1)
	// Deleted entries that come back after a crash are deleted again. But entries that replace
	// deleted ones must never meet them: both writes go through one write-ahead log, in this order.
	if err := s.db.DeleteRange(from[:], to[:], pebble.NoSync); err != nil {
		return fmt.Errorf("truncate the log of shard %d: %w", s.shard, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if most >= s.last {
		s.configured = min(s.configured, least-1)
	}
	switch {
	case least <= s.first && most >= s.last:
		s.first, s.last = 0, 0
	case least <= s.first:
		s.first = max(s.first, most+1)
	case most >= s.last:
		s.last = min(s.last, least-1)
	}
	return nil
}
