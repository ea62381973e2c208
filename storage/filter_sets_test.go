package storage

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// filterSample are sets of few and of many records, with a plain model of them.
type filterSample struct {
	f     *FilterSets
	has   map[string]map[uint32]bool
	names []Match
}

const sampleIndex, sampleRecords TableID = 11, 10

func newFilterSample(all int) *filterSample {
	spec := &FilterSpec{Table: sampleRecords, Indexes: []TableID{sampleIndex}, Sleeps: func(Record) int64 { return 0 }}
	s := &filterSample{f: NewFilterSets(spec, 1), has: map[string]map[uint32]bool{}}
	for ord := range all {
		o, _ := s.f.reach(Doc(10 * (ord + 1)))
		s.f.record(o, 0)
	}
	return s
}

// add makes a set of about one in share records.
func (s *filterSample) add(t *rapid.T, all, share int) {
	value := Key(nil).U64(uint64(len(s.names)))
	has := map[uint32]bool{}
	step := uint32(rapid.IntRange(1, 2*share-1).Draw(t, "step"))
	for ord := uint32(rapid.IntRange(0, share).Draw(t, "first")); ord < uint32(all); ord += step {
		s.f.change(sampleIndex, value, ord, true)
		has[ord] = true
	}
	for range rapid.IntRange(0, 5).Draw(t, "removed") {
		ord := uint32(rapid.IntRange(0, all-1).Draw(t, "gone"))
		s.f.change(sampleIndex, value, ord, false)
		delete(has, ord)
	}
	m := Equal(sampleIndex, value)
	s.names = append(s.names, m)
	s.has[string(value)] = has
}

func (s *filterSample) matches(m Match, ord uint32) bool {
	if m.kind == matchAny {
		return slices.ContainsFunc(m.any, func(part Match) bool { return s.matches(part, ord) })
	}
	return s.has[string(m.fields)][ord]
}

func TestFilterSets_SelectWhatTheModelSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SampledFrom([]int{1, 63, 64, 65, 500, 9000}).Draw(t, "all")
		s := newFilterSample(all)
		for range rapid.IntRange(1, 6).Draw(t, "sets") {
			s.add(t, all, rapid.SampledFrom([]int{1, 2, 5, 300}).Draw(t, "share"))
		}
		one := func(name string) Match {
			m := rapid.SampledFrom(s.names).Draw(t, name)
			if rapid.Bool().Draw(t, "union") {
				m = AnyOf(m, rapid.SampledFrom(s.names).Draw(t, "other"))
			}
			return m
		}
		var q FilterQuery
		for range rapid.IntRange(0, 3).Draw(t, "matches") {
			q.Matches = append(q.Matches, one("match"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "without") {
			w := Without{Match: one("out")}
			if rapid.Bool().Draw(t, "unless") {
				w.Unless = []Match{one("in")}
			}
			q.Without = append(q.Without, w)
		}
		q.Enough = rapid.SampledFrom([]int{0, 0, 1, 7, 100000}).Draw(t, "enough")
		var after []byte
		below := all
		if rapid.Bool().Draw(t, "cursor") {
			most := Doc(rapid.IntRange(0, 10*all+20).Draw(t, "after"))
			after = append(DocKey(nil, most), make([]byte, 8)...)
			below = min(all, int(most/10))
		}
		var want []Doc
		for ord := below - 1; ord >= 0; ord-- {
			in := true
			for _, m := range q.Matches {
				in = in && s.matches(m, uint32(ord))
			}
			for _, w := range q.Without {
				unless := slices.ContainsFunc(w.Unless, func(m Match) bool { return s.matches(m, uint32(ord)) })
				in = in && (unless || !s.matches(w.Match, uint32(ord)))
			}
			if in && (q.Enough == 0 || len(want) < q.Enough) {
				want = append(want, Doc(10*(ord+1)))
			}
		}
		selected := s.f.run(&q, after)
		defer func() { _ = selected.Close() }()
		got := []Doc{}
		leap := Doc(rapid.SampledFrom([]int{1, 1, 137}).Draw(t, "leap"))
		most := ^Doc(0)
		for {
			doc, ok, _ := selected.Next(most)
			if !ok {
				break
			}
			got = append(got, doc)
			most = max(doc, leap) - leap
		}
		var expected []Doc
		most = ^Doc(0)
		for _, doc := range want {
			if doc <= most {
				expected = append(expected, doc)
				most = max(doc, leap) - leap
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(append([]Doc{}, expected...)) {
			t.Fatalf("selected %d, want %d", len(got), len(expected))
		}
	})
}

func TestFilterSets_WakeWhatSlept(t *testing.T) {
	t.Parallel()
	s := newFilterSample(5)
	s.f.record(1, 100)
	s.f.record(2, 50)
	s.f.record(3, 70)
	s.f.record(3, 0)
	asleep := func() (all []uint32) {
		for ord := range uint32(5) {
			if s.f.sleep.asleep.has(ord) {
				all = append(all, ord)
			}
		}
		return all
	}
	if got := asleep(); !slices.Equal(got, []uint32{1, 2}) {
		t.Errorf("asleep: %v", got)
	}
	s.f.sleep.wake(60)
	if got := asleep(); !slices.Equal(got, []uint32{1}) {
		t.Errorf("asleep at 60: %v", got)
	}
	s.f.record(2, 55) // over already
	s.f.sleep.wake(100)
	if got := asleep(); len(got) > 0 || s.f.sleep.due(1<<40) {
		t.Errorf("asleep at 100: %v", got)
	}
}

// A batch that the sets can't follow, or did not see, ends them: they would not be exact.
func TestFilterSets_BreakWhenABatchIsMissing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		from, to uint64
		read     uint64
		broken   bool
	}{
		{"the next one", 5, 7, 7, false},
		{"one that counts already", 3, 5, 5, false},
		{"one that is not applied yet", 5, 7, 5, false},
		{"a gap before it", 6, 7, 7, true},
		{"none was noted", 3, 5, 7, true},
	} {
		s := newFilterSample(3)
		s.f.version = 5
		s.f.ready.Store(true)
		s.f.noted.push(notedBatch{row.from, row.to, nil})
		s.f.catchUp(row.read, 1<<20)
		if broken := s.f.Broken() || s.f.version < row.read; broken != row.broken {
			t.Errorf("%s: broken is %t", row.name, broken)
		}
	}
}
