package storage

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// withSegmentCache opens a store in memory that keeps rows of segments.
func withSegmentCache(t testing.TB, bytes int64) *Store {
	t.Helper()
	s := ok(Open(Config{Dir: "store", FS: vfs.NewMem(), CacheBytes: 8 << 20, SegmentBytes: bytes, SegmentTable: testSegments.ID, Logger: quiet}))(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// segmentView reads a workspace of shard 1 as of now, through the cache.
func segmentView(t testing.TB, s *Store, workspace ID) (v *View, release func()) {
	t.Helper()
	moment, snapshot := s.Segments().Now(), s.State().NewSnapshot()
	view := NewView(snapshot, 1, workspace)
	view.RecallSegments(moment)
	return &view, func() { must(t, snapshot.Close()) }
}

// findTerm reads a list of segment 3 through a view.
func findTerm(t testing.TB, v *View, segment uint32, term int, from uint32) foundList {
	t.Helper()
	r := ok(testSegments.Reader(v))(t)
	defer func() { must(t, r.Close()) }()
	return readList(t, r, segment, numberedTerm(term), from)
}

// checkSegmentCache fails the test unless the cache's counts are those of its blocks.
func checkSegmentCache(t testing.TB, c *SegmentCache) {
	t.Helper()
	blocks, sum := 0, int64(0)
	for i := range c.parts {
		for run, r := range c.parts[i].runs {
			for at, b := range r.blocks {
				if b.run != run || c.clock[b.at] != b || at > 0 && bytes.Compare(r.blocks[at-1].last, b.last) >= 0 {
					t.Fatal("the clock and the runs disagree")
				}
				blocks, sum = blocks+1, sum+b.size
			}
		}
	}
	if blocks != len(c.clock) || sum != c.Use().Bytes || sum > c.most {
		t.Fatalf("%d blocks of %d bytes are kept; counted are %d and %d, at most %d", blocks, sum, len(c.clock), c.Use().Bytes, c.most)
	}
}

// Queries find the same through the cache as without it, whichever rows were read before, and whether there is memory
// for all of them or for some.
func TestSegmentCache_FindsTheSame(t *testing.T) {
	t.Parallel()
	const terms, docs, least = 120, 5000, 1 << 19
	type lookUp struct {
		segment uint32
		term    int
		from    uint32
	}
	caches := map[int64]*Store{}
	for _, memory := range []int64{least, 1 << 20, 1 << 30} {
		s := withSegmentCache(t, memory)
		commit(t, s, wsA, func(tx *Tx) {
			for _, number := range []uint32{3, 4} {
				manyTerms(t, tx, number, terms, docs+int(number))
			}
		})
		caches[memory] = s
	}
	segments := map[uint32]Segment{3: {Number: 3, Docs: docs + 3}, 4: {Number: 4, Docs: docs + 4}}
	want := map[lookUp]foundList{}
	for memory, s := range caches { // all lists from the first to the last, twice: more than the least memory takes
		v, release := segmentView(t, s, wsA)
		for range 2 {
			for term := range terms {
				findTerm(t, v, 3, 2*term+1, 0)
				findTerm(t, v, 4, 2*term+1, 0)
			}
		}
		release()
		checkSegmentCache(t, s.Segments())
		if u := s.Segments().Use(); u.Hits == 0 || memory == least && u.Bytes < least/2 || memory > least && u.Bytes <= least {
			t.Errorf("with %d bytes of memory %+v", memory, u)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := caches[rapid.SampledFrom([]int64{least, 1 << 20, 1 << 30}).Draw(rt, "memory")]
		v, release := segmentView(t, s, wsA)
		defer release()
		plain := NewView(s.State(), 1, wsA)
		for range rapid.IntRange(1, 40).Draw(rt, "look-ups") {
			at := lookUp{
				rapid.SampledFrom([]uint32{3, 4}).Draw(rt, "segment"),
				rapid.IntRange(0, 2*terms+1).Draw(rt, "term"), // the odd ones are there
				rapid.SampledFrom([]uint32{0, 0, 300, 4400}).Draw(rt, "from"),
			}
			if _, known := want[at]; !known {
				want[at] = findTerm(t, &plain, at.segment, at.term, at.from)
			}
			if got := findTerm(t, v, at.segment, at.term, at.from); got != want[at] {
				rt.Fatalf("%+v is %+v, want %+v", at, got, want[at])
			}
			of := segments[at.segment]
			with, without := ok(testSegments.Reader(v))(t), ok(testSegments.Reader(&plain))(t)
			prefix := numberedTerm(at.term)[:rapid.IntRange(4, 8).Draw(rt, "prefix")]
			if got, want := termsFrom(t, with, at.segment, prefix), termsFrom(t, without, at.segment, prefix); got != want {
				rt.Fatalf("terms with prefix %x are %+v, want %+v", prefix, got, want)
			}
			ord := uint32(rapid.IntRange(0, int(of.Docs)-1).Draw(rt, "ordinal"))
			if got, want := ok(with.DocColumn(&of).Doc(ord))(t), ok(without.DocColumn(&of).Doc(ord))(t); got != want {
				rt.Fatalf("ordinal %d is doc %d, want %d", ord, got, want)
			}
			if got, want := ok(with.Lengths(&of, nil))(t), ok(without.Lengths(&of, nil))(t); !bytes.Equal(got, want) {
				rt.Fatal("the lengths differ")
			}
			must(t, with.Close())
			must(t, without.Close())
		}
		checkSegmentCache(t, s.Segments())
	})
}

// termsFound are the terms with a prefix.
type termsFound struct{ terms, postings, sum int }

func termsFrom(t testing.TB, r *SegmentReader, segment uint32, prefix []byte) (found termsFound) {
	t.Helper()
	must(t, r.Terms(segment, 2, prefix, func(int) bool { return true }, func(term []byte, first bool, _ int, ords []uint32) bool {
		if first {
			found.terms++
		}
		found.postings += len(ords)
		for _, ord := range ords {
			found.sum += int(ord) + int(term[7])
		}
		return true
	}))
	return found
}

// A workspace is replaced, and has another segment of the same number. Readers of before see the old one, readers
// of after it the new one, also while both read in turns.
func TestSegmentCache_Replaced(t *testing.T) {
	t.Parallel()
	replace := map[string]func(t *testing.T, s *Store, write func(*Tx)){
		"in two batches": func(t *testing.T, s *Store, write func(*Tx)) {
			commit(t, s, wsA, func(tx *Tx) { must(t, tx.DeleteWorkspace()) })
			commit(t, s, wsA, write)
		},
		"in one batch": func(t *testing.T, s *Store, write func(*Tx)) {
			commit(t, s, wsA, func(tx *Tx) {
				must(t, tx.DeleteWorkspace())
				write(tx)
			})
		},
		"all rows of the table": func(t *testing.T, s *Store, write func(*Tx)) {
			commit(t, s, wsA, func(tx *Tx) {
				must(t, tx.DeleteRows(testSegments.ID, nil))
				write(tx)
			})
		},
		"with the shard": func(t *testing.T, s *Store, write func(*Tx)) {
			must(t, s.ReplaceState(1, func() error {
				if s.Segments().Now() != (SegmentMoment{}) {
					t.Error("there is a moment while the shard is replaced")
				}
				commit(t, s, wsA, func(tx *Tx) {
					must(t, tx.DeleteWorkspace())
					write(tx)
				})
				return nil
			}))
		},
	}
	for name, replace := range replace {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withSegmentCache(t, 1<<24)
			for _, w := range []ID{wsA, {6: 0x70, 15: 9}} {
				commit(t, s, w, func(tx *Tx) { manyTerms(t, tx, 3, 80, 400) })
			}
			before, release := segmentView(t, s, wsA)
			defer release()
			old := findTerm(t, before, 3, 71, 0)
			kept := findTerm(t, before, 3, 1, 0)
			other, releaseOther := segmentView(t, s, ID{6: 0x70, 15: 9})
			defer releaseOther()
			findTerm(t, other, 3, 71, 0)

			replace(t, s, func(tx *Tx) { manyTerms(t, tx, 3, 80, 300) })
			if s.Segments().Use().Bytes == 0 && name != "with the shard" {
				t.Error("rows of another workspace were dropped")
			}
			plain := NewView(s.State(), 1, wsA)
			want := findTerm(t, &plain, 3, 71, 0)
			if want == old {
				t.Fatal("both segments have the same list")
			}
			for range 2 {
				if got := findTerm(t, before, 3, 71, 0); got != old {
					t.Errorf("a reader of before finds %+v, want %+v", got, old)
				}
				if got := findTerm(t, before, 3, 1, 0); got != kept {
					t.Errorf("a reader of before finds %+v, want %+v", got, kept)
				}
				after, release := segmentView(t, s, wsA)
				if got := findTerm(t, after, 3, 71, 0); got != want {
					t.Errorf("a reader of after finds %+v, want %+v", got, want)
				}
				release()
			}
			checkSegmentCache(t, s.Segments())
		})
	}
}

