package storage

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
)

func TestInsert_StoresWhatItReturns(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	n := newNote(1)
	n.Hidden = true
	body := insert(t, tx, n)
	var back note
	must(t, stdjson.Unmarshal(body, &back))
	if !reflect.DeepEqual(back, *n) {
		t.Errorf("answered %s", body)
	}
	if !bytes.Contains(body, []byte(`"text":"note <1>"`)) {
		t.Errorf("answered %s, want the text as it was given", body)
	}
	found, err := notes.Record(tx, noteKey(1), func(rec Record) error {
		if !bytes.Equal(rec.JSON(), body) {
			t.Errorf("stored %s, answered %s", rec.JSON(), body)
		}
		if want := (Header{Flags: 1, Version: 1, Team: ID{9}}); rec.Header() != want {
			t.Errorf("header %+v, want %+v", rec.Header(), want)
		}
		return nil
	})
	if err != nil || !found {
		t.Errorf("found %v, %v", found, err)
	}
	if tx.Dirty() != 1 {
		t.Errorf("touched %b", tx.Dirty())
	}
}

func TestUpdate_CountsVersionsAndMovesEntries(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	n := newNote(1)
	n.Labels, n.Ref = []string{"a", "b", "a"}, "r1"
	insert(t, tx, n)
	apply(t, s, tx)

	row := ok(notes.Get(tx, noteKey(1)))(t)
	changed := row.Value
	changed.Labels, changed.Ref, changed.Status = []string{"a"}, "r2", "done"
	ok(notes.Update(tx, row, &changed))(t)
	apply(t, s, tx)

	if got := ok(notes.Get(tx, noteKey(1)))(t); got.Version != 2 || got.Value.Status != "done" {
		t.Errorf("read back %+v", got)
	}
	verifyClean(t, s)
	for _, c := range []struct {
		match Match
		want  int
	}{
		{Equal(noteByLabel, Key(nil).Str("a")), 1},
		{Equal(noteByLabel, Key(nil).Str("b")), 0},
		{Equal(noteByStatus, Key(nil).Str("open")), 0},
		{Equal(noteByStatus, Key(nil).Str("done")), 1},
	} {
		if got := listed(t, tx, nil, c.match); len(got) != c.want {
			t.Errorf("%+v lists %v, want %d", c.match, got, c.want)
		}
	}
	if pk := ok(notes.Lookup(tx, noteByRef, Key(nil).Str("r1")))(t); pk != nil {
		t.Errorf("the old ref still finds %x", pk)
	}
	if pk := ok(notes.Lookup(tx, noteByRef, Key(nil).Str("r2")))(t); !bytes.Equal(pk, noteKey(1)) {
		t.Errorf("the new ref finds %x", pk)
	}
}

// An entry that a record gives repeatedly is written once, removed once and counted once.
func TestTable_CountsARepeatedEntryOnce(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	tx.Measure(NewMeter(noteSchema))
	n := newNote(1)
	n.Labels = []string{"a", "b", "a"}
	insert(t, tx, n)
	row := ok(notes.Get(tx, noteKey(1)))(t)
	bare := row.Value
	bare.Labels = []string{"b", "b"}
	ok(notes.Update(tx, row, &bare))(t)
	must(t, notes.Delete(tx, ok(notes.Get(tx, noteKey(1)))(t)))
	if left := tx.Counted(); left != (Bytes{}) {
		t.Errorf("%+v are counted when everything is removed", left)
	}
}

func TestUpdate_RefusesAnotherPrimaryKey(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	insert(t, tx, newNote(1))
	m := tx.Mark()
	row := ok(notes.Get(tx, noteKey(1)))(t)
	if _, err := notes.Update(tx, row, newNote(2)); err == nil || tx.Wrote(m) {
		t.Errorf("update to another key: %v, wrote %v", err, tx.Wrote(m))
	}
}

func TestRecord_UnknownFormat(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	for i, bad := range [][]byte{{}, {1}, append([]byte{2}, make([]byte, referredLen-2)...), append([]byte{3}, make([]byte, 40)...)} {
		must(t, tx.SetValue(noteTable, noteKey(i), bad))
		if _, err := notes.Get(tx, noteKey(i)); !errors.Is(err, ErrFormat) {
			t.Errorf("reading %x: %v", bad, err)
		}
	}
	must(t, tx.SetValue(noteTable, noteKey(9), AppendHeader(nil, Header{Version: 1})))
	if _, err := notes.Get(tx, noteKey(9)); err == nil {
		t.Error("a record with no JSON was decoded")
	}
}

func TestValue_EmptyIsNotAbsent(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	must(t, tx.SetValue(countTable, []byte("there"), nil))
	if got := ok(tx.Value(countTable, []byte("there"), nil))(t); got == nil {
		t.Error("an empty row reads as absent")
	}
	if got := ok(tx.Value(countTable, []byte("not"), []byte("buf")))(t); got != nil {
		t.Errorf("an absent row reads as %q", got)
	}
	if _, err := tx.Number(countTable, []byte("there")); !errors.Is(err, ErrFormat) {
		t.Errorf("a counter of no bytes: %v", err)
	}
	must(t, tx.SetNumber(countTable, []byte("n"), 1<<60+7))
	if n := ok(tx.Number(countTable, []byte("n")))(t); n != 1<<60+7 {
		t.Errorf("counted %d", n)
	}
	must(t, tx.DeleteValue(countTable, []byte("n")))
	if n := ok(tx.Number(countTable, []byte("n")))(t); n != 0 {
		t.Errorf("deleted, yet %d", n)
	}
}

