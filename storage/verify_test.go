package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// damaged applies a sound state, and calls damage to change it.
func damaged(t *testing.T, damage func(raw *Tx)) *Report {
	t.Helper()
	s := memory(t)
	tx := begin(t, s)
	for i := 1; i <= 5; i++ {
		n := newNote(i)
		n.Labels, n.Ref, n.Due, n.Hidden = []string{"x"}, "ref-"+n.Hex, uint64(i), true
		insert(t, tx, n)
	}
	must(t, tx.SetNumber(countTable, nil, 5))
	apply(t, s, tx)
	verifyClean(t, s)
	damage(tx)
	apply(t, s, tx)
	return ok(Verify(t.Context(), s.State(), noteSchema))(t)
}

func TestVerify_FindsEveryKindOfDamage(t *testing.T) {
	t.Parallel()
	entry := func(fields Key, n int) []byte { return append(fields, noteKey(n)...) }
	wide := func(due uint64, n int) []byte { return append(Key(nil).U64(due).ID(wsA), noteKey(n)...) }
	system := func(raw *Tx) *Tx {
		raw.prefix = rangePrefix(1, SystemID)
		return raw
	}
	cases := []struct {
		name   string
		damage func(t *testing.T, raw *Tx)
		table  string
		text   string
		found  int64
	}{
		{"an id nobody has", func(t *testing.T, raw *Tx) { must(t, raw.SetValue(99, []byte("k"), nil)) }, "id 99", "no table", 1},
		{"an entry missing", func(t *testing.T, raw *Tx) { must(t, raw.DeleteValue(noteByLabel, entry(Key(nil).Str("x"), 3))) }, "note.label", "missing", 1},
		{"an entry too many", func(t *testing.T, raw *Tx) {
			must(t, raw.SetValue(noteByLabel, entry(Key(nil).Str("y"), 3), nil))
		}, "note.label", "no record calls for it", 1},
		{"an entry for another", func(t *testing.T, raw *Tx) {
			must(t, raw.DeleteValue(noteByLabel, entry(Key(nil).Str("x"), 3)))
			must(t, raw.SetValue(noteByLabel, entry(Key(nil).Str("x"), 33), nil))
		}, "note.label", "", 2},
		{"a unique entry that names another", func(t *testing.T, raw *Tx) {
			must(t, raw.SetValue(noteByRef, Key(nil).Str("ref-"+newNote(3).Hex), noteKey(4)))
		}, "note.ref", "has the value", 1},
		{"a shard-wide entry missing", func(t *testing.T, raw *Tx) {
			must(t, system(raw).DeleteValue(noteByDue, wide(3, 3)))
		}, "note.due", "missing", 1},
		{"a shard-wide entry too many", func(t *testing.T, raw *Tx) {
			must(t, system(raw).SetValue(noteByDue, wide(4, 3), nil))
		}, "note.due", "no record calls for it", 1},
		{"a shard-wide entry in the workspace", func(t *testing.T, raw *Tx) {
			must(t, raw.SetValue(noteByDue, wide(3, 3), nil))
		}, "note.due", "outside the shard's own range", 1},
		{"a record gone", func(t *testing.T, raw *Tx) { must(t, raw.DeleteValue(noteTable, noteKey(3))) }, "note.", "no record calls for it", 4},
		{"a record of no format", func(t *testing.T, raw *Tx) { must(t, raw.SetValue(noteTable, noteKey(9), []byte("?"))) }, "note", "format", 1},
		{"a record that is no JSON", func(t *testing.T, raw *Tx) {
			must(t, raw.SetValue(noteTable, noteKey(9), append(AppendHeader(nil, Header{Version: 1}), "{"...)))
		}, "note", "decode", 1},
		{"a record under another's key", func(t *testing.T, raw *Tx) {
			var stored []byte
			_, err := notes.Record(raw, noteKey(3), func(rec Record) error { stored = slices.Clone(rec); return nil })
			must(t, err)
			must(t, raw.SetValue(noteTable, noteKey(7), stored))
		}, "note", "primary key", 1},
		{"a header that does not follow", func(t *testing.T, raw *Tx) {
			var stored []byte
			_, err := notes.Record(raw, noteKey(3), func(rec Record) error { stored = slices.Clone(rec); return nil })
			must(t, err)
			stored[1] = 0
			must(t, raw.SetValue(noteTable, noteKey(3), stored))
		}, "note", "header", 1},
		{"a counter that is none", func(t *testing.T, raw *Tx) { must(t, raw.SetValue(countTable, nil, []byte("five"))) }, "count", "counter", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := damaged(t, func(raw *Tx) {
				home := raw.prefix
				c.damage(t, raw)
				raw.prefix = home
			})
			if r.Clean() {
				t.Fatal("found nothing")
			}
			if c.text != "" && !slices.ContainsFunc(r.Problems, func(p Problem) bool {
				return strings.HasPrefix(p.Table, c.table) && strings.Contains(p.Text, c.text) && p.Shard == 1
			}) {
				t.Errorf("%q of %s is not among the problems", c.text, c.table)
			}
			if r.Found != c.found || len(r.Problems) != int(c.found) {
				t.Errorf("found %d, want %d:", r.Found, c.found)
				for _, p := range r.Problems {
					t.Log(p)
				}
			}
		})
	}
}

