package tracker

import (
	"math/bits"

	"switchyard/storage"
)

// ranked is an issue with its score.
type ranked struct {
	doc   storage.Doc
	score float64
}

// scores sums up the scores of a segment's issues, window by window: the parts that all words add to the
// issues of a window are summed up in an array that stays in the processor's nearest cache. A table of all
// issues would miss it with each part.
type scores struct {
	all []ranked // of the segments that were summed up

	// The parts of the segment that is being read. Each run is of one word, with ascending ordinals.
	ords  []uint32
	parts []float64
	runs  []scoreRun

	sums [scoreWindow]float64
	met  [scoreWindow / 64]uint64 // bits of the issues in sums
}

// scoreWindow is the number of ordinals that are summed up at once.
const scoreWindow = 2048

// scoreRun is the part of ords and parts that one word adds.
type scoreRun struct{ from, to int }

// begin begins a run.
func (s *scores) begin() { s.runs = append(s.runs, scoreRun{len(s.ords), len(s.ords)}) }

// add adds to an issue's score, in the run that was begun last. Ordinals ascend within a run.
func (s *scores) add(ord uint32, part float64) {
	s.ords, s.parts = append(s.ords, ord), append(s.parts, part)
}

// end ends the run that was begun last.
func (s *scores) end() {
	last := len(s.runs) - 1
	if s.runs[last].to = len(s.ords); s.runs[last].from == s.runs[last].to {
		s.runs = s.runs[:last]
	}
}

// sum sums up the runs of a segment, in the order in which they were begun, and forgets them.
func (s *scores) sum(segment int) {
	for left := s.runs; len(left) > 0; {
		next := s.ords[left[0].from]
		for _, r := range left[1:] {
			next = min(next, s.ords[r.from])
		}
		left = s.sumWindow(segment, next/scoreWindow*scoreWindow, left)
	}
	s.ords, s.parts, s.runs = s.ords[:0], s.parts[:0], s.runs[:0]
}

// sumWindow sums up what the runs add to the issues from an ordinal on, and returns the runs of which
// something is left.
func (s *scores) sumWindow(segment int, from uint32, runs []scoreRun) (left []scoreRun) {
	left = runs[:0]
	for _, r := range runs {
		i := r.from
		for ; i < r.to && s.ords[i]-from < scoreWindow; i++ {
			at := s.ords[i] - from
			s.met[at/64] |= 1 << (at % 64)
			s.sums[at] += s.parts[i]
		}
		if i < r.to {
			left = append(left, scoreRun{i, r.to})
		}
	}
	for word, met := range s.met {
		for ; met != 0; met &= met - 1 {
			at := uint32(64*word + bits.TrailingZeros64(met))
			s.all = append(s.all, ranked{rankedPlace(segment, from+at), s.sums[at]})
			s.sums[at] = 0
		}
		s.met[word] = 0
	}
	return left
}

// keptScores is the most scores and parts whose memory is kept for the next search.
const keptScores = 8 * similarPostings

// clear forgets all scores. A search that failed may have left runs.
func (s *scores) clear() {
	if cap(s.all) > keptScores || cap(s.parts) > keptScores {
		s.all, s.ords, s.parts = nil, nil, nil
	}
	s.all, s.ords, s.parts, s.runs = s.all[:0], s.ords[:0], s.parts[:0], s.runs[:0]
}
