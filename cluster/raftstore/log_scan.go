package raftstore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// Scan calls fn with the entries from first to last, in order, until fn returns false or an error. Of
// many entries that is much less work than GetLog of each. The data of an entry is valid until fn
// returns. The error is raft.ErrLogNotFound if one of the entries does not exist.
func (s *LogStore) Scan(first, last uint64, fn func(*raft.Log) (more bool, err error)) (err error) {
	var from, to [logKeyLen]byte
	logKey(from[:], s.shard, first)
	logKey(to[:], s.shard, last+1)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from[:], UpperBound: to[:]})
	if err != nil {
		return fmt.Errorf("read entries %d to %d of shard %d: %w", first, last, s.shard, err)
	}
	defer func() {
		if closed := it.Close(); closed != nil {
			err = errors.Join(err, fmt.Errorf("read entries %d to %d of shard %d: %w", first, last, s.shard, closed))
		}
	}()
	// Deleted entries stay visible until the deletion is in the bounds.
	if oldest, newest := s.Bounds(); first < oldest || last > newest || newest == 0 {
		return raft.ErrLogNotFound
	}
	due := first
	for ok := it.First(); ok && it.Error() == nil; ok = it.Next() {
		if indexOf(it.Key()) != due {
			return raft.ErrLogNotFound
		}
		var l raft.Log
		if err := decodeLog(it.Value(), due, &l); err != nil {
			return s.failed(fmt.Errorf("read entry %d of shard %d: %w", due, s.shard, err))
		}
		due++
		if more, err := fn(&l); err != nil || !more {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return s.failed(fmt.Errorf("read entry %d of shard %d: %w", due, s.shard, err))
	}
	if due <= last {
		return raft.ErrLogNotFound
	}
	return nil
}