func TestVerify_TwoRecordsWithOneUniqueEntry(t *testing.T) {
	t.Parallel()
	r := damaged(t, func(raw *Tx) {
		n := newNote(6)
		n.Ref = "ref-" + newNote(3).Hex
		insert(t, raw, n)
	})
	if r.Found != 1 || r.Problems[0].Table != "note.ref" {
		t.Errorf("found %v", r.Problems)
	}
}

func TestVerify_ListsABoundedNumber(t *testing.T) {
	t.Parallel()
	r := damaged(t, func(raw *Tx) {
		for i := range MaxProblems + 10 {
			must(t, raw.SetValue(99, Key(nil).U64(uint64(i)), nil))
		}
	})
	if r.Found != MaxProblems+10 || len(r.Problems) != MaxProblems {
		t.Errorf("found %d, listed %d", r.Found, len(r.Problems))
	}
}

func TestVerify_SchemaChecks(t *testing.T) {
	t.Parallel()
	s := memory(t)
	var want []string
	for shard := range Shard(3) {
		for _, id := range []ID{{1}, {2}} {
			tx := NewTx(s.State(), shard, id)
			n := newNote(int(shard) + 1)
			n.Due = 7
			insert(t, tx, n)
			apply(t, s, tx)
			must(t, tx.Close())
			want = append(want, id.String())
		}
	}
	directory := NewTx(s.State(), DirectoryShard, DirectoryID)
	insert(t, directory, newNote(1))
	apply(t, s, directory)
	must(t, directory.Close())

	var mu sync.Mutex // guards seen: shards are checked at the same time
	var seen, walked []string
	schema := &Schema{
		Tables: noteSchema.Tables,
		Rows:   noteSchema.Rows,
		Check: func(v *View, report func(Problem)) error {
			if v.Workspace() == DirectoryID {
				return nil
			}
			mu.Lock()
			seen = append(seen, v.Workspace().String())
			mu.Unlock()
			if got := listed(t, v, nil, status("open")); len(got) != 1 {
				t.Errorf("%s of shard %d lists %v", v.Workspace(), v.Shard(), got)
			}
			if v.Shard() == 2 {
				report(Problem{Table: "note", Text: "of shard 2"})
			}
			return nil
		},
		CheckStore: func(w *Walk, report func(Problem)) error {
			err := w.Workspaces(func(v *View) (bool, error) {
				walked = append(walked, v.Workspace().String())
				return true, nil
			})
			if _, found, e := w.Find(ID{2}); e != nil || !found {
				t.Errorf("find a workspace: %v, %v", found, e)
			}
			if _, found, e := w.Find(ID{3}); e != nil || found {
				t.Errorf("find no workspace: %v, %v", found, e)
			}
			if row, e := notes.Get(w.Directory(), noteKey(1)); e != nil || row == nil {
				t.Errorf("the directory's note: %v, %v", row, e)
			}
			if due, e := w.Workspace(2, SystemID).Has(noteByDue, Key(nil).U64(7)); e != nil || !due {
				t.Errorf("the shard's entry: %v, %v", due, e)
			}
			report(Problem{Shard: 9, Text: "of the store"})
			return err
		},
	}
	r := ok(Verify(t.Context(), s.State(), schema))(t)
	slices.Sort(seen)
	if !slices.Equal(seen, slices.Sorted(slices.Values(want))) || !slices.Equal(walked, want) {
		t.Errorf("checked %v and walked %v, want %v", seen, walked, want)
	}
	if r.Workspaces != 6 || r.Records != 7 || r.Found != 3 {
		t.Errorf("report %+v", r)
	}
	if p := r.Problems[0]; p.Shard != 2 || p.Workspace != (ID{1}) {
		t.Errorf("the first problem is %s", p)
	}
	if p := r.Problems[2]; p.Shard != 9 {
		t.Errorf("the last problem is %s", p)
	}

	fault := errors.New("check failed")
	schema.Check = func(*View, func(Problem)) error { return fault }
	if _, err := Verify(t.Context(), s.State(), schema); !errors.Is(err, fault) {
		t.Errorf("a failed check came back as %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Verify(ctx, s.State(), noteSchema); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled walk came back as %v", err)
	}
}

