package storage

import (
	"math/bits"
	"slices"
)

// filterSet is a set of ordinals. A set that has less than one in sparseShare of all
// ordinals is a sorted list, any other a bitmap; which of the two is smaller and
// quicker to intersect.
type filterSet struct {
	list  []uint32 // ascending; nil where words are used
	words []uint64
	count int
}

const sparseShare = 64

// filterSetBytes is what a set takes beside its elements, with its place in a map.
const filterSetBytes = 160

// newFilterSet makes the set of ordinals given in ascending order, of all there are.
func newFilterSet(ords []uint32, all int) *filterSet {
	s := &filterSet{count: len(ords)}
	if s.sparse(all) {
		s.list = slices.Clone(ords)
		return s
	}
	s.list = ords
	s.widen()
	return s
}

func (s *filterSet) sparse(all int) bool {
	return s.count*sparseShare <= max(all, sparseShare*sparseShare)
}

// widen turns the list into a bitmap.
func (s *filterSet) widen() {
	words := make([]uint64, s.list[len(s.list)-1]/64+1)
	for _, ord := range s.list {
		words[ord/64] |= 1 << (ord % 64)
	}
	s.list, s.words = nil, words
}

func (s *filterSet) size() int { return filterSetBytes + 4*cap(s.list) + 8*cap(s.words) }

func (s *filterSet) has(ord uint32) bool {
	if s.words != nil {
		w := int(ord / 64)
		return w < len(s.words) && s.words[w]&(1<<(ord%64)) != 0
	}
	_, found := slices.BinarySearch(s.list, ord)
	return found
}

// add puts an ordinal into the set; all is how many ordinals there are.
func (s *filterSet) add(ord uint32, all int) {
	if s.words != nil {
		for len(s.words) <= int(ord/64) {
			s.words = append(s.words, 0)
		}
		if bit := uint64(1) << (ord % 64); s.words[ord/64]&bit == 0 {
			s.words[ord/64] |= bit
			s.count++
		}
		return
	}
	if n := len(s.list); n == 0 || s.list[n-1] < ord {
		s.list = append(s.list, ord)
	} else if at, found := slices.BinarySearch(s.list, ord); !found {
		s.list = slices.Insert(s.list, at, ord)
	}
	if s.count = len(s.list); !s.sparse(all) {
		s.widen()
	}
}

func (s *filterSet) remove(ord uint32) {
	if s.words != nil {
		if w, bit := int(ord/64), uint64(1)<<(ord%64); w < len(s.words) && s.words[w]&bit != 0 {
			s.words[w] &^= bit
			s.count--
		}
		return
	}
	if at, found := slices.BinarySearch(s.list, ord); found {
		s.list = slices.Delete(s.list, at, at+1)
		s.count--
	}
}

// setCursor reads a set from the highest ordinal down. It only moves down.
type setCursor struct {
	set *filterSet
	at  int // how many elements of a list are left
}

func newSetCursor(s *filterSet, below uint32) setCursor {
	c := setCursor{set: s}
	if s.words == nil {
		c.at, _ = slices.BinarySearch(s.list, below)
	}
	return c
}

// word gives the 64 ordinals from 64*w on as bits.
func (c *setCursor) word(w int) (x uint64) {
	if c.set.words != nil {
		if w < len(c.set.words) {
			x = c.set.words[w]
		}
		return x
	}
	low := uint32(w) * 64
	for ; c.at > 0; c.at-- {
		ord := c.set.list[c.at-1]
		if ord < low {
			break
		}
		if ord-low < 64 {
			x |= 1 << (ord - low)
		}
	}
	return x
}

// anyOf is a union of sets.
type anyOf []setCursor

func (a anyOf) word(w int) (x uint64) {
	for i := range a {
		x |= a[i].word(w)
	}
	return x
}

func (a anyOf) has(ord uint32) bool {
	for i := range a {
		if a[i].set.has(ord) {
			return true
		}
	}
	return false
}

// listed gives how many elements the union has at most; false when one of the sets is
// a bitmap.
func (a anyOf) listed() (n int, ok bool) {
	for i := range a {
		if a[i].set.words != nil {
			return 0, false
		}
		n += a[i].at
	}
	return n, true
}

// next gives the highest element that is left of a union of lists, and takes it out.
func (a anyOf) next() (ord uint32, ok bool) {
	for i := range a {
		if c := &a[i]; c.at > 0 && (!ok || c.set.list[c.at-1] > ord) {
			ord, ok = c.set.list[c.at-1], true
		}
	}
	for i := range a {
		if c := &a[i]; c.at > 0 && c.set.list[c.at-1] == ord {
			c.at--
		}
	}
	return ord, ok
}

// highest gives the position of the highest bit.
func highest(x uint64) int { return 63 - bits.LeadingZeros64(x) }
