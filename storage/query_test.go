package storage

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func status(s string) Match { return Equal(noteByStatus, Key(nil).Str(s)) }

func label(s string) Match { return Equal(noteByLabel, Key(nil).Str(s)) }

// library has notes 1 to 12: even ones done, every third labeled "x", 5 and 6
// the children of 2, 7 the child of 4.
func library(t *testing.T) (*Store, *Tx) {
	t.Helper()
	s := memory(t)
	tx := begin(t, s)
	for i := 1; i <= 12; i++ {
		n := newNote(i)
		if i%2 == 0 {
			n.Status = "done"
		}
		if i%3 == 0 {
			n.Labels = []string{"x"}
		}
		switch i {
		case 5, 6:
			n.Up = noteID(2).String()
		case 7:
			n.Up = noteID(4).String()
		}
		insert(t, tx, n)
	}
	return s, tx
}

func TestList_Matches(t *testing.T) {
	t.Parallel()
	s, tx := library(t)
	cases := []struct {
		name    string
		after   []byte
		matches []Match
		want    []int
	}{
		{"all", nil, nil, []int{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
		{"one match", nil, []Match{status("done")}, []int{12, 10, 8, 6, 4, 2}},
		{"two matches", nil, []Match{status("done"), label("x")}, []int{12, 6}},
		{"the other way round", nil, []Match{label("x"), status("done")}, []int{12, 6}},
		{"same twice", nil, []Match{label("x"), label("x")}, []int{12, 9, 6, 3}},
		{"no such value", nil, []Match{status("done"), label("y")}, nil},
		{"a value's beginning", nil, []Match{status("don")}, nil},
		{"nothing", nil, []Match{status("done"), Nothing()}, nil},
		{"any of", nil, []Match{AnyOf(status("done"), status("open"))}, []int{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
		{"any of overlapping", nil, []Match{AnyOf(status("done"), label("x"))}, []int{12, 10, 9, 8, 6, 4, 3, 2}},
		{"any of none", nil, []Match{AnyOf()}, nil},
		{"any of with nothing", nil, []Match{AnyOf(Nothing(), label("x"))}, []int{12, 9, 6, 3}},
		{"any of in any of", nil, []Match{AnyOf(AnyOf(label("x")), Nothing()), status("open")}, []int{9, 3}},
		{"parents", nil, []Match{Referenced(noteByParent)}, []int{4, 2}},
		{"parents that are done", nil, []Match{status("done"), Referenced(noteByParent)}, []int{4, 2}},
		{"children of", nil, []Match{Equal(noteByParent, Key(nil).DescID(noteID(2)))}, []int{6, 5}},
		{"after, all", noteKey(4), nil, []int{3, 2, 1}},
		{"after, matched", noteKey(6), []Match{status("done")}, []int{4, 2}},
		{"after, not itself matched", noteKey(7), []Match{status("done")}, []int{6, 4, 2}},
		{"after, two matches", noteKey(12), []Match{status("done"), label("x")}, []int{6}},
		{"after the last", noteKey(1), []Match{status("open")}, nil},
		{"after what is gone", noteKey(99), []Match{label("x")}, []int{12, 9, 6, 3}},
		{"parents after", noteKey(4), []Match{Referenced(noteByParent)}, []int{2}},
	}
	for _, where := range []string{"open batch", "applied"} {
		if where == "applied" {
			apply(t, s, tx)
		}
		for _, c := range cases {
			if got := listed(t, tx, c.after, c.matches...); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %v, want %v", where, c.name, got, c.want)
			}
		}
	}
}

func TestList_StopAndError(t *testing.T) {
	t.Parallel()
	_, tx := library(t)
	for _, matches := range [][]Match{nil, {status("done")}} {
		seen := 0
		must(t, notes.List(tx, matches, nil, func([]byte, Record) (bool, error) { seen++; return seen < 2, nil }))
		if seen != 2 {
			t.Errorf("%d matches: asked to stop at 2, saw %d", len(matches), seen)
		}
		fault := errors.New("stop here")
		if err := notes.List(tx, matches, nil, func([]byte, Record) (bool, error) { return true, fault }); !errors.Is(err, fault) {
			t.Errorf("an error of fn came back as %v", err)
		}
	}
}

// Each page begins where the last one ended, while records are created, deleted and changed
// between the pages. Records that stayed are met exactly once.
func TestList_PagesNeitherRepeatNorSkip(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	for i := 100; i < 200; i++ {
		insert(t, tx, newNote(i))
	}
	apply(t, s, tx)
	var after []byte
	seen := map[ID]int{}
	for page := 0; ; page++ {
		read := 0
		must(t, notes.List(tx, []Match{status("open")}, after, func(pk []byte, _ Record) (bool, error) {
			seen[descID(pk)]++
			read++
			after = bytes.Clone(pk)
			return read < 7, nil
		}))
		if read == 0 {
			break
		}
		insert(t, tx, newNote(200+page)) // newer than all
		insert(t, tx, newNote(page))     // older than all
		row := ok(notes.Get(tx, after))(t)
		if page%2 == 0 { // the cursor's own record goes
			must(t, notes.Delete(tx, row))
		} else {
			gone := row.Value
			gone.Status = "done"
			ok(notes.Update(tx, row, &gone))(t)
		}
		apply(t, s, tx)
	}
	for i := 100; i < 200; i++ {
		if seen[noteID(i)] != 1 {
			t.Errorf("note %d was met %d times", i, seen[noteID(i)])
		}
	}
	for i := 200; seen[noteID(i)] != 0; i++ {
		t.Errorf("note %d, newer than the first page, was met", i)
	}
	verifyClean(t, s)
}

// A command may write while it lists. The list shows the records from before.
func TestList_WhileWriting(t *testing.T) {
	t.Parallel()
	s, tx := library(t)
	var got []int
	must(t, notes.List(tx, []Match{status("done")}, nil, func(pk []byte, rec Record) (bool, error) {
		row := ok(notes.Decode(rec))(t)
		changed := row.Value
		changed.Status = "open"
		ok(notes.Update(tx, row, &changed))(t)
		got = append(got, int(descID(pk)[3]))
		return true, nil
	}))
	if want := []int{12, 10, 8, 6, 4, 2}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if left := listed(t, tx, nil, status("done")); left != nil {
		t.Errorf("still done: %v", left)
	}
	apply(t, s, tx)
	verifyClean(t, s)
}

func TestList_AnEntryWithoutItsRecordIsAnError(t *testing.T) {
	t.Parallel()
	tx := begin(t, memory(t))
	must(t, tx.SetValue(noteByStatus, append(Key(nil).Str("open"), noteKey(3)...), nil))
	err := notes.List(tx, []Match{status("open")}, nil, func([]byte, Record) (bool, error) { return true, nil })
	if err == nil {
		t.Error("an entry without its record was passed over")
	}
}

func TestScan_PrefixAndAfter(t *testing.T) {
	t.Parallel()
	_, tx := library(t)
	scan := func(prefix, after []byte) (got []int) {
		must(t, notes.Scan(tx, prefix, after, func(pk []byte, _ Record) (bool, error) {
			got = append(got, int(descID(pk)[3]))
			return true, nil
		}))
		return got
	}
	if got := scan(nil, noteKey(3)); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("after 3: %v", got)
	}
	if got := scan(noteKey(3), nil); !slices.Equal(got, []int{3}) {
		t.Errorf("of 3 alone: %v", got)
	}
	// A cursor that does not belong to the prefix is no reason to panic.
	if got := scan(noteKey(3), []byte{1}); !slices.Equal(got, []int{3}) {
		t.Errorf("a cursor in front of the prefix: %v", got)
	}
	if got := scan(noteKey(3), noteKey(2)); got != nil {
		t.Errorf("a cursor behind the prefix: %v", got)
	}
}

func TestHas(t *testing.T) {
	t.Parallel()
	_, tx := library(t)
	for _, c := range []struct {
		fields []byte
		want   bool
	}{{Key(nil).DescID(noteID(2)), true}, {Key(nil).DescID(noteID(3)), false}, {nil, true}} {
		if got := ok(tx.Has(noteByParent, c.fields))(t); got != c.want {
			t.Errorf("Has(%x) = %v", c.fields, got)
		}
	}
}

// A list that met its bound can be resumed. With any bound, the resumed walks together meet
// the same records as one walk without a bound.
func TestListWithin_GoesOnWhereItGaveUp(t *testing.T) {
	t.Parallel()
	s := memory(t)
	tx := begin(t, s)
	for i := range 200 {
		n := newNote(i)
		if i%2 == 0 {
			n.Status = "done"
		}
		insert(t, tx, n)
	}
	apply(t, s, tx)
	disjoint := []Match{status("open"), status("done")}
	either := []Match{AnyOf(status("open"), status("done")), status("done")}
	for _, matches := range [][]Match{disjoint, either} {
		want := listed(t, tx, nil, matches...)
		for leaps := 4; leaps < 16; leaps++ {
			var got []int
			walks := 0
			for after := []byte(nil); ; walks++ {
				left := leaps
				resume, err := notes.ListWithin(tx, matches, after, &left, func(pk []byte, _ Record) (bool, error) {
					id := descID(pk)
					got = append(got, int(id[1])<<16|int(id[2])<<8|int(id[3]))
					return true, nil
				})
				must(t, err)
				if resume == nil {
					break
				}
				if bytes.Compare(resume, after) < 0 || walks > 1000 {
					t.Fatalf("%d leaps: walk %d goes on behind %x after %x", leaps, walks, resume, after)
				}
				after = resume
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d leaps: met %v, want %v", leaps, got, want)
			}
			if walks == 0 {
				t.Errorf("%d leaps: never gave up", leaps)
			}
		}
	}
}
