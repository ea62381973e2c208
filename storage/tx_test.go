package storage

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

func TestRollback_LeavesWhatWasBefore(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	insert(t, tx, newNote(1))
	must(t, tx.SetNumber(countTable, []byte("n"), 1))
	apply(t, s, tx)

	insert(t, tx, newNote(2))
	mark := tx.Mark()
	before := bytes.Clone(tx.Repr())
	if tx.Wrote(mark) {
		t.Error("wrote without writing")
	}
	must(t, tx.Rollback(mark)) // of nothing
	insert(t, tx, newNote(3))
	must(t, tx.SetNumber(countTable, []byte("n"), 2))
	must(t, tx.DeleteWorkspace())
	if n := ok(tx.Number(countTable, []byte("n")))(t); n != 0 {
		t.Errorf("the erased counter reads %d", n)
	}
	insert(t, tx, newNote(4))
	must(t, tx.Rollback(mark))

	if !bytes.Equal(tx.Repr(), before) {
		t.Errorf("the batch is %x, was %x", tx.Repr(), before)
	}
	if got := listed(t, tx, nil, status("open")); len(got) != 2 || got[0] != 2 || got[1] != 1 {
		t.Errorf("listed %v, want 2 and 1", got)
	}
	if n := ok(tx.Number(countTable, []byte("n")))(t); n != 1 {
		t.Errorf("the counter reads %d", n)
	}
	if tx.Dirty() != 1 {
		t.Errorf("touched %b", tx.Dirty())
	}
	insert(t, tx, newNote(5)) // continues after the rollback
	apply(t, s, tx)
	if r := verifyClean(t, s); r.Records != 3 {
		t.Errorf("verified %d records, want 3", r.Records)
	}
}

func TestRollback_ToTheStart(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	mark := tx.Mark()
	insert(t, tx, newNote(1))
	must(t, tx.Rollback(mark))
	if !tx.Empty() || tx.Ops() != 0 || tx.Wrote(mark) || tx.Dirty() != 0 {
		t.Errorf("left %d operations, touched %b", tx.Ops(), tx.Dirty())
	}
	insert(t, tx, newNote(2))
	if got := listed(t, tx, nil, status("open")); len(got) != 1 || got[0] != 2 {
		t.Errorf("listed %v", got)
	}
}

// DeleteRows removes the rows of a prefix only. Rows beside it, of other tables and of the
// neighboring workspace stay, and so do later writes.
func TestDeleteRows_RemovesAPrefixAndNoMore(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	rows := [][]byte{{1, 0xfe}, {1, 0xff}, {1, 0xff, 0}, {1, 0xff, 0xff, 0xff}, {2}, {2, 0}}
	left := func() (fields []byte) {
		must(t, tx.Rows(countTable, nil, nil, func(key, _ []byte) (bool, error) {
			fields = append(append(fields, key...), '.')
			return true, nil
		}))
		return fields
	}
	for _, committed := range []bool{false, true} {
		insert(t, tx, newNote(1))
		for _, fields := range rows {
			must(t, tx.SetNumber(countTable, fields, 1))
		}
		if committed {
			apply(t, s, tx)
		}
		mark := tx.Mark()
		before := left()
		must(t, tx.DeleteRows(countTable, []byte{1, 0xff}))
		if got := left(); !bytes.Equal(got, []byte{1, 0xfe, '.', 2, '.', 2, 0, '.'}) {
			t.Errorf("left %x", got)
		}
		must(t, tx.SetNumber(countTable, []byte{1, 0xff, 7}, 1))
		if got := left(); !bytes.Equal(got, []byte{1, 0xfe, '.', 1, 0xff, 7, '.', 2, '.', 2, 0, '.'}) {
			t.Errorf("left %x with a row written afterwards", got)
		}
		must(t, tx.Rollback(mark))
		if got := left(); !bytes.Equal(got, before) {
			t.Errorf("left %x after a rollback, want %x", got, before)
		}
		must(t, tx.DeleteRows(countTable, nil))
		if got := left(); got != nil {
			t.Errorf("left %x of all", got)
		}
		if !committed {
			tx.Reset()
		}
	}
	apply(t, s, tx)
	if r := verifyClean(t, s); r.Records != 1 || r.Rows != 0 {
		t.Errorf("verified %+v, want one record and no row", r)
	}
}

// Pebble does not keep a large batch for reuse, and the garbage collector frees it. Marks
// must stay valid across that.
func TestRollback_LargeBatch(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	big := newNote(1)
	big.Text = string(bytes.Repeat([]byte("x"), 2<<20))
	for range 2 {
		mark := tx.Mark()
		insert(t, tx, big)
		must(t, tx.Rollback(mark))
		if tx.Wrote(mark) {
			t.Errorf("%d bytes are left", tx.Size())
		}
	}
	insert(t, tx, newNote(2))
	mark := tx.Mark()
	insert(t, tx, big)
	must(t, tx.Rollback(mark))
	apply(t, s, tx)
	if cap(tx.value) > maxScratch {
		t.Errorf("%d bytes of scratch are kept", cap(tx.value))
	}
	if r := verifyClean(t, s); r.Records != 1 {
		t.Errorf("verified %d records, want 1", r.Records)
	}
}

