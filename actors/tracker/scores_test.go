package tracker

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"switchyard/storage"
)

// The scores of each segment are the sums of what the runs add, in the order of the runs.
func TestScores(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	s := new(scores)
	for range 200 {
		want, got := map[storage.Doc]float64{}, map[storage.Doc]float64{}
		for segment := range random.IntN(4) {
			// At most ordinals of which some windows are full, or have few, or none.
			docs := uint32(1) << random.IntN(20)
			for range random.IntN(6) {
				ords := map[uint32]bool{}
				for range random.IntN(3000) {
					ords[random.Uint32N(docs)] = true
				}
				s.begin()
				for _, ord := range slices.Sorted(maps.Keys(ords)) {
					part := random.Float64()
					s.add(ord, part)
					want[rankedPlace(segment, ord)] += part
				}
				s.end()
			}
			s.sum(segment)
		}
		for _, one := range s.all {
			if _, twice := got[one.doc]; twice {
				t.Fatalf("%x is there twice", one.doc)
			}
			got[one.doc] = one.score
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%d scores, want %d, or others", len(got), len(want))
		}
		s.clear()
	}
}

// The largest ordinals are summed up, too.
func TestScores_LastOrdinals(t *testing.T) {
	t.Parallel()
	s := new(scores)
	for _, ords := range [][]uint32{{0, 1<<32 - 1}, {1<<32 - 2, 1<<32 - 1}, {}} {
		s.begin()
		for _, ord := range ords {
			s.add(ord, 1)
		}
		s.end()
	}
	s.sum(0)
	want := []ranked{{rankedPlace(0, 0), 1}, {rankedPlace(0, 1<<32-2), 1}, {rankedPlace(0, 1<<32-1), 2}}
	if !slices.Equal(s.all, want) {
		t.Errorf("%v", s.all)
	}
}

// A search that failed leaves nothing to the next one, and much memory is not kept.
func TestScores_Clear(t *testing.T) {
	t.Parallel()
	s := new(scores)
	s.begin()
	s.add(7, 1)
	s.clear()
	if s.sum(0); len(s.all) > 0 {
		t.Errorf("%v", s.all)
	}
	s.begin()
	for ord := range uint32(keptScores + 1) {
		s.add(ord, 1)
	}
	s.end()
	s.sum(0)
	if s.clear(); s.all != nil || s.parts != nil {
		t.Errorf("%d scores and %d parts are kept", cap(s.all), cap(s.parts))
	}
}