// The rows of one segment are deleted when it counts no longer: nothing else is dropped for that. Nor is it for
// deletions in other tables.
func TestSegmentCache_DeletedSegment(t *testing.T) {
	t.Parallel()
	s := withSegmentCache(t, 1<<24)
	commit(t, s, wsA, func(tx *Tx) {
		manyTerms(t, tx, 3, 80, 400)
		manyTerms(t, tx, 4, 80, 300)
	})
	before, release := segmentView(t, s, wsA)
	defer release()
	want := findTerm(t, before, 4, 71, 0)
	bytes := s.Segments().Use().Bytes
	commit(t, s, wsA, func(tx *Tx) {
		must(t, tx.DeleteRows(testSegments.ID, SegmentPrefix(3)))
		must(t, tx.DeleteRows(testSegments.ID-1, nil))
		must(t, tx.DeleteRows(testSegments.ID+1, nil))
	})
	if got := s.Segments().Use().Bytes; got != bytes {
		t.Errorf("%d bytes are kept, want %d", got, bytes)
	}
	if hits := s.Segments().Use().Hits; findTerm(t, before, 4, 71, 0) != want || s.Segments().Use().Hits == hits {
		t.Error("a reader does not use the cache any longer")
	}
}

// A reader that may not use the cache any longer pushes nothing out of it.
func TestSegmentCache_OutdatedReader(t *testing.T) {
	t.Parallel()
	const terms = 120
	s := withSegmentCache(t, 1<<19)
	commit(t, s, wsA, func(tx *Tx) {
		manyTerms(t, tx, 3, terms, 5000)
		manyTerms(t, tx, 4, terms, 5000)
	})
	outdated, release := segmentView(t, s, wsA)
	defer release()
	commit(t, s, ID{6: 0x70, 15: 9}, func(tx *Tx) { must(t, tx.DeleteWorkspace()) })
	readAll := func(v *View) {
		for term := range terms {
			findTerm(t, v, 3, 2*term+1, 0)
			findTerm(t, v, 4, 2*term+1, 0)
		}
	}
	v, releaseNew := segmentView(t, s, wsA)
	defer releaseNew()
	readAll(v)
	c := s.Segments()
	kept := slices.Clone(c.clock)
	if c.Use().Bytes < c.most/2 {
		t.Fatalf("%d bytes are kept", c.Use().Bytes)
	}
	readAll(outdated)
	if !slices.Equal(c.clock, kept) {
		t.Error("other blocks are kept")
	}
	checkSegmentCache(t, c)
}

// A workspace's segment is replaced again and again while others read it. Each reader finds the segment of its snapshot.
func TestSegmentCache_ReplacedWhileRead(t *testing.T) {
	t.Parallel()
	const replacements = 60
	s := withSegmentCache(t, 1<<20)
	write := func(i int) {
		commit(t, s, wsA, func(tx *Tx) {
			must(t, tx.DeleteWorkspace())
			manyTerms(t, tx, 3, 40, 100+i)
		})
	}
	write(0)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	var reads atomic.Int64
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v, release := segmentView(t, s, wsA)
				plain := *v
				plain.RecallSegments(SegmentMoment{})
				want := findTerm(t, &plain, 3, 1, 0)
				for range 1 + rand.IntN(3) {
					if got := findTerm(t, v, 3, 1, 0); got != want {
						t.Errorf("a reader finds %+v, want %+v", got, want)
					}
				}
				release()
				reads.Add(1)
			}
		})
	}
	for i := 1; i < replacements || reads.Load() < 4*replacements || s.Segments().Use().Hits == 0; i++ {
		write(i % 1000)
	}
	close(stop)
	readers.Wait()
	checkSegmentCache(t, s.Segments())
}