// A Tx has a batch, and its memory, from Begin or its first write until Reset, or until Release if nothing was
// written. It reads what is committed otherwise.
func TestTx_GivesItsBatchBack(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	var row [1]byte
	has := func(n byte) bool {
		t.Helper()
		row[0] = n
		return ok(tx.Value(countTable, row[:], nil))(t) != nil
	}
	write := func(n byte) {
		t.Helper()
		row[0] = n
		must(t, tx.SetValue(countTable, row[:], []byte("value")))
	}
	if tx.batch != nil || tx.Size() != 0 || tx.Ops() != 0 || !tx.Empty() {
		t.Errorf("a new Tx has a batch: %d bytes", tx.Size())
	}
	tx.Begin()
	if tx.Release(); tx.batch != nil {
		t.Error("an empty batch is kept")
	}
	write(1)
	if tx.Release(); tx.batch == nil || tx.Ops() != 1 || !has(1) {
		t.Errorf("after a write %d operations", tx.Ops())
	}
	if apply(t, s, tx); tx.batch != nil || !has(1) || has(2) {
		t.Error("after Reset the Tx has a batch, or doesn't read what is committed")
	}
	write(2)
	if tx.Begin(); !has(2) || tx.Ops() != 1 {
		t.Errorf("in the next batch %d operations", tx.Ops())
	}
	if tx.Reset(); has(2) {
		t.Error("a batch that was not committed is read")
	}
	must(t, tx.Close())
	must(t, tx.Close())
}

// Views over a snapshot read one moment, regardless of later commits. So does one List over
// the database itself.
func TestSnapshot_IsOneMoment(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	const each = 20
	for i := range each {
		insert(t, tx, newNote(i+1))
	}
	apply(t, s, tx)

	// The writer changes all notes at once, again and again. A reader sees them all open or
	// all done.
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		stopped <- func() error {
			writer := NewTx(s.State(), 1, wsA)
			defer func() { _ = writer.Close() }()
			for next := "done"; ; next = map[string]string{"done": "open", "open": "done"}[next] {
				select {
				case <-stop:
					return nil
				default:
				}
				for i := range each {
					row, err := notes.Get(writer, noteKey(i+1))
					if err != nil {
						return err
					}
					changed := row.Value
					changed.Status = next
					if _, err := notes.Update(writer, row, &changed); err != nil {
						return err
					}
				}
				b := s.State().NewBatch()
				if err := b.SetRepr(bytes.Clone(writer.Repr())); err != nil {
					return err
				}
				if err := b.Commit(pebble.NoSync); err != nil {
					return err
				}
				writer.Reset()
			}
		}()
	}()
	for range 40 {
		snap := s.State().NewSnapshot()
		v := NewView(snap, 1, wsA)
		open, done := listed(t, &v, nil, status("open")), listed(t, &v, nil, status("done"))
		if len(open)+len(done) != each || len(open)*len(done) != 0 {
			t.Errorf("a snapshot shows %d open and %d done", len(open), len(done))
		}
		must(t, snap.Close())
		live := NewView(s.State(), 1, wsA)
		if got := listed(t, &live, nil, status("open")); len(got) != 0 && len(got) != each {
			t.Errorf("one list shows %d of %d", len(got), each)
		}
		if got := listed(t, &live, nil, AnyOf(status("open"), status("done"))); len(got) != each {
			t.Errorf("one list of both shows %d of %d", len(got), each)
		}
	}
	close(stop)
	must(t, <-stopped)
}

// A range of rows is removed at once: rows of the batch and earlier rows, and no row beside
// the range. A rollback restores them.
func TestDeleteRows(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	for _, name := range []string{"a1", "a2", "b", "\xff\xff"} {
		must(t, tx.SetNumber(countTable, []byte(name), 1))
	}
	apply(t, s, tx)
	left := func(want string) {
		t.Helper()
		got := ""
		must(t, tx.Rows(countTable, nil, nil, func(fields, _ []byte) (bool, error) {
			got += string(fields) + " "
			return true, nil
		}))
		if got != want {
			t.Errorf("left are %q, want %q", got, want)
		}
	}
	must(t, tx.SetNumber(countTable, []byte("a3"), 1))
	mark := tx.Mark()
	must(t, tx.DeleteRows(countTable, []byte("a")))
	left("b \xff\xff ")
	must(t, tx.Rollback(mark))
	left("a1 a2 a3 b \xff\xff ")
	must(t, tx.DeleteRows(countTable, []byte("a")))
	must(t, tx.SetNumber(countTable, []byte("a2"), 2))
	apply(t, s, tx)
	left("a2 b \xff\xff ")
	must(t, tx.DeleteRows(countTable, []byte("\xff")))
	apply(t, s, tx)
	left("a2 b ")
}
