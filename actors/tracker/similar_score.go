package tracker

import (
	"fmt"
	"math"
	"sync"

	"switchyard/storage"
)

// similaritySpace is the memory of a search, of a few megabytes, for the next one.
type similaritySpace struct {
	scores  scores
	lists   storage.ListSpace
	found   [][]*storage.PostingList // by segment and stem; nil where the segment lacks the stem
	lengths [][]byte                 // of each segment
}

var similaritySpaces = sync.Pool{New: func() any { return new(similaritySpace) }}

func (s *similaritySpace) release() {
	s.scores.clear()
	s.lists.Reset()
	similaritySpaces.Put(s)
}

// forLists makes space for the lists of so many stems in each segment.
func (s *similaritySpace) forLists(stems, segments int) {
	for len(s.found) < segments {
		s.found = append(s.found, make([]*storage.PostingList, similarRead))
	}
	for i := range segments {
		clear(s.found[i][:stems])
	}
}

// forLengths gives memory for the lengths of a segment's issues.
func (s *similaritySpace) forLengths(segment int) []byte {
	for len(s.lengths) <= segment {
		s.lengths = append(s.lengths, nil)
	}
	return s.lengths[segment]
}

// score sums up the scores of the issues that have some of the stems.
func (s *similarity) score(all []wanted) error {
	rarities := make([]float64, len(all))
	for i, w := range all {
		having := float64(w.visible)
		rarities[i] = math.Log(1 + (s.issues-min(having, s.issues)+0.5)/(having+0.5))
	}
	for segment := range s.segments {
		for i := range all {
			list := s.space.found[segment][all[i].place]
			if list == nil {
				continue
			}
			if err := s.scoreList(segment, list, rarities[i]); err != nil {
				return err
			}
			list.End()
		}
		s.space.scores.sum(segment)
	}
	s.scoreTail(all, rarities)
	return nil
}

// scoreList adds a stem's part to the issues of a segment that have it.
func (s *similarity) scoreList(segment int, l *storage.PostingList, rarity float64) (err error) {
	of := &s.segments[segment]
	if of.lengths == nil {
		if of.lengths, err = s.reader.Lengths(of.Segment, s.space.forLengths(segment)); err != nil {
			return err
		}
		s.space.lengths[segment] = of.lengths
		if len(of.hidden) > 1 {
			if of.classes, err = s.reader.ClassColumn(of.Segment); err != nil {
				return err
			}
		}
	}
	if len(of.hidden) == 1 {
		return nil // the only class
	}
	if err := l.Begin(); err != nil {
		return err
	}
	sums := &s.space.scores
	sums.begin()
	defer sums.end()
	for l.Valid() {
		ords, weights := l.Piece()
		for i, ord := range ords {
			if int(ord) >= len(of.lengths) {
				return fmt.Errorf("%w: ordinal %d of a segment of %d issues", storage.ErrFormat, ord, len(of.lengths))
			}
			if of.classes != nil && of.hides(ord) {
				continue
			}
			weight := float64(weights[i])
			sums.add(ord, rarity*weight*(bm25K1+1)/(weight+s.slowness[of.lengths[ord]]))
		}
		if err := l.NextPiece(); err != nil {
			return err
		}
	}
	return nil
}

// rankedPlace returns the number of an issue while scores are summed up: the newest have
// the largest.
func rankedPlace(segment int, ord uint32) storage.Doc {
	return storage.Doc(uint64(segment+1)<<32 | uint64(^ord))
}
