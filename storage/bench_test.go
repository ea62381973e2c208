package storage

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// wideNote has twelve index entries, as a full issue has.
func wideNote(i int) *note {
	n := newNote(i)
	n.Text = fmt.Sprintf("%600d", i)
	n.Owner, n.Ref, n.Due, n.Up = "ann", "ref-"+n.Hex, uint64(i+1), noteID(i/10).String()
	n.Labels = []string{"l1", "l2", "l3", "l4", "l5", "l6", "l7"}
	if i%2 == 0 {
		n.Status = "done"
	}
	return n
}

func benchStore(b *testing.B) *Store {
	s := ok(Open(Config{Dir: "store", FS: vfs.NewMem(), Logger: quiet}))(b)
	b.Cleanup(func() { must(b, s.Close()) })
	return s
}

func fill(b *testing.B, n int) *Store {
	s := benchStore(b)
	tx := NewTx(s.State(), 1, wsA)
	for i := range n {
		insert(b, tx, wideNote(i))
		if i%100 == 99 {
			apply(b, s, tx)
		}
	}
	apply(b, s, tx)
	must(b, tx.Close())
	must(b, s.FlushState())
	return s
}

// Insert: one record, twelve index entries, into the open batch alone.
func BenchmarkInsert(b *testing.B) {
	s := benchStore(b)
	tx := NewTx(s.State(), 1, wsA)
	defer func() { must(b, tx.Close()) }()
	n := wideNote(1)
	b.ReportAllocs()
	for b.Loop() {
		insert(b, tx, n)
		if tx.Ops() > 500 {
			tx.Reset()
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := fill(b, 1000)
	tx := NewTx(s.State(), 1, wsA)
	defer func() { must(b, tx.Close()) }()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		row := ok(notes.Get(tx, noteKey(i%1000)))(b)
		changed := row.Value
		changed.Status = []string{"open", "done"}[i%2]
		ok(notes.Update(tx, row, &changed))(b)
		if tx.Ops() > 500 {
			tx.Reset()
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	s := fill(b, 20_000)
	v := NewView(s.State(), 1, wsA)
	keys := make([]Key, 1000)
	for i := range keys {
		keys[i] = noteKey(i * 17)
	}
	size := 0
	read := func(rec Record) error { size += len(rec.JSON()); return nil }
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if found, err := notes.Record(&v, keys[i%len(keys)], read); err != nil || !found {
			b.Fatal(found, err)
		}
	}
}

func BenchmarkList50(b *testing.B) {
	s := fill(b, 20_000)
	for name, matches := range map[string][]Match{
		"all":   nil,
		"one":   {status("open")},
		"two":   {status("open"), label("l3")},
		"rare":  {status("open"), Equal(noteByParent, Key(nil).DescID(noteID(77)))},
		"anyof": {AnyOf(status("open"), status("done")), label("l1")},
	} {
		b.Run(name, func(b *testing.B) {
			v := NewView(s.State(), 1, wsA)
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				must(b, notes.List(&v, matches, nil, func([]byte, Record) (bool, error) { n++; return n < 50, nil }))
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	s := fill(b, 5000)
	b.ReportAllocs()
	for b.Loop() {
		if r := ok(Verify(b.Context(), s.State(), noteSchema))(b); !r.Clean() {
			b.Fatal(r.Problems)
		}
	}
}
