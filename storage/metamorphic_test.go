package storage

import (
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// The model is a map of notes and a map of counters; the real thing is a table
// with six indexes in an open batch over a database. After any commands in any order they
// agree, and the verifier finds no fault.
func TestTable_AgreesWithModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		s, err := Open(Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{s: s, tx: NewTx(s.State(), 1, wsA), open: newModel(), applied: newModel()}
		defer func() {
			if err := m.tx.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		t.Repeat(rapid.StateMachineActions(m))
	})
}

type model struct {
	notes    map[int]note
	versions map[int]uint64
	counts   map[byte]uint64
}

func newModel() model {
	return model{notes: map[int]note{}, versions: map[int]uint64{}, counts: map[byte]uint64{}}
}

func (m model) clone() model {
	return model{notes: maps.Clone(m.notes), versions: maps.Clone(m.versions), counts: maps.Clone(m.counts)}
}

// machine is a state machine of rapid. Its methods are the possible next commands.
type machine struct {
	s       *Store
	tx      *Tx
	open    model // with the writes of the open batch
	applied model
	mark    *Mark
	marked  model
}

const people = 12 // notes have few numbers, so that commands meet each other

func drawNote(t *rapid.T, n int) *note {
	v := newNote(n)
	v.Status = rapid.SampledFrom([]string{"open", "done", "op"}).Draw(t, "status")
	v.Owner = rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "owner")
	v.Text = rapid.String().Draw(t, "text")
	if up := rapid.IntRange(0, people).Draw(t, "parent"); up > 0 {
		v.Up = noteID(up).String()
	}
	v.Labels = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 4).Draw(t, "labels")
	if v.Labels == nil {
		v.Labels = []string{}
	}
	v.Due = rapid.Uint64Range(0, 3).Draw(t, "due")
	v.Hidden = rapid.Bool().Draw(t, "hidden")
	if rapid.Bool().Draw(t, "has ref") {
		v.Ref = "ref-" + v.Hex
	}
	return v
}