func TestRows_PrefixFromAndStop(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	for _, k := range []string{"a1", "a2", "a3", "b1"} {
		must(t, tx.SetValue(countTable, []byte(k), []byte(k)))
	}
	for _, c := range []struct {
		prefix, from string
		stop         int
		want         string
	}{
		{"", "", 0, "a1 a2 a3 b1 "},
		{"a", "", 0, "a1 a2 a3 "},
		{"a", "2", 0, "a2 a3 "},
		{"a", "2\x00", 0, "a3 "},
		{"a", "", 2, "a1 a2 "},
		{"c", "", 0, ""},
		{"", "a3", 0, "a3 b1 "},
	} {
		var got string
		seen := 0
		must(t, tx.Rows(countTable, []byte(c.prefix), []byte(c.from), func(fields, value []byte) (bool, error) {
			got += string(fields) + " "
			if !bytes.Equal(fields, value) {
				t.Errorf("%s has %s", fields, value)
			}
			seen++
			return seen != c.stop, nil
		}))
		if got != c.want {
			t.Errorf("Rows(%q, %q) = %q, want %q", c.prefix, c.from, got, c.want)
		}
	}
	fault := errors.New("stop here")
	if err := tx.Rows(countTable, nil, nil, func(_, _ []byte) (bool, error) { return true, fault }); !errors.Is(err, fault) {
		t.Errorf("an error of fn came back as %v", err)
	}
}

// Each row is met once, in its newest version, even if it was written several times.
func TestHotRows_MeetsEachRowOnce(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	for round := range 3 {
		for _, k := range []string{"a", "a1", "a1\x00", "a2", "b"} {
			must(t, tx.SetValue(countTable, []byte(k), fmt.Append(nil, round)))
		}
		must(t, tx.DeleteValue(countTable, []byte("a2")))
		apply(t, s, tx)
	}
	for _, c := range []struct {
		prefix string
		stop   int
		want   string
	}{{"", 0, `"a"2 "a1"2 "a1\x00"2 "b"2 `}, {"a1", 0, `"a1"2 "a1\x00"2 `}, {"", 2, `"a"2 "a1"2 `}, {"c", 0, ""}} {
		got, seen := "", 0
		must(t, tx.HotRows(countTable, []byte(c.prefix), func(fields, value []byte) (bool, error) {
			got += fmt.Sprintf("%q%s ", fields, value)
			seen++
			return seen != c.stop, nil
		}))
		if got != c.want {
			t.Errorf("HotRows(%q) = %s, want %s", c.prefix, got, c.want)
		}
	}
}

func TestRowsBack_PrefixBeforeAndStop(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	for _, k := range []string{"a1", "a2", "a3", "b1"} {
		must(t, tx.SetValue(countTable, []byte(k), []byte(k)))
	}
	for _, c := range []struct {
		prefix, before string
		stop           int
		want           string
	}{
		{"", "", 0, "b1 a3 a2 a1 "},
		{"a", "", 0, "a3 a2 a1 "},
		{"a", "2", 0, "a1 "},
		{"a", "2\x00", 0, "a2 a1 "},
		{"a", "1", 0, ""},
		{"a", "9", 2, "a3 a2 "},
		{"c", "", 0, ""},
	} {
		var got string
		seen := 0
		must(t, tx.RowsBack(countTable, []byte(c.prefix), []byte(c.before), func(fields, value []byte) (bool, error) {
			got += string(fields) + " "
			if !bytes.Equal(fields, value) {
				t.Errorf("%s has %s", fields, value)
			}
			seen++
			return seen != c.stop, nil
		}))
		if got != c.want {
			t.Errorf("RowsBack(%q, %q) = %q, want %q", c.prefix, c.before, got, c.want)
		}
	}
	fault := errors.New("stop here")
	if err := tx.RowsBack(countTable, nil, nil, func(_, _ []byte) (bool, error) { return true, fault }); !errors.Is(err, fault) {
		t.Errorf("an error of fn came back as %v", err)
	}
}

func TestViews_DoNotSeeOtherWorkspaces(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	insert(t, tx, newNote(1))
	apply(t, s, tx)
	for _, c := range []struct {
		shard Shard
		id    ID
	}{{2, wsA}, {1, ID{0xaa}}, {1, ID{0xaa, 15: 2}}, {1, SystemID}} {
		v := NewView(s.State(), c.shard, c.id)
		if got := listed(t, &v, nil, Equal(noteByStatus, Key(nil).Str("open"))); len(got) != 0 {
			t.Errorf("shard %d, %s lists %v", c.shard, c.id, got)
		}
		if row := ok(notes.Get(&v, noteKey(1)))(t); row != nil {
			t.Errorf("shard %d, %s reads %+v", c.shard, c.id, row)
		}
	}
}

// A look-up that needs a second look-up sees both as of one moment.
func TestView_Settle(t *testing.T) {
	t.Parallel()
	s := memory(t)
	put := func(status string) {
		tx := begin(t, s)
		must(t, tx.SetValue(countTable, nil, []byte(status)))
		apply(t, s, tx)
	}
	v := NewView(s.State(), 1, wsA)
	read := func(want string) {
		t.Helper()
		got, err := v.Value(countTable, nil, nil)
		if err != nil || string(got) != want {
			t.Errorf("reads %q, %v, want %q", got, err, want)
		}
	}
	put("one")
	release := v.Settle()
	again := v.Settle() // of a settled view
	put("two")
	read("one")
	must(t, again())
	read("one")
	must(t, release())
	read("two")
}
