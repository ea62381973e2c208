package systemtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// errNothingThere is returned where there is nothing to damage: a node that was just wiped may have no replica yet,
// and is started again as it was.
var errNothingThere = errors.New("there is nothing to damage")

// damages are faults of a disk that gives back something else than was written to it.
func damages() []fault {
	return []fault{
		{
			// The node starts without the replica, and the replica's group replaces it.
			name: "damaged log entry", hold: 0,
			strike: func(ctx context.Context, f *Fleet, m *Member) error {
				m.Kill()
				damaged := damageEntry(m.Data, f.choices)
				if damaged != nil && !errors.Is(damaged, errNothingThere) {
					return damaged
				}
				if err := m.Start(); err != nil || damaged != nil {
					return err
				}
				return m.says(ctx, "damaged log entry")
			},
			heal: func(context.Context, *Fleet, *Member) error { return nil },
		},
		{
			// Requests that need the block fail until another node leads the shard, whose replica is then
			// replaced. In a small state a block may have rows of several shards, which that does not mend. So
			// the node gets a new disk at the end, if it has met the damage or verify finds it.
			name: "damaged block", hold: 15 * time.Second,
			strike: func(ctx context.Context, f *Fleet, m *Member) error {
				stop, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				if err := m.Terminate(stop); err != nil { // so that all of the state is in tables
					return err
				}
				if err := damageTable(filepath.Join(m.Data, "state"), f.choices); err != nil && !errors.Is(err, errNothingThere) {
					return err
				}
				f.unreadable.Store(true)
				return m.Start()
			},
			heal: func(ctx context.Context, f *Fleet, m *Member) error {
				p, err := m.running()
				if err != nil {
					return err
				}
				m.Kill() // it may have ended: in a small state one block may have the positions of all shards
				defer f.unreadable.Store(false)
				if !strings.Contains(p.Output(), "is damaged") && Verify(ctx, f.Binary, m.Data) == nil {
					return m.Start()
				}
				if err := f.other(m).operate(ctx, "DELETE", "/cluster/nodes/"+m.Name); err != nil {
					return err
				}
				return m.startEmpty()
			},
		},
		{
			// The node starts without a replica if a part of its log lies there, and not at all if it is one of
			// the node's own rows: then it gets a new disk. Entries that the state has long had are not read.
			name: "damaged block of the log", hold: 0,
			strike: func(_ context.Context, f *Fleet, m *Member) error {
				m.Kill()
				if err := flushLog(m.Data); err != nil {
					return err
				}
				if err := damageTable(filepath.Join(m.Data, "raft"), f.choices); err != nil && !errors.Is(err, errNothingThere) {
					return err
				}
				return m.Start()
			},
			heal: func(ctx context.Context, f *Fleet, m *Member) error {
				ready, cancel := context.WithTimeout(ctx, standWithin)
				defer cancel()
				if err := m.WaitReady(ready); err == nil || ready.Err() != nil {
					return err
				}
				m.Kill() // it has ended
				if err := f.other(m).operate(ctx, "DELETE", "/cluster/nodes/"+m.Name); err != nil {
					return err
				}
				return m.startEmpty()
			},
		},
	}
}

// flushLog writes what a stopped node has in the write-ahead file of its logs into tables.
func flushLog(data string) (err error) {
	store, err := storage.Open(storage.Config{Dir: data, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("flush the log: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Raft().Flush()
}

// damageTable changes a byte in one table in the directory of a stopped node's instance, or in one of its
// files of values. Data come first in a file, and the footer and what it refers to last.
func damageTable(dir string, choices *rand.Rand) error {
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		return fmt.Errorf("damage a table: %w", err)
	}
	values, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	if err != nil {
		return fmt.Errorf("damage a table: %w", err)
	}
	files := slices.Concat(tables, values)
	if len(files) == 0 {
		return errNothingThere
	}
	path := files[choices.IntN(len(files))]
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("damage a table: %w", err)
	}
	text[choices.IntN(len(text)/4)] ^= 1
	return os.WriteFile(path, text, 0o600)
}

// damageEntry changes a byte of the newest entry of one shard's log, in the data of a stopped node.
func damageEntry(data string, choices *rand.Rand) (err error) {
	store, err := storage.Open(storage.Config{Dir: data, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("damage a log entry: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	it, err := store.Raft().NewIter(nil)
	if err != nil {
		return fmt.Errorf("damage a log entry: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var keys, values [][]byte // of the newest entries
	for shard := range storage.Shard(100) {
		first := raftstore.Key(shard, raftstore.KindLog, nil)
		if it.SeekLT(raftstore.Key(shard, raftstore.KindLog+1, nil)) && slices.Compare(it.Key(), first) > 0 {
			keys, values = append(keys, slices.Clone(it.Key())), append(values, slices.Clone(it.Value()))
		}
	}
	if len(keys) == 0 {
		return errNothingThere
	}
	n := choices.IntN(len(keys))
	values[n][len(values[n])-1] ^= 1
	return store.Raft().Set(keys[n], values[n], pebble.Sync)
}

// says waits until the node has logged a text since its start.
func (m *Member) says(ctx context.Context, text string) error {
	p, err := m.running()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, standWithin)
	defer cancel()
	for !strings.Contains(p.Output(), text) {
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("%s does not say %q: %w\n%s", m.Name, text, ctx.Err(), p.Output())
		}
	}
	return nil
}
