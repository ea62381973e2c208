package tracker

import (
	"errors"
	"slices"

	"switchyard/storage"
)

// PairedFrom is how many titles a segment has at least whose terms a node keeps in pairs: to go through fewer of them
// takes no longer.
const PairedFrom = 4096

// listsOfStep is how many lists of a search by pairs count as one posting more, for each issue that it finds.
const listsOfStep = 16

var errNoSegment = errors.New("pairs of terms: the state lacks the segment")

// pairs gives the pairs of terms of the segment's titles, and reports whether they are being made.
func (d *segmentSearch) pairs() (pairs *storage.TermPairs, pending bool) {
	t := d.tx.recent().tails
	if t == nil || t.makePairs == nil || d.s.Docs < t.pairedFrom {
		return nil, false
	}
	return d.r.Pairs(d.s, func(order *storage.PairsOrder) bool { return t.makePairs(d.tx.Shard(), d.tx.Workspace(), order) })
}

// Pairs makes the pairs of terms of the titles of a segment. It calls pause again and again, and ends with its error.
// The state that v reads must have the segment.
func (v *View) Pairs(order *storage.PairsOrder, pause func() error) error {
	m, err := v.manifest()
	if err == nil && !slices.ContainsFunc(m.Segments, func(s storage.Segment) bool { return s.Number == order.Segment.Number }) {
		err = errNoSegment
	}
	if err != nil {
		return err
	}
	return order.Make(&searchIndex, v, pause)
}

// searchPairs goes through the titles that have two terms of the new one, or one where that may be enough.
func (d *segmentSearch) searchPairs(pairs *storage.TermPairs, terms []term) error {
	search := pairs.Search(hashes(terms))
	step := 1 + search.Lists()/listsOfStep
	for d.goesOn() {
		need := d.need(d.newest)
		if need > len(terms) {
			return nil
		}
		ord, ok := search.Next(need)
		if !ok {
			return nil
		}
		d.compared += step
		shared, of := search.Shared(ord)
		next, err := d.lookIfAmongBest(ord, shared, of, terms)
		if err != nil || next == nothingOpen {
			return err
		}
		search.Skip(next)
	}
	return nil
}
