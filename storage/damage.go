package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// IsDamage reports whether an error of a read says that a part of an instance's files is missing, is not
// what was written, or can't be read by the disk.
func IsDamage(err error) bool { return pebble.IsCorruptionError(err) || errors.Is(err, syscall.EIO) }

// damaged is told of damage in a file. Readers of that part get the error, others notice nothing. Without
// a listener Pebble would end the process, at each read. It is called on the goroutine of the reader or
// the compaction. One of those that fails has made no file yet that the pacer could put off, so it waits
// here, and with it the reader of such a part while compactions fail.
func (p *pacer) damaged(info pebble.DataCorruptionInfo) {
	if p.found != nil {
		select {
		case p.found <- damage{info.Path, info.Bounds.Start, info.Bounds.End.Key}:
		default: // the check is busy; the next read or compaction comes here again
		}
	}
	p.logDamage(info)
	p.pause()
}

func (p *pacer) logDamage(info pebble.DataCorruptionInfo) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.noticed) < failureEvery {
		return
	}
	p.noticed = now
	what := "state"
	if p.name == raftDir {
		what = "replication log"
	}
	p.logger.Error("a file of the "+what+" is damaged: what is in that part of it can't be read", "component", "pebble", "instance", p.name, "file", info.Path, "error", info.Details.Error())
}

// damages is the number of damaged files that wait for a check.
const damages = 16

// damage is a damaged file of the state and the range of its keys, which is empty if it is not known.
type damage struct {
	path     string
	from, to []byte // both included
}

// OnDamage begins to tell fn of the shards of which a part can't be read, which ends with Close. It is
// called once. Most damage is met by a compaction, or by a read whose error no request shows.
func (s *Store) OnDamage(fn func(shard Shard, cause error)) {
	s.checks.Go(func() {
		checked := map[string]bool{} // a file is read anew by every compaction that fails
		for {
			select {
			case <-s.closing:
				return
			case d := <-s.found:
				if checked[d.path] {
					continue
				}
				checked[d.path] = true
				s.check(d, fn)
			}
		}
	})
}

// checkPiece is the number of bytes after which a check rests for as long as it has read.
const checkPiece = 4 << 20

// check reads what lies in the range of a damaged file, shard by shard.
func (s *Store) check(d damage, fn func(shard Shard, cause error)) {
	first, last := 0, math.MaxUint16
	if len(d.from) >= 2 && len(d.to) >= 2 {
		first, last = int(binary.BigEndian.Uint16(d.from)), int(binary.BigEndian.Uint16(d.to))
	}
	for shard := first; shard <= last; shard++ {
		err := s.readShard(Shard(shard), d)
		switch {
		case IsDamage(err):
			fn(Shard(shard), err)
		case err != nil:
			return
		}
	}
}

// readShard reads the rows of a shard in the range of a damaged file.
func (s *Store) readShard(shard Shard, d damage) (err error) {
	from, to := ShardRange(shard)
	it, err := s.state.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	began, read := time.Now(), 0
	for ok := it.SeekGE(d.from); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if len(d.to) > 0 && bytes.Compare(it.Key(), d.to) > 0 {
			break
		}
		if read += len(it.Key()) + len(value); read < checkPiece {
			continue
		}
		select {
		case <-s.closing:
			return errClosed
		case <-time.After(time.Since(began)):
		}
		began, read = time.Now(), 0
	}
	return it.Error()
}

// errClosed ends a check.
var errClosed = errors.New("storage: the store is about to close")
