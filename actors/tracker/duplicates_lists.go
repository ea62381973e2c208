package tracker

import (
	"cmp"
	"encoding/binary"
	"slices"

	"switchyard/storage"
)

// duplicateList is the list of a segment's titles with a term.
type duplicateList struct {
	*storage.PostingList
	term term
}

// searchLists goes through the postings of some of the terms that the segment may have, where there is no memory for
// its TermSlices, or they are not there yet.
//
// An issue that is to be among the best shares a number of terms, need, and so at
// least one of any n-need+1 of the n terms that the segment may have: the lists of so
// many suffice, and the others are not looked up. They are those of the terms that were
// the rarest so far. The signature bounds how many of the others it has.
func (d *segmentSearch) searchLists(terms, there []term) error {
	lists, others, err := d.beginLists(there)
	if err != nil {
		return err
	}
	opened := len(lists)
	for d.goesOn() {
		need := d.need(d.newest)
		if need > len(lists)+len(others) {
			return nil
		}
		d.filter.Least = need
		opened = min(opened, len(lists)+len(others)-need+1)
		ord, met := ^uint32(0), 0
		var payload []byte
		for _, l := range lists[:opened] {
			switch {
			case !l.Valid():
			case met == 0 || l.Ord() < ord:
				ord, met, payload = l.Ord(), 1, l.Payload()
			case l.Ord() == ord:
				met++
			}
		}
		if met == 0 {
			return nil
		}
		d.compared += met
		m, sig, bound := int(payload[0]), binary.BigEndian.Uint64(payload[1:]), met
		for _, l := range lists[opened:] {
			bound += int(sig >> (l.term.hash & 63) & 1)
		}
		for _, t := range others {
			bound += int(sig >> (t.hash & 63) & 1)
		}
		best := score(min(bound, m), len(terms), m)
		if d.wants(d.newest, best) {
			second, err := d.r.Signature(d.s, ord)
			if err != nil {
				return err
			}
			best = score(min(atMostBoth(terms, sig, second), bound, m), len(terms), m)
		}
		next := ord + 1
		if d.wants(d.newest, best) {
			if next, err = d.look(ord, best, terms); err != nil || next == nothingOpen {
				return err
			}
		}
		for _, l := range lists[:opened] {
			if err := l.Seek(next); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginLists looks up the lists of the rarest terms, as many as suffice, the shortest first, and moves them to their
// first postings. The other terms are those whose lists are not looked up.
func (d *segmentSearch) beginLists(there []term) (lists []duplicateList, others []term, err error) {
	recent := d.tx.recent()
	recent.shares.sort(there)
	// Most titles in the lists share too few terms, as their signatures show.
	d.filter.Begin(d.need(d.newest))
	for _, t := range there {
		d.filter.Want(t.bit())
	}
	lists, others = make([]duplicateList, 0, len(there)), there
	var key [8]byte
	for ; len(others) >= d.filter.Least; others = others[1:] {
		t := others[0]
		l, err := d.r.List(d.s.Number, titleTermsOf, titleKey(key[:0], t.hash))
		if err != nil {
			return nil, nil, err
		}
		if l != nil {
			lists = append(lists, duplicateList{l, t})
			recent.shares.note(t, l.Total, int(d.s.Docs))
		}
	}
	slices.SortFunc(lists, func(a, b duplicateList) int { return cmp.Compare(a.Total, b.Total) })
	for _, l := range lists {
		l.Filter = &d.filter
		if err := l.Begin(); err != nil {
			return nil, nil, err
		}
	}
	return lists, others, nil
}
