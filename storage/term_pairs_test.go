package storage

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// pairsOf makes the TermPairs of a segment of slicedSegments.
func pairsOf(t testing.TB, tx *Tx, s *Segment, pause func(int64) error) (*TermPairs, error) {
	t.Helper()
	r := ok(slicedSegments.Reader(tx))(t)
	defer func() { must(t, r.Close()) }()
	return r.makePairs(s, 1, pause)
}

func noPause(int64) error { return nil }

// sharedTerms counts the terms that two sets in order have in common.
func sharedTerms(a, b []uint64) (n int) {
	for _, t := range a {
		if _, has := slices.BinarySearch(b, t); has {
			n++
		}
	}
	return n
}

// Each doc that has half of a search's terms, where these are half of its own, is found, whatever number is needed.
func TestTermPairs_FindWhatSharesHalf(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 7))
		docs := drawDocs(random, 1500)
		docs = append(docs, docs[:40]...)
		for range 20 { // of many terms, in common with each other
			long := []uint64(nil)
			for range 60 {
				long = append(long, hashed(uint64(random.IntN(80))))
			}
			slices.Sort(long)
			docs = append(docs, slices.Compact(long))
		}
		tx := segmentTx(t)
		s := slicedDocs(t, tx, 1, 1<<20, docs)
		p := ok(pairsOf(t, tx, &s, noPause))(t)
		searches := append(drawDocs(random, 60), docs[len(docs)-30:]...)
		for _, terms := range searches {
			n := len(terms)
			for least := max(1, (n+1)/2); least <= n; least++ {
				checkPairs(t, p, docs, terms, least)
			}
		}
	}
}