// Shards are verified at the same time. Problems are in the order of the shards, and keys of no shard are among them
// once, wherever they are.
func TestVerify_ManyShards(t *testing.T) {
	t.Parallel()
	s := memory(t)
	var want []string
	short := func(key ...byte) {
		must(t, s.State().Set(key, nil, pebble.NoSync))
		want = append(want, "state")
	}
	short(0)
	short(0, 1, 5)
	for shard := Shard(1); shard <= 40; shard++ {
		tx := NewTx(s.State(), shard, wsA)
		for i := 1; i <= 3; i++ {
			n := newNote(i)
			n.Labels, n.Due = []string{"x"}, uint64(i)
			insert(t, tx, n)
		}
		must(t, tx.SetNumber(countTable, nil, 3))
		if shard%3 == 0 {
			must(t, tx.SetValue(TableID(60+shard), []byte("k"), nil))
			want = append(want, fmt.Sprintf("id %d", 60+shard))
		}
		apply(t, s, tx)
		must(t, tx.Close())
		short(0, byte(shard), 255, 1)
	}
	short(0, 200)
	short(7)
	r := ok(Verify(t.Context(), s.State(), noteSchema))(t)
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.Table)
		if p.Table != "state" && p.Table != fmt.Sprintf("id %d", 60+p.Shard) {
			t.Errorf("%s", p)
		}
	}
	if !slices.Equal(got, want) || r.Found != int64(len(want)) {
		t.Errorf("%d found, problems %q, want %q", r.Found, got, want)
	}
	if r.Workspaces != 40 || r.Records != 120 {
		t.Errorf("report of %d workspaces and %d records", r.Workspaces, r.Records)
	}
}

func TestVerify_EmptyAndForeignKeys(t *testing.T) {
	t.Parallel()
	s := memory(t)
	if r := verifyClean(t, s); r.Records != 0 {
		t.Errorf("report %+v", r)
	}
	must(t, s.State().Set([]byte("short"), nil, pebble.NoSync))
	if r := ok(Verify(t.Context(), s.State(), noteSchema))(t); r.Found != 1 {
		t.Errorf("a key shorter than its prefix: %v", r.Problems)
	}
}

func TestDescribe_RefusesClashes(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*Schema{
		"an id twice":          {Rows: []RowSpec{Counter(noteByDue, "again")}, Tables: noteSchema.Tables},
		"no name":              {Rows: []RowSpec{{ID: 1}}},
		"unique and shardwide": {Tables: []TableSpec{&Table[note]{ID: 1, Name: "n", Indexes: []Index[note]{{ID: 2, Name: "i", Unique: true, ShardWide: true}}}}},
	} {
		if text, err := Describe(s); err == nil {
			t.Errorf("%s: described as %s", name, text)
		}
	}
	if _, err := Describe(noteSchema, noteSchema); err == nil {
		t.Error("one schema twice was accepted")
	}
}
