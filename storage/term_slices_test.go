package storage

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var slicedSegments = Segments{
	ID: 91, Name: "sliced index", Measure: func(b byte) uint64 { return uint64(b) },
	Dictionaries: []Dictionary{{Name: "words"}, {Name: "terms", Filtered: true}},
}

// slicedDocs write a segment whose docs have the given terms, the newest doc first.
func slicedDocs(t testing.TB, tx *Tx, number uint32, newest Doc, docs [][]uint64) Segment {
	t.Helper()
	b := slicedSegments.NewBuilder(len(docs))
	for ord, terms := range docs {
		for _, term := range terms {
			n, _ := b.Term(1, binary.BigEndian.AppendUint64(nil, term))
			b.Has(1, n, uint32(ord))
		}
		b.Doc(&SegmentDoc{Doc: newest - Doc(ord)})
	}
	rows, segment := b.Rows(number)
	for _, row := range rows {
		must(t, tx.SetValue(slicedSegments.ID, row.Fields, row.Value))
	}
	segment.Age = number
	return segment
}

// drawDocs draws docs of 0 to 12 terms, most of them among few terms.
func drawDocs(random *rand.Rand, n int) [][]uint64 {
	docs := make([][]uint64, n)
	for i := range docs {
		for range random.IntN(13) {
			term := uint64(random.IntN(10))
			if random.IntN(2) == 0 {
				term = uint64(random.IntN(1000))
			}
			docs[i] = append(docs[i], hashed(term))
		}
		slices.Sort(docs[i])
		docs[i] = slices.Compact(docs[i])
	}
	return docs
}

// hashed spreads small numbers over 64 bits (Vigna, SplitMix64).
func hashed(n uint64) uint64 {
	n += 0x9e37_79b9_7f4a_7c15
	n = (n ^ n>>30) * 0xbf58_476d_1ce4_e5b9
	n = (n ^ n>>27) * 0x94d0_49bb_1331_11eb
	return n ^ n>>31
}

func keepAll() *SegmentBlocks {
	unbounded := func(int64) bool { return true }
	return NewSegmentBlocks(1, unbounded, unbounded)
}

// wholeSlices reads the slices of a segment, a row at a time.
func wholeSlices(t testing.TB, tx *Tx, s *Segment) *TermSlices {
	t.Helper()
	r := slicedSegments.ReaderWith(tx, keepAll())
	defer func() { must(t, r.Close()) }()
	rows := (int(s.Docs) + docTermsPerRow - 1) / docTermsPerRow
	for range rows - 1 {
		if slices := ok(r.Slices(s, 1))(t); slices != nil {
			t.Fatal("slices are there before all rows are read")
		}
	}
	return ok(r.Slices(s, 1))(t)
}

// A search finds every doc that has enough terms, in order, and tells how many it has at most. Hardly any others pass.
func TestTermSlices_FindAllDocs(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	random := rand.New(rand.NewPCG(7, 7))
	docs := drawDocs(random, 2*blockDocs+groupDocs+5)
	segment := slicedDocs(t, tx, 1, 1_000_000, docs)
	sliced := wholeSlices(t, tx, &segment)
	extra, asked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		terms := slices.Compact(drawDocs(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "terms"), 1)), 1)[0])
		for n := rapid.IntRange(0, 30).Draw(t, "more"); len(terms) < n; {
			terms = append(terms, hashed(uint64(5000+len(terms))))
		}
		least, short := rapid.IntRange(1, 20).Draw(t, "least"), rapid.IntRange(1, 20).Draw(t, "short")
		from := uint32(0)
		search := sliced.Search(terms)
		shared := func(ord uint32) (n int) {
			for _, term := range docs[ord] {
				if slices.Contains(terms, term) {
					n++
				}
			}
			return n
		}
		for {
			ord, there := search.Next(least, short)
			if !there {
				ord = uint32(len(docs))
			}
			for at := from; at < ord; at++ {
				if n := shared(at); n > least || n == least && len(docs[at]) <= short {
					t.Fatalf("doc %d has %d terms, and is left out", at, n)
				}
			}
			if !there {
				return
			}
			if ord < from {
				t.Fatalf("doc %d comes after %d", ord, from)
			}
			atMost, all := search.Shared(ord, least)
			asked++
			switch n := shared(ord); {
			case n < least && atMost == 0:
			case n < least:
				extra++
			case n > atMost || all != len(docs[ord]):
				t.Fatalf("doc %d has at most %d terms of %d, and %d of %d", ord, atMost, all, n, len(docs[ord]))
			}
			from = ord + 1
			if rapid.IntRange(0, 99).Draw(t, "skip") == 0 {
				from += uint32(rapid.SampledFrom([]int{0, 1, 3, 70, blockDocs}).Draw(t, "docs"))
				search.Skip(from)
			}
			if rapid.IntRange(0, 99).Draw(t, "raise") == 0 {
				least++
			}
		}
	})
	if 20*extra > asked {
		t.Errorf("%d of %d docs pass without having the terms", extra, asked)
	}
}

