package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
)

// given is what rowsAt came to.
type given struct {
	rows *pebble.Snapshot
	err  error
}

// cutAt asks for the rows at an entry, and returns when the machine knows of it or has answered.
func (mt *machineTest) cutAt(ctx context.Context, entry uint64) <-chan given {
	mt.t.Helper()
	out := make(chan given, 1)
	go func() {
		rows, err := mt.m.rowsAt(ctx, entry)
		out <- given{rows, err}
	}()
	testkit.Eventually(mt.t, "the cut is known", func() bool { return mt.m.cut.Load() != nil || len(out) > 0 })
	return out
}

// wantRows checks which of the rows a to e a cut has.
func (mt *machineTest) wantRows(got given, want string) {
	mt.t.Helper()
	if got.err != nil {
		mt.t.Fatal(got.err)
	}
	has := ""
	for _, row := range []string{"a", "b", "c", "d", "e"} {
		value, err := raftstore.ReadRow(got.rows, testKey(shard1, row))
		if err != nil {
			mt.t.Fatal(err)
		}
		if value != nil {
			has += row
		}
	}
	if err := got.rows.Close(); err != nil || has != want {
		mt.t.Errorf("the cut has rows %q, want %q; closed with %v", has, want, err)
	}
}

// A cut has the rows after its entry, wherever that is in what Raft hands over at once.
func TestCut_BetweenEntries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		entry uint64
		want  string
	}{
		{"before the first", 1, ""},
		{"in the middle", 3, "ab"},
		{"of an entry that the machine does not see", 4, "ab"},
		{"before the last", 6, "abcd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mt := newMachine(t)
			logs := []*raft.Log{mt.log(5, appendEntry(nil, entryClaim, 5, "a"))} // entry 1
			logs = append(logs, mt.batch(5, "a"), mt.batch(5, "b"))
			mt.index++ // Raft keeps its own entries to itself
			logs = append(logs, mt.batch(5, "c"), mt.batch(5, "d"), mt.batch(5, "e"))
			out := mt.cutAt(t.Context(), c.entry)
			for _, result := range mt.m.ApplyBatch(logs) {
				if err, failed := result.(error); failed {
					t.Error(err)
				}
			}
			mt.wantRows(<-out, c.want)
			if !mt.has("e") || mt.m.applied.Load() != 7 {
				t.Errorf("applied up to %d", mt.m.applied.Load())
			}
		})
	}
}

// A shard in which nothing happens gives its rows at once. A cut of an entry that was passed, or that
// does not come, is missed.
func TestCut_WithoutEntries(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.claim(5, "a")
	mt.m.Apply(mt.batch(5, "a"))
	mt.wantRows(<-mt.cutAt(t.Context(), 2), "a")
	if got := <-mt.cutAt(t.Context(), 1); !errors.Is(got.err, errCutMissed) {
		t.Errorf("an entry that was passed: %v", got.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := mt.cutAt(ctx, 9)
	if _, err := mt.m.rowsAt(t.Context(), 9); !errors.Is(err, errCutTwice) {
		t.Errorf("a second one at the same time: %v", err)
	}
	cancel()
	if got := <-out; !errors.Is(got.err, errCutMissed) || mt.m.cut.Load() != nil {
		t.Errorf("an entry that does not come: %v", got.err)
	}
	// The machine may pass the entry before it knows of the cut.
	late := &cut{entry: 1, rows: make(chan *pebble.Snapshot, 1)}
	mt.m.cut.Store(late)
	mt.m.Apply(mt.batch(5, "b"))
	if rows := <-late.rows; rows != nil {
		t.Error("a cut of a passed entry got rows")
	}
}

// Rows that are given while the cut is withdrawn are closed: a store can't be closed before.
func TestCut_Withdrawn(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.claim(5, "a")
	c := &cut{entry: 1, rows: make(chan *pebble.Snapshot, 1)}
	mt.m.cut.Store(c)
	mt.m.Apply(mt.batch(5, "a"))
	if err := mt.m.withdraw(c); err != nil {
		t.Fatal(err)
	}
	if open := mt.store.State().Metrics().Snapshots.Count; open != 0 {
		t.Errorf("%d snapshots are open", open)
	}
}

// Cuts under load are exact, while entries are applied one by one.
func TestCut_UnderLoad(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.claim(5, "a")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				mt.m.Apply(mt.batch(5, "a"))
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for exact := 0; exact < 20; {
		entry := mt.m.applied.Load() + 100
		rows, err := mt.m.rowsAt(ctx, entry)
		if errors.Is(err, errCutMissed) && ctx.Err() == nil {
			continue // on a busy machine 100 entries are applied before the cut is known
		}
		if err != nil {
			t.Fatal(err)
		}
		if at, err := readPosition(rows, shard1); err != nil || at.applied != entry {
			t.Fatalf("the rows are at %d, want %d: %v", at.applied, entry, err)
		}
		exact++
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-ended
}
