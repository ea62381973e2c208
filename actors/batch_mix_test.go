package actors

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

type mixIn struct {
	Command, Rows, Size int
	Fail, Panic         bool
	// Before are earlier commands whose rows may be there.
	Before []mixIn
	// Wrong is told of rows that are not as they were written.
	Wrong func(error)
}

// mixRow returns a row of a command. It says to which workspace it belongs.
func mixRow(workspace storage.ID, in *mixIn, row int) (key, value []byte) {
	key = fmt.Appendf(nil, "mixed %d %d", in.Command, row)
	return key, bytes.Repeat(fmt.Appendf(nil, "%s %s;", workspace, key), 1+in.Size/50)
}

// mixLook returns how many rows of a command are there. An error says that they are others.
func mixLook(v *storage.View, in *mixIn) (n int, err error) {
	for row := range in.Rows {
		key, want := mixRow(v.Workspace(), in, row)
		got, err := v.Value(testTable, key, nil)
		switch {
		case err != nil:
			return n, err
		case got == nil:
		case !bytes.Equal(got, want):
			return n, fmt.Errorf("%s: %s has %d bytes, want %d: %.100s", v.Workspace(), key, len(got), len(want), got)
		default:
			n++
		}
	}
	if n > 0 && n < in.Rows {
		err = fmt.Errorf("%s: command %d has %d rows of %d", v.Workspace(), in.Command, n, in.Rows)
	}
	return n, err
}

// mix looks for rows of earlier commands, and writes its own.
var mix = tracker.NewCommand[mixIn, string]("Mix", "", tracker.Needs{Level: tracker.Write}, func(tx *tracker.Tx, in *mixIn) (tracker.Reply, error) {
	for i := range in.Before {
		if _, err := mixLook(tx.Reader(), &in.Before[i]); err != nil {
			in.Wrong(err)
		}
	}
	for row := range in.Rows {
		key, value := mixRow(tx.Workspace(), in, row)
		if err := tx.Writer().SetValue(testTable, key, value); err != nil {
			return tracker.Reply{}, err
		}
	}
	if n, err := mixLook(tx.Reader(), in); err != nil || n < in.Rows {
		in.Wrong(fmt.Errorf("%d of %d own rows, %w", n, in.Rows, err))
	}
	switch {
	case in.Fail:
		return tracker.Reply{}, errRefused
	case in.Panic:
		panic("the command broke")
	}
	return tracker.Reply{Body: fmt.Append(nil, tx.Workspace(), in.Command)}, nil
}, tracker.RunsWithoutWorkspace)

// Workspaces take the memory of their batches from one pool. However batches, commands and ownerships end, each workspace has the
// rows of its own commands, and those of all that were acknowledged.
func TestBatches_AreNeverMixed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.local.setFate(func(n int, _ storage.Shard) fate {
		random := rand.New(rand.NewPCG(uint64(n), 0))
		if random.IntN(3) > 0 {
			return applies
		}
		return [...]fate{fails, failsApplied, failsLate, failsLost, panics}[random.IntN(5)]
	})
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() { b.mixIn(workspaceNumber(n), rand.New(rand.NewPCG(uint64(n), 1))) })
	}
	for n := range int64(3) {
		testkit.Eventually(t, "batches on their way", func() bool { return b.local.proposed.Load() >= 20*(n+1) })
		b.loseAll()
		b.local.gain(t, b.engine)
	}
	all.Wait()
}

// loseAll ends the ownership of all shards. Batches in doubt are not applied afterwards.
func (b *testEngine) loseAll() {
	for s := range storage.Shard(b.local.shards + 1) {
		b.local.lose(b.engine, s)
	}
	b.local.mu.Lock()
	defer b.local.mu.Unlock()
	clear(b.local.late)
}

// mixIn has commands run in a workspace, some at once, and compares its rows.
func (b *testEngine) mixIn(workspace storage.ID, random *rand.Rand) {
	var mu sync.Mutex
	var done, there, gone []mixIn
	var clients sync.WaitGroup
	for client := range 3 {
		seed := random.Uint64()
		clients.Go(func() {
			random := rand.New(rand.NewPCG(seed, 0))
			for n := range 16 {
				mu.Lock()
				before := slices.Clone(done[max(0, len(done)-4):])
				mu.Unlock()
				in := mixIn{Command: 100*client + n, Rows: random.IntN(6), Size: random.IntN(1 << (4 + random.IntN(14))), Before: before, Wrong: func(err error) { b.t.Error(err) }}
				in.Fail, in.Panic = random.IntN(6) == 0, random.IntN(10) == 0
				body, err := b.do(workspace, mix, &in)
				in.Before = nil
				mu.Lock()
				done = append(done, in)
				switch {
				case err == nil:
					there = append(there, in)
					if want := fmt.Sprint(workspace, in.Command); body != want {
						b.t.Errorf("the answer is %q, want %q", body, want)
					}
				case in.Fail, in.Panic, outcome(err) == "not_applied":
					gone = append(gone, in)
				case outcome(err) != "unknown":
					b.t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	v := storage.NewView(b.store.State(), storage.ShardOf(workspace, b.local.shards), workspace)
	for i := range done {
		if _, err := mixLook(&v, &done[i]); err != nil {
			b.t.Error(err)
		}
	}
	for i := range there {
		if n, err := mixLook(&v, &there[i]); n < there[i].Rows {
			b.t.Errorf("%s: command %d was acknowledged and has %d rows of %d, %v", workspace, there[i].Command, n, there[i].Rows, err)
		}
	}
	for i := range gone {
		if n, err := mixLook(&v, &gone[i]); n > 0 {
			b.t.Errorf("%s: command %d failed and has %d rows, %v", workspace, gone[i].Command, n, err)
		}
	}
}
