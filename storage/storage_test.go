package storage

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// note is a record with every kind of index, for the tests.
type note struct {
	Text   string   `json:"text"`
	Hex    string   `json:"id"`
	Status string   `json:"status"`
	Owner  string   `json:"owner"`
	Up     string   `json:"parent"`
	Labels []string `json:"labels"`
	Due    uint64   `json:"due"`
	Ref    string   `json:"ref"`
	Hidden bool     `json:"hidden"`
}

const (
	noteTable    TableID = 30
	noteByStatus TableID = 31
	noteByOwner  TableID = 32
	noteByParent TableID = 33
	noteByLabel  TableID = 34
	noteByRef    TableID = 35
	noteByDue    TableID = 36
	countTable   TableID = 40
)

var notes = &Table[note]{
	ID:   noteTable,
	Name: "note",
	Key:  func(k Key, n *note) Key { id, _ := ParseID(n.Hex); return k.DescID(id) },
	Head: func(n *note) (Flags, ID) {
		if n.Hidden {
			return 1, ID{9}
		}
		return 0, ID{}
	},
	Dirty: 1,
	Indexes: []Index[note]{
		{ID: noteByStatus, Name: "status", Entries: func(e *Entries, n *note) { e.Add(e.Key().Str(n.Status)) }},
		{ID: noteByOwner, Name: "owner", Entries: func(e *Entries, n *note) {
			if n.Owner != "" {
				e.Add(e.Key().Str(n.Owner))
			}
		}},
		{ID: noteByParent, Name: "parent", Entries: func(e *Entries, n *note) {
			if id, ok := ParseID(n.Up); ok {
				e.Add(e.Key().DescID(id))
			}
		}},
		{ID: noteByLabel, Name: "label", Entries: func(e *Entries, n *note) {
			for _, l := range n.Labels {
				e.Add(e.Key().Str(l))
			}
		}},
		{ID: noteByRef, Name: "ref", Unique: true, Entries: func(e *Entries, n *note) {
			if n.Ref != "" {
				e.Add(e.Key().Str(n.Ref))
			}
		}},
		{ID: noteByDue, Name: "due", ShardWide: true, Entries: func(e *Entries, n *note) {
			if n.Due != 0 {
				e.Add(e.Key().U64(n.Due))
			}
		}},
	},
}

var noteSchema = &Schema{Tables: []TableSpec{notes}, Rows: []RowSpec{Counter(countTable, "count")}}

func noteID(n int) ID { return ID{1, byte(n >> 16), byte(n >> 8), byte(n), 6: 0x70, 8: 0x80} }

func newNote(n int) *note {
	return &note{Hex: noteID(n).String(), Text: fmt.Sprintf("note <%d>", n), Status: "open", Labels: []string{}}
}

func noteKey(n int) Key { return Key(nil).DescID(noteID(n)) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// memory opens a store in memory.
func memory(t testing.TB) *Store {
	t.Helper()
	s, err := Open(Config{Dir: "store", FS: vfs.NewMem(), CacheBytes: 8 << 20, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var wsA = ID{0xaa, 15: 1}

// open starts a Tx on workspace wsA of shard 1.
func begin(t testing.TB, s *Store) *Tx {
	t.Helper()
	tx := NewTx(s.State(), 1, wsA)
	t.Cleanup(func() {
		if err := tx.Close(); err != nil {
			t.Error(err)
		}
	})
	return tx
}

// apply commits the batch of tx, as a replica does, and resets tx.
func apply(t testing.TB, s *Store, tx *Tx) {
	t.Helper()
	b := s.State().NewBatch()
	must(t, b.SetRepr(append([]byte(nil), tx.Repr()...)))
	must(t, b.Commit(pebble.NoSync))
	must(t, b.Close())
	tx.Reset()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ok unwraps a value that came without an error.
func ok[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func insert(t testing.TB, tx *Tx, n *note) []byte {
	t.Helper()
	return ok(notes.Insert(tx, n))(t)
}

func verifyClean(t testing.TB, s *Store) *Report {
	t.Helper()
	r := ok(Verify(context.Background(), s.State(), noteSchema))(t)
	for _, p := range r.Problems {
		t.Errorf("verify: %s", p)
	}
	return r
}

// listed lists the numbers of the notes that match.
func listed(t testing.TB, r Reader, after []byte, matches ...Match) []int {
	t.Helper()
	var got []int
	must(t, notes.List(r, matches, after, func(pk []byte, rec Record) (bool, error) {
		id := descID(pk)
		if row := ok(notes.Decode(rec))(t); row.Value.Hex != id.String() {
			t.Errorf("listed %s under %s", row.Value.Hex, id)
		}
		got = append(got, int(id[1])<<16|int(id[2])<<8|int(id[3]))
		return true, nil
	}))
	return got
}