// Hardly any doc passes that has as many of the terms as a short one needs, and too many in all.
func TestTermSlices_LongDocsNeedMore(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	terms := []uint64{hashed(1), hashed(2), hashed(3), hashed(4)}
	docs := make([][]uint64, 4000)
	for i := range docs {
		docs[i] = slices.Clone(terms[:2])
		for n := range i % 20 {
			docs[i] = append(docs[i], hashed(uint64(1000+20*i+n)))
		}
	}
	segment := slicedDocs(t, tx, 1, 1_000_000, docs)
	sliced := wholeSlices(t, tx, &segment)
	for short := 4; short <= 16; short++ {
		search := sliced.Search(terms)
		passed, long, longPassed := 0, 0, 0
		for _, d := range docs {
			if len(d) > short {
				long++
			}
		}
		for {
			ord, there := search.Next(2, short)
			if !there {
				break
			}
			if passed++; len(docs[ord]) > short {
				longPassed++
			}
		}
		if passed-longPassed != len(docs)-long {
			t.Errorf("%d of the %d docs with at most %d terms pass", passed-longPassed, len(docs)-long, short)
		}
		if all := longPassed == long; all != (short > mostShort) || !all && 3*longPassed > long {
			t.Errorf("%d of the %d docs with more than %d terms pass", longPassed, long, short)
		}
	}
}

func TestTranspose(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	var rows, columns [64]uint64
	for i := range rows {
		rows[i] = random.Uint64()
		for j := range 64 {
			columns[j] |= rows[i] >> j & 1 << i
		}
	}
	transpose(&rows)
	if rows != columns {
		t.Error("rows are not the columns")
	}
}

// A filter has eight bits for each term, none of which is among those of the number of terms.
func TestTermFilter_Bits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := termFilter(rapid.Uint64().Draw(t, "term"))
		if n := bits.OnesCount64(f[0]) + bits.OnesCount64(f[1]); n != docFilterProbes || f[1]>>56 != 0 {
			t.Errorf("%x has %d bits", f, n)
		}
	})
}

// Merges make the terms of docs from the postings, so that segments of earlier versions need none.
func TestTermSlices_OfEarlierVersions(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	random := rand.New(rand.NewPCG(3, 3))
	old, fresh := drawDocs(random, 700), drawDocs(random, 600)
	older, newer := slicedDocs(t, tx, 1, 10_000, old), slicedDocs(t, tx, 2, 20_000, fresh)
	must(t, tx.DeleteRows(slicedSegments.ID, segmentKey(1, termColumn)))
	if sliced := wholeSlices(t, tx, &older); sliced != nil {
		t.Error("a segment without terms of its docs has slices")
	}
	merge := slicedSegments.Merge(3, []Segment{older, newer})
	must(t, merge.Begin(tx, func(Doc) uint32 { return 0 }))
	for !merge.Done() {
		for _, row := range ok(merge.Step(tx, 1<<10))(t) {
			must(t, tx.SetValue(slicedSegments.ID, row.Fields, row.Value))
		}
	}
	merged := merge.Segment()
	want := slicedDocs(t, tx, 4, 20_000, slices.Concat(fresh, old))
	r := ok(slicedSegments.Reader(tx))(t)
	defer func() { must(t, r.Close()) }()
	if got := ok(r.allTerms(&merged))(t); !slices.Equal(got, ok(r.allTerms(&want))(t)) {
		t.Error("the terms of the docs are others after a merge")
	}
	for _, s := range []*Segment{&older, &newer, &merged} {
		must(t, r.EachPosting(s, ok(r.Columns(s))(t), 1, func([]byte, uint32, []byte) {}))
	}
}

// The verifier and readers notice rows that are not as they should be.
func TestTermSlices_Damaged(t *testing.T) {
	t.Parallel()
	key := binary.BigEndian.AppendUint32(segmentKey(1, termColumn), 1)
	for name, value := range map[string][]byte{"other terms": make([]byte, 88*docTermsBytes), "a short row": {1, 2, 3}, "no row": nil} {
		tx := segmentTx(t)
		segment := slicedDocs(t, tx, 1, 10_000, drawDocs(rand.New(rand.NewPCG(3, 3)), 600))
		must(t, tx.DeleteValue(slicedSegments.ID, key))
		if value != nil {
			must(t, tx.SetValue(slicedSegments.ID, key, value))
		}
		r := slicedSegments.ReaderWith(tx, keepAll())
		columns, err := r.Columns(&segment)
		if err == nil {
			err = r.EachPosting(&segment, columns, 1, func([]byte, uint32, []byte) {})
		}
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%s: verified with %v", name, err)
		}
		if _, err := r.Slices(&segment, 2); len(value) != 88*docTermsBytes && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: read with %v", name, err)
		}
		must(t, r.Close())
	}
}

// A search for a title of two to seven words among 100,000 titles.
func BenchmarkSliceSearch(b *testing.B) {
	tx := segmentTx(b)
	random := rand.New(rand.NewPCG(5, 5))
	title := func() (terms []uint64) {
		for range 2 + random.IntN(6) {
			terms = append(terms, hashed(uint64(math.Exp(random.Float64()*math.Log(25_000))))) // nearly Zipf's law
		}
		slices.Sort(terms)
		return slices.Compact(terms)
	}
	docs := make([][]uint64, 100_000)
	for i := range docs {
		docs[i] = title()
	}
	segment := slicedDocs(b, tx, 1, 1_000_000, docs)
	sliced := wholeSlices(b, tx, &segment)
	b.ResetTimer()
	passed := 0
	for b.Loop() {
		terms := title()
		least := (len(terms) + 1) / 2
		search := sliced.Search(terms)
		for {
			ord, there := search.Next(least, 2*least)
			if !there {
				break
			}
			search.Shared(ord, least)
			passed++
		}
	}
	b.ReportMetric(float64(passed)/float64(b.N), "docs/op")
}