// checkPairs compares a search with all docs, some of which it is told to leave out.
func checkPairs(t *testing.T, p *TermPairs, docs [][]uint64, terms []uint64, least int) {
	t.Helper()
	shuffled := slices.Clone(terms)
	rand.New(rand.NewPCG(uint64(least), 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	q := p.Search(shuffled)
	last, skipped := -1, 0
	for {
		ord, ok := q.Next(least)
		end := len(docs)
		if ok {
			end = int(ord)
		}
		if end <= last {
			t.Fatalf("doc %d comes after %d", ord, last)
		}
		for i := max(last+1, skipped); i < end; i++ {
			if n := sharedTerms(terms, docs[i]); n >= least && 2*n >= len(docs[i]) {
				t.Fatalf("doc %d with %d terms, %d of them among the %d of a search for %d, is not found", i, len(docs[i]), n, len(terms), least)
			}
		}
		if !ok {
			return
		}
		n, all := q.Shared(ord)
		if all != len(docs[ord]) || n < sharedTerms(terms, docs[ord]) {
			t.Fatalf("doc %d shares %d of %d terms, want %d of %d", ord, n, all, sharedTerms(terms, docs[ord]), len(docs[ord]))
		}
		last = int(ord)
		if last%5 == 0 {
			skipped = last + 30
			q.Skip(uint32(skipped))
		}
	}
}

// A search looks at few docs beside those that share enough.
func TestTermPairs_FindLittleElse(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	docs := make([][]uint64, 20_000)
	for i := range docs {
		for range 4 + random.IntN(3) {
			docs[i] = append(docs[i], hashed(uint64(random.IntN(2000))))
		}
		slices.Sort(docs[i])
		docs[i] = slices.Compact(docs[i])
	}
	tx := segmentTx(t)
	s := slicedDocs(t, tx, 1, 1<<20, docs)
	p := ok(pairsOf(t, tx, &s, noPause))(t)
	looked, found := 0, 0
	for _, terms := range docs[:500] {
		least := max(1, (len(terms)+1)/2)
		q := p.Search(terms)
		for ord, ok := q.Next(least); ok; ord, ok = q.Next(least) {
			looked++
			if n, _ := q.Shared(ord); n >= least {
				found++
			}
		}
	}
	if found < 500 || looked > 4*found {
		t.Errorf("searches look at %d docs to find %d", looked, found)
	}
	if perDoc := p.bytes() / int64(len(docs)); perDoc > 60 {
		t.Errorf("%d bytes for each doc of 4 to 6 terms", perDoc)
	}
}

func TestTermPairs_NoDocsAndNoTerms(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	s := slicedDocs(t, tx, 1, 9, [][]uint64{nil, {hashed(1)}, nil})
	p := ok(pairsOf(t, tx, &s, noPause))(t)
	if _, ok := p.Search(nil).Next(1); ok {
		t.Error("a search for nothing finds a doc")
	}
	if ord, ok := p.Search([]uint64{hashed(1)}).Next(1); !ok || ord != 1 {
		t.Errorf("found doc %d, %v, want 1", ord, ok)
	}
}

// Making them ends with the error of the function that may wait, wherever that comes, and says how much memory it has.
func TestTermPairs_GiveUp(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	docs := drawDocs(rand.New(rand.NewPCG(1, 1)), 9000)
	s := slicedDocs(t, tx, 1, 1<<20, docs)
	calls, most := 0, int64(0)
	p := ok(pairsOf(t, tx, &s, func(bytes int64) error { calls, most = calls+1, max(most, bytes); return nil }))(t)
	if most < p.bytes() {
		t.Errorf("it says that it takes %d bytes, and takes %d in the end", most, p.bytes())
	}
	enough := errors.New("enough")
	for end := range calls {
		n := 0
		if p, err := pairsOf(t, tx, &s, func(int64) error {
			if n++; n > end {
				return enough
			}
			return nil
		}); !errors.Is(err, enough) || p != nil {
			t.Fatalf("after %d calls: %v", end, err)
		}
	}
	large := s
	large.Docs = 1 << ordBits
	if _, err := pairsOf(t, tx, &large, noPause); !errors.Is(err, errManyPairs) {
		t.Errorf("a segment that is too large: %v", err)
	}
}

func TestTermPairs_RefuseBrokenRows(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	s := slicedDocs(t, tx, 1, 1<<20, drawDocs(rand.New(rand.NewPCG(1, 1)), 100))
	few := s
	few.Docs = 50
	if _, err := pairsOf(t, tx, &few, noPause); !errors.Is(err, ErrFormat) {
		t.Errorf("ordinals beyond the docs: %v", err)
	}
	b := slicedSegments.NewBuilder(1)
	n, _ := b.Term(0, []byte("short"))
	b.Has(0, n, 0)
	b.Doc(&SegmentDoc{Doc: 1})
	rows, short := b.Rows(2)
	for _, row := range rows {
		must(t, tx.SetValue(slicedSegments.ID, row.Fields, row.Value))
	}
	r := ok(slicedSegments.Reader(tx))(t)
	if _, err := r.makePairs(&short, 0, noPause); !errors.Is(err, ErrFormat) {
		t.Errorf("a term that is no hash: %v", err)
	}
	must(t, r.Close())
}

func BenchmarkTermPairs(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	docs := make([][]uint64, 100_000)
	frequency := rand.NewZipf(random, 1.07, 3, 24_999)
	for i := range docs {
		for range 2 + random.IntN(6) {
			docs[i] = append(docs[i], hashed(50+frequency.Uint64()))
		}
		slices.Sort(docs[i])
		docs[i] = slices.Compact(docs[i])
	}
	tx := segmentTx(b)
	s := slicedDocs(b, tx, 1, 1<<20, docs)
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			ok(pairsOf(b, tx, &s, noPause))(b)
		}
	})
	p := ok(pairsOf(b, tx, &s, noPause))(b)
	sliced := wholeSlices(b, tx, &s)
	b.Run("search", func(b *testing.B) {
		looked := 0
		for i := 0; b.Loop(); i++ {
			terms := docs[i%len(docs)]
			least := max(1, (len(terms)+1)/2)
			q := p.Search(terms)
			for ord, ok := q.Next(least); ok; ord, ok = q.Next(least) {
				looked++
				q.Shared(ord)
			}
		}
		b.ReportMetric(float64(looked)/float64(b.N), "docs/op")
		b.ReportMetric(float64(p.bytes())/float64(len(docs)), "B/doc")
	})
	b.Run("slices", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			terms := docs[i%len(docs)]
			least := max(1, (len(terms)+1)/2)
			q := sliced.Search(terms)
			for ord, ok := q.Next(least, 2*least); ok; ord, ok = q.Next(least, 2*least) {
				q.Shared(ord, least)
			}
		}
	})
}
