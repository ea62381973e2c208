package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// LogEntry is an applied entry of a shard's log.
type LogEntry struct {
	Index, Term uint64
	// AppendedAt is when the leader of that time appended the entry, by its clock.
	AppendedAt time.Time
	// Command reports whether the entry is one of the shard, and not of Raft itself. Only such an
	// entry has Data: kind, epoch and body, as entry.go describes them.
	Command bool
	Data    []byte // valid until the next entry is read
}

// ErrLogTruncated is the error of ReadLog if entries that were asked for are no longer in the log.
var ErrLogTruncated = errors.New("cluster: the shard's log does not reach back to this entry")

// ReadLog calls fn with the applied entries behind the index after, in order, until fn returns false
// or an error. It returns the index of the last entry that fn has seen, or after. Entries that are
// applied while it runs may be left out. Any replica can be read.
func (n *Node) ReadLog(shard storage.Shard, after uint64, fn func(*LogEntry) (more bool, err error)) (uint64, error) {
	g := n.group(shard)
	if g == nil || !g.up.Load() {
		return after, errNotOwner
	}
	applied := g.machine.applied.Load()
	if after > applied {
		return after, fmt.Errorf("read the log of shard %d behind entry %d, with %d applied: %w", shard, after, applied, ErrLogTruncated)
	}
	if after == applied {
		return after, nil
	}
	var entry LogEntry
	err := g.log.Scan(after+1, applied, func(stored *raft.Log) (bool, error) {
		after = stored.Index
		entry = LogEntry{Index: stored.Index, Term: stored.Term, AppendedAt: stored.AppendedAt, Command: stored.Type == raft.LogCommand, Data: stored.Data}
		return fn(&entry)
	})
	if errors.Is(err, raft.ErrLogNotFound) {
		err = fmt.Errorf("entry %d of shard %d: %w", after+1, shard, ErrLogTruncated)
	}
	return after, err
}

// Batch returns the batch of rows in an entry, which may alias Data; nil if the entry has none. The
// batch of an entry that was fenced off is returned, too.
func (e *LogEntry) Batch() ([]byte, error) {
	if !e.Command {
		return nil, nil
	}
	kind, _, body, err := splitEntry(e.Data)
	switch {
	case err != nil:
		return nil, err
	case kind == entryPacked:
		return unpack(nil, body)
	case kind == entryBatch && len(body) >= batchHeader && binary.LittleEndian.Uint32(body[8:]) > 0:
		return body, nil
	}
	return nil, nil
}

// HoldLog has this node keep a shard's log for a time, so that ReadLog finds entries that are applied
// from now on. A truncation that has begun goes on, and may take some of them. The log is truncated all
// the same when it grows past a bound, or when the disk is short of space; nor does another node keep it
// that becomes the owner.
func (n *Node) HoldLog(shard storage.Shard, period time.Duration) {
	if g := n.group(shard); g != nil {
		g.heldUntil.Store(n.tuning.clock() + int64(period))
	}
}

// holdsLog reports whether the log is kept for a reader.
func (g *group) holdsLog() bool {
	until := g.heldUntil.Load()
	return until != 0 && g.tuning.clock() < until
}
