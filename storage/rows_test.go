package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/internal/testkit"
)

func FuzzReadRows(f *testing.F) {
	testkit.Corpus(f)
	set := AppendRow(nil, &RowChange{Op: RowSet, Key: []byte{7, 1}, Value: []byte("value")})
	f.Add(set)
	f.Add(AppendRow(set, &RowChange{Op: RowDelete, Key: []byte{7, 2}}))
	f.Add(AppendRow(nil, &RowChange{Op: RowDeleteRange, Key: []byte{7}, Value: []byte{8}}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{9, 1, 1})
	f.Fuzz(func(t *testing.T, block []byte) {
		var again []byte
		err := ReadRows(block, func(c *RowChange) error {
			if len(c.Key) == 0 {
				t.Fatal("a row without a table")
			}
			again = AppendRow(again, c)
			return nil
		})
		if err != nil && !errors.Is(err, ErrRows) {
			t.Fatal(err)
		}
		// Lengths may be written with more bytes than they need.
		if err == nil && len(again) > len(block) {
			t.Fatalf("%x is read as %x", block, again)
		}
	})
}

// workspaceRows returns the rows of a workspace, by their keys behind its prefix.
func workspaceRows(t *testing.T, db pebble.Reader, shard Shard, workspace ID) map[string]string {
	t.Helper()
	start, end := WorkspaceRange(shard, workspace)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		rows[string(it.Key()[prefixLen:])] = string(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// take has a workspace take what a copy reads, and returns the bytes of its blocks.
func take(t *testing.T, db *pebble.DB, shard Shard, workspace ID, c *RowCopy, size int) (total int) {
	t.Helper()
	var block []byte
	for {
		var err error
		if block, err = c.Next(block[:0], size); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		total += len(block)
		tx := NewTx(db, shard, workspace)
		if err := ReadRows(block, tx.TakeRow); err != nil {
			t.Fatal(err)
		}
		var batch pebble.Batch
		if err := errors.Join(batch.SetRepr(bytes.Clone(tx.Repr())), tx.Close()); err != nil {
			t.Fatal(err)
		}
		if err := db.Apply(&batch, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return total
}

// TestRowCopy_CatchesUp copies a workspace between random changes of it and of its neighbors, into
// another shard: the copy has the same rows after each pass.
func TestRowCopy_CatchesUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		store, err := Open(Config{Dir: "node", FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		db, rng := store.State(), rand.New(rand.NewPCG(seed, 1))
		const skipped = TableID(9)
		from, to, workspace := Shard(3), Shard(700), ID{5, 6: 0x70}
		neighbor := workspace
		neighbor[15]++
		var changes *RowChanges
		commit := func(of ID, write func(tx *Tx) error) {
			t.Helper()
			tx := NewTx(db, from, of)
			if err := write(tx); err != nil {
				t.Fatal(err)
			}
			repr := bytes.Clone(tx.Repr())
			var batch pebble.Batch
			if err := errors.Join(tx.Close(), batch.SetRepr(repr)); err != nil {
				t.Fatal(err)
			}
			if err := db.Apply(&batch, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			if changes != nil {
				if err := changes.Add(repr); err != nil {
					t.Fatal(err)
				}
			}
		}
		step := func(of ID) {
			commit(of, func(tx *Tx) error {
				table := TableID(7 + rng.IntN(3))
				key := Key(nil).Str(fmt.Sprint(rng.IntN(40)))
				switch rng.IntN(10) {
				case 0:
					return tx.DeleteRows(table, key[:rng.IntN(2)])
				case 1, 2, 3:
					return tx.DeleteValue(table, key)
				default:
					return tx.SetValue(table, key, bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(200)))
				}
			})
		}
		for pass := range 6 {
			for range rng.IntN(60) {
				step(workspace)
				step(neighbor)
			}
			c := NewRowCopy(db.NewSnapshot(), from, workspace, func(id TableID) bool { return id == skipped }, changes)
			changes = NewRowChanges(from, workspace)
			for range rng.IntN(5) {
				step(workspace) // while the copy is read
			}
			want := workspaceRows(t, c.snapshot, from, workspace)
			maps.DeleteFunc(want, func(key, _ string) bool { return TableID(key[0]) == skipped })
			take(t, db, to, workspace, c, 1+rng.IntN(500))
			if got := workspaceRows(t, db, to, workspace); !maps.Equal(got, want) {
				t.Fatalf("seed %d: after pass %d the copy has %d rows, want %d", seed, pass, len(got), len(want))
			}
			if others := workspaceRows(t, db, to, neighbor); len(others) > 0 {
				t.Fatalf("seed %d: the neighbor has %d rows", seed, len(others))
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRowChanges_AreBounded(t *testing.T) {
	t.Parallel()
	store, err := Open(Config{Dir: "node", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	changes := NewRowChanges(1, ID{5})
	key := bytes.Repeat([]byte{'k'}, 1<<20)
	for n := byte(1); ; n++ {
		tx := NewTx(store.State(), 1, ID{5})
		if err := tx.SetValue(TableID(n), key, nil); err != nil {
			t.Fatal(err)
		}
		err := changes.Add(tx.Repr())
		if err := tx.Close(); err != nil {
			t.Fatal(err)
		}
		if errors.Is(err, ErrTooManyChanges) {
			if n < 60 {
				t.Errorf("%d MiB of keys are too many", n)
			}
			return
		}
		if err != nil || n > 64 {
			t.Fatalf("%d MiB of keys: %v", n, err)
		}
	}
}
