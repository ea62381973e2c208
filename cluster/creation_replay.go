package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// Bounds of the entries that are applied at once.
const (
	replayEntries = 64
	replayBytes   = 8 << 20
)

// Replay applies entries of the other cluster's log to the rows that were imported for a shard, as
// its replicas did: next fills in one entry after the other, whose data it does not change later, and
// returns io.EOF behind the last. An entry that the rows have is skipped. Replay returns the index and
// the epoch for TakeOver, and the number of entries applied.
func (c *Creation) Replay(ctx context.Context, shard storage.Shard, next func(*LogEntry) error) (index, epoch uint64, applied int64, err error) {
	machine, err := newStateMachine(c.store, shard, &flusher{})
	if err != nil {
		return 0, 0, 0, err
	}
	before := machine.at.applied
	due := before + 1
	err = machine.replay(ctx, func() (*raft.Log, error) {
		var e LogEntry
		for {
			switch err := next(&e); {
			case err != nil:
				return nil, err
			case e.Index > due:
				return nil, fmt.Errorf("entry %d comes where %d is due", e.Index, due)
			case e.Index < due:
				continue
			}
			due++
			// Raft's own entries move the index, whatever kind they are.
			l := &raft.Log{Index: e.Index, Term: e.Term, AppendedAt: e.AppendedAt, Type: raft.LogNoop}
			if e.Command {
				l.Type, l.Data = raft.LogCommand, e.Data
			}
			return l, nil
		}
	})
	if err != nil {
		return 0, 0, 0, fmt.Errorf("apply the log of shard %d: %w", shard, err)
	}
	return machine.at.applied, machine.at.epoch, int64(machine.at.applied - before), nil
}

// Raise has the new cluster write at least this format: entries that were replayed have rows in it.
func (c *Creation) Raise(format storage.Format) error {
	if format > storage.FormatNewest {
		return fmt.Errorf("cluster: log entries in format %d: this version of the program reads formats up to %d", format, storage.FormatNewest)
	}
	c.format = max(c.format, format)
	return nil
}

// replay applies entries until next returns io.EOF.
func (m *stateMachine) replay(ctx context.Context, next func() (*raft.Log, error)) error {
	for more := true; more; {
		var entries []*raft.Log
		for size := 0; more && len(entries) < replayEntries && size < replayBytes; {
			entry, err := next()
			switch {
			case errors.Is(err, io.EOF):
				more = false
			case err != nil:
				return err
			default:
				entries, size = append(entries, entry), size+len(entry.Data)
			}
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if m.ApplyBatch(entries); m.err != nil {
			return m.err
		}
	}
	return nil
}
