package systemtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// damages are faults of a disk that gives back something else than was written to it.
func damages() []fault {
	return []fault{
		{
			// The node starts without the replica, and the replica's group replaces it.
			name: "damaged log entry", hold: 0,
			strike: func(ctx context.Context, f *Fleet, m *Member) error {
				m.Kill()
				if err := damageEntry(m.Data, f.choices); err != nil {
					return err
				}
				if err := m.Start(); err != nil {
					return err
				}
				return m.says(ctx, "damaged log entry")
			},
			heal: func(context.Context, *Fleet, *Member) error { return nil },
		},
	}
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
		return errors.New("damage a log entry: there is none")
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