func (m *machine) Put(t *rapid.T) {
	n := rapid.IntRange(1, people).Draw(t, "number")
	v := drawNote(t, n)
	row, err := notes.Get(m.tx, noteKey(n))
	if err != nil {
		t.Fatal(err)
	}
	if _, there := m.open.notes[n]; there != (row != nil) {
		t.Fatalf("note %d: read %v, modeled %v", n, row, there)
	}
	if row == nil {
		_, err = notes.Insert(m.tx, v)
	} else {
		_, err = notes.Update(m.tx, row, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.open.notes[n] = *v
	m.open.versions[n]++
}

func (m *machine) Delete(t *rapid.T) {
	n := rapid.IntRange(1, people).Draw(t, "number")
	row, err := notes.Get(m.tx, noteKey(n))
	if err != nil {
		t.Fatal(err)
	}
	if row == nil {
		t.Skip("none there")
	}
	if err := notes.Delete(m.tx, row); err != nil {
		t.Fatal(err)
	}
	delete(m.open.notes, n)
	delete(m.open.versions, n)
}

func (m *machine) Count(t *rapid.T) {
	b := rapid.ByteRange(0, 2).Draw(t, "counter")
	m.open.counts[b]++
	if err := m.tx.SetNumber(countTable, []byte{b}, m.open.counts[b]); err != nil {
		t.Fatal(err)
	}
}

// Uncount deletes the counters that begin with a byte, or all of them.
func (m *machine) Uncount(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
		m.open.counts = map[byte]uint64{}
		if err := m.tx.DeleteRows(countTable, nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	b := rapid.ByteRange(0, 2).Draw(t, "counter")
	delete(m.open.counts, b)
	if err := m.tx.DeleteRows(countTable, []byte{b}); err != nil {
		t.Fatal(err)
	}
}

// Erase deletes the workspace: its records first, since one index of theirs lies
// outside its range.
func (m *machine) Erase(t *rapid.T) {
	if !rapid.Bool().Draw(t, "really") || rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
		t.Skip("not now")
	}
	for n := range m.open.notes {
		row, err := notes.Get(m.tx, noteKey(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := notes.Delete(m.tx, row); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.tx.DeleteWorkspace(); err != nil {
		t.Fatal(err)
	}
	if m.tx.Dirty() != ^DirtyFlags(0) {
		t.Fatalf("touched %b", m.tx.Dirty())
	}
	m.open = newModel()
}

func (m *machine) Mark(*rapid.T) {
	mark := m.tx.Mark()
	m.mark, m.marked = &mark, m.open.clone()
}

func (m *machine) Rollback(t *rapid.T) {
	if m.mark == nil {
		t.Skip("no mark")
	}
	before := m.mark
	if err := m.tx.Rollback(*before); err != nil {
		t.Fatal(err)
	}
	m.open, m.mark = m.marked, nil
	if m.tx.Wrote(*before) || m.tx.Dirty() != before.dirty || m.tx.Ops() != int(before.count) {
		t.Fatalf("after a rollback: %d bytes, touched %b, %d ops; marked %+v", m.tx.Size(), m.tx.Dirty(), m.tx.Ops(), *before)
	}
}

// Apply commits the open batch from its bytes, as a replica does, and checks the state on
// disk.
func (m *machine) Apply(t *rapid.T) {
	b := m.s.State().NewBatch()
	if err := b.SetRepr(slices.Clone(m.tx.Repr())); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	m.tx.Reset()
	m.mark = nil
	m.applied = m.open.clone()
	report, err := Verify(t.Context(), m.s.State(), noteSchema)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Errorf("verify: %s", p)
	}
	if int(report.Records) != len(m.applied.notes) || int(report.Rows) != len(m.applied.counts) {
		t.Fatalf("verified %+v, want %d records and %d rows", report, len(m.applied.notes), len(m.applied.counts))
	}
}

// Discard drops the open batch.
func (m *machine) Discard(*rapid.T) {
	m.tx.Reset()
	m.open, m.mark = m.applied.clone(), nil
}

func (m *machine) List(t *rapid.T) {
	matches, says := drawMatches(t)
	if len(matches) > 0 { // parents may be gone, and a list names records
		matches = append(matches, AnyOf(status("open"), status("done"), status("op")))
	}
	var after []byte
	from := people + 1
	if rapid.Bool().Draw(t, "from the middle") {
		from = rapid.IntRange(0, people).Draw(t, "after")
		after = noteKey(from)
	}
	limit := rapid.IntRange(1, people).Draw(t, "limit")
	var want, got []int
	for n := from - 1; n > 0 && len(want) < limit; n-- {
		if v, there := m.open.notes[n]; there && says(m.open, n, v) {
			want = append(want, n)
		}
	}
	err := notes.List(m.tx, matches, after, func(pk []byte, rec Record) (bool, error) {
		n := int(descID(pk)[3])
		row, err := notes.Decode(rec)
		if err != nil {
			return false, err
		}
		if v := m.open.notes[n]; row.Value.Text != v.Text || row.Version != m.open.versions[n] {
			t.Errorf("listed %+v, modeled version %d of %+v", row, m.open.versions[n], v)
		}
		got = append(got, n)
		return len(got) < limit, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("listed %v, want %v", got, want)
	}
}

type says func(m model, n int, v note) bool

func drawMatches(t *rapid.T) ([]Match, says) {
	var matches []Match
	var all []says
	for range rapid.IntRange(0, 3).Draw(t, "matches") {
		match, s := drawMatch(t, 2)
		matches, all = append(matches, match), append(all, s)
	}
	return matches, func(m model, n int, v note) bool {
		return !slices.ContainsFunc(all, func(s says) bool { return !s(m, n, v) })
	}
}

func drawMatch(t *rapid.T, depth int) (Match, says) {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		s := rapid.SampledFrom([]string{"open", "done", "op", "o"}).Draw(t, "status")
		return status(s), func(_ model, _ int, v note) bool { return v.Status == s }
	case 1:
		s := rapid.SampledFrom([]string{"x", "y", "z", "w"}).Draw(t, "label")
		return label(s), func(_ model, _ int, v note) bool { return slices.Contains(v.Labels, s) }
	case 2:
		up := noteID(rapid.IntRange(1, people).Draw(t, "parent"))
		return Equal(noteByParent, Key(nil).DescID(up)), func(_ model, _ int, v note) bool { return v.Up == up.String() }
	case 3:
		return Referenced(noteByParent), func(m model, n int, _ note) bool {
			for _, v := range m.notes {
				if v.Up == noteID(n).String() {
					return true
				}
			}
			return false
		}
	case 4:
		if depth > 0 {
			var parts []Match
			var any []says
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				p, s := drawMatch(t, depth-1)
				parts, any = append(parts, p), append(any, s)
			}
			return AnyOf(parts...), func(m model, n int, v note) bool {
				return slices.ContainsFunc(any, func(s says) bool { return s(m, n, v) })
			}
		}
	}
	return Nothing(), func(model, int, note) bool { return false }
}

// Check runs after every step.
func (m *machine) Check(t *rapid.T) {
	for b := range byte(3) {
		want := m.open.counts[b] // 0 when it was deleted, as a row that is not there reads
		if n, err := m.tx.Number(countTable, []byte{b}); err != nil || n != want {
			t.Fatalf("counter %d: %d, %v; want %d", b, n, err, want)
		}
	}
	for n, v := range m.open.notes {
		pk, err := notes.Lookup(m.tx, noteByRef, Key(nil).Str("ref-"+v.Hex))
		if err != nil || (pk != nil) != (v.Ref != "") {
			t.Fatalf("note %d with the ref %q: found %x, %v", n, v.Ref, pk, err)
		}
	}
}
