package tracker

import (
	"math"

	"switchyard/storage"
)

// loadedRows is how many rows of a segment's terms by title a search reads, of 512 titles each, for later ones to
// have them in memory.
const loadedRows = 16

// mostSliced is the most titles of a segment that a search goes through by their terms in memory: it looks at each of
// them, and of a larger segment the lists of a few terms are shorter.
const mostSliced = 100_000

// segmentSearch is the part of a search for duplicates that goes through one segment, the newest issues first.
type segmentSearch struct {
	*duplicates
	r      *storage.SegmentReader
	s      *storage.Segment
	newest storage.Doc // no issue that is still to come is newer
	docs   *storage.DocColumn
}

// search goes through the segment.
func (d *segmentSearch) search(terms []term) error {
	// The segment before may have ended with older issues than this one begins with: issues
	// that were changed are indexed again, in a newer segment.
	for i := range d.openAt {
		d.openAt[i] = math.MaxUint64
	}
	pairs, pending := d.pairs()
	if pairs != nil {
		return d.searchPairs(pairs, terms)
	}
	if d.s.Docs <= mostSliced && !pending {
		sliced, err := d.r.Slices(d.s, loadedRows)
		if err != nil {
			return err
		}
		if sliced != nil {
			return d.searchSlices(sliced, terms)
		}
	}
	filter, err := d.tx.recent().filter(d.r, d.s.Number)
	if err != nil {
		return err
	}
	there := make([]term, 0, len(terms)) // terms that the segment may have
	for _, t := range terms {
		if filter.MayHave(t.hash) {
			there = append(there, t)
		}
	}
	return d.searchLists(terms, there)
}

func hashes(terms []term) []uint64 {
	all := make([]uint64, 0, len(terms))
	for _, t := range terms {
		all = append(all, t.hash)
	}
	return all
}

// searchSlices goes through the terms of all titles in memory.
func (d *segmentSearch) searchSlices(sliced *storage.TermSlices, terms []term) error {
	search := sliced.Search(hashes(terms))
	need, short := 0, 0
	for d.goesOn() {
		// The true value of short may fall while need stays. Then a few more titles are looked at.
		if now := d.need(d.newest); now != need {
			need, short = now, d.longest(now, d.newest)
		}
		if need > len(terms) {
			return nil
		}
		ord, ok := search.Next(need, short)
		if !ok {
			return nil
		}
		d.compared++
		shared, of := search.Shared(ord, need)
		next, err := d.lookIfAmongBest(ord, shared, of, terms)
		if err != nil || next == nothingOpen {
			return err
		}
		search.Skip(next)
	}
	return nil
}

// nothingOpen stands for the ordinal of the next open issue when there is none.
const nothingOpen = ^uint32(0)

// lookIfAmongBest looks at an issue that shares some of its terms at most, if it may be among the best, and gives the
// ordinal at which to go on.
func (d *segmentSearch) lookIfAmongBest(ord uint32, shared, of int, terms []term) (next uint32, err error) {
	if best := score(shared, len(terms), of); d.wants(d.newest, best) {
		return d.look(ord, best, terms)
	}
	return ord + 1, nil
}

// look compares the issue with an ordinal with the title, unless it is known to be out of question, and gives the
// ordinal at which to go on: that of the next open issue, if this one is known to be closed.
func (d *segmentSearch) look(ord uint32, best float64, terms []term) (next uint32, err error) {
	if d.docs == nil {
		d.docs = d.r.DocColumn(d.s)
	}
	if d.newest, err = d.docs.Doc(ord); err != nil {
		return 0, err
	}
	if d.closed > fewClosed {
		open, err := d.nextOpen(d.newest)
		if err != nil || open == 0 {
			return nothingOpen, err
		}
		if open < d.newest {
			d.newest = open
			return d.docs.Ord(open)
		}
	}
	second, err := d.consider(d.newest, best, terms)
	if err != nil {
		return 0, err
	}
	d.tx.recent().blocks.Learn(d.s, ord, second)
	return ord + 1, nil
}
