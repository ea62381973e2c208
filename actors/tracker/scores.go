package tracker

import "switchyard/storage"

// ranked is an issue with its score.
type ranked struct {
	doc   storage.Doc
	score float64
}

// scores sums scores by issue. It is a hash table with open addressing, since a search
// may meet 100,000 issues several times each. The zero Doc marks a free place: it would
// be an issue of 1970.
type scores struct {
	places []ranked // a power of two, at most half of them in use
	count  int
	shift  int // from a hash to a place; 0 while there are no places
}

// scatter is 2^64 divided by the golden ratio; its multiples are evenly distributed
// (Knuth, The Art of Computer Programming 3, 6.4).
const scatter = 0x9e3779b97f4a7c15

// grow doubles the table.
func (s *scores) grow() {
	width := 10
	if s.shift > 0 {
		width = 65 - s.shift
	}
	old := s.places
	s.places, s.shift = make([]ranked, 1<<width), 64-width
	for _, r := range old {
		if r.doc != 0 {
			*s.slot(r.doc) = r
		}
	}
}

// slot returns the slot of an issue's score, or a free slot for it.
func (s *scores) slot(doc storage.Doc) *ranked {
	for i := int(uint64(doc) * scatter >> s.shift); ; i++ {
		if p := &s.places[i&(len(s.places)-1)]; p.doc == doc || p.doc == 0 {
			return p
		}
	}
}

// add adds to an issue's score.
func (s *scores) add(doc storage.Doc, score float64) {
	if 2*s.count >= len(s.places) {
		s.grow()
	}
	p := s.slot(doc)
	if p.doc == 0 {
		p.doc = doc
		s.count++
	}
	p.score += score
}

// ranked returns the issues, unordered, in the table's own memory. No score may be
// added until clear.
func (s *scores) ranked() []ranked {
	kept := s.places[:0]
	for _, r := range s.places {
		if r.doc != 0 {
			kept = append(kept, r)
		}
	}
	return kept
}

// clear empties the table for reuse.
func (s *scores) clear() {
	clear(s.places)
	s.count = 0
}
