package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"
)

// TermPairs are the pairs of terms of a segment's docs in memory, those of the filtered dictionary. They find the docs
// that have half of a search's terms, where these are half of the doc's terms too, and cost a look-up for each pair of
// the search's terms, however many docs there are.
//
// Two sets of terms that have k > 1 in common have two of them among the first n-k+2 terms of each set of n, in any
// order of all terms: what comes behind the second common one, k-2 more of them, is behind it in both ("prefix filter",
// Chaudhuri, Ganti and Kaushik, A primitive operator for similarity joins in data cleaning, ICDE 2006; with more than one
// in common Wang, Li and Feng, Can we beat the prefix filtering, SIGMOD 2012). So the pairs of a doc's first terms
// suffice. The order is that of the terms' hashes. Docs with many terms, which would have many pairs, have their first
// terms singly, and so do those with one or two terms, which one common term may be enough for.
//
// They don't change once they are made.
type TermPairs struct {
	// starts tells where the entries of each bucket begin, and at last where all end. Keys are in buckets by their upper bits.
	starts []uint32
	// entries have the lower bits of a key in front of an ordinal, in order within a bucket.
	entries []uint32
	// first tells for each doc where its terms begin in tags, and at last where all end.
	first []uint32
	tags  []uint16 // the upper bits of each term, in order within a doc
}

const (
	// pairedTerms is the most terms of a doc that has pairs; a doc of fewTerms has them singly too.
	pairedTerms, fewTerms = 8, 2
	// leastOfMany is the least number of terms in common with a doc of more than pairedTerms.
	leastOfMany = (pairedTerms + 1 + 1) / 2
	// ordBits are those of an ordinal in an entry. Larger segments have no TermPairs.
	ordBits    = 24
	ordMask    = 1<<ordBits - 1
	bucketSize = 8 // entries, on average
	// pairsPause is how many docs or postings are gone through between two calls of the function that may wait.
	pairsPause = 4096
)

// Keys of single terms have these in place of the second term.
const (
	singleOfFew  = 1
	singleOfMany = 2
)

// pairKey gives the key of two terms, the lower one first.
func pairKey(first, second uint32) uint64 {
	key := (uint64(first)<<32 | uint64(second)) * 0x9e3779b97f4a7c15
	return (key ^ key>>32) * 0xbf58476d1ce4e5b9
}

// bucket gives the bucket of a key, and what the key's entries have in front of the ordinal.
func (p *TermPairs) bucket(key uint64) (bucket int, head uint32) {
	high, _ := bits.Mul64(key, uint64(len(p.starts)-1))
	return int(high), uint32(key) << ordBits
}

// shortOf is the part of a term that keys are made of, and tagOf the part that a doc's tags have. They are in the order
// of the terms.
func shortOf(term uint64) uint32 { return uint32(term >> 32) }
func tagOf(short uint32) uint16  { return uint16(short >> 16) }

// eachKey calls fn for the keys of a doc, whose terms are in order.
func eachKey(terms []uint32, fn func(key uint64)) {
	n := len(terms)
	if n > pairedTerms {
		for _, t := range terms[:n-(n+1)/2+1] {
			fn(pairKey(t, singleOfMany))
		}
		return
	}
	if n <= fewTerms {
		for _, t := range terms {
			fn(pairKey(t, singleOfFew))
		}
	}
	front := terms[:min(n, n-max(2, (n+1)/2)+2)]
	for j := range front {
		for i := range j {
			fn(pairKey(front[i], front[j]))
		}
	}
}

// pairsPeak is about the memory that making the TermPairs of so many docs takes at most, with four or five terms each.
func pairsPeak(docs uint32) int64 { return 52 * int64(docs) }

// bytes is the memory that they take.
func (p *TermPairs) bytes() int64 {
	return 4*int64(len(p.starts)+len(p.entries)+len(p.first)) + 2*int64(len(p.tags))
}

// errManyPairs says that a segment has more docs or terms than TermPairs can have.
var errManyPairs = errors.New("too many documents or terms for pairs of them")

// pairsMaker makes TermPairs. Beside these it needs the parts of the terms that tags lack.
type pairsMaker struct {
	*TermPairs
	docs  uint32
	lower []uint16
	terms []uint32 // of the doc in hand
	taken int64    // bytes
	pause func(bytes int64) error
}

// makePairs makes the TermPairs of a segment. It calls pause again and again, with the memory that it has taken so far,
// and gives up when that returns an error.
func (r *SegmentReader) makePairs(s *Segment, dictionary int, pause func(bytes int64) error) (*TermPairs, error) {
	if s.Docs > ordMask {
		return nil, errManyPairs
	}
	m := &pairsMaker{TermPairs: &TermPairs{first: make([]uint32, s.Docs+1)}, docs: s.Docs, pause: pause}
	m.taken = 4 * int64(len(m.first))
	if err := m.readTerms(r, s, dictionary); err != nil {
		return nil, err
	}
	if err := m.enter(); err != nil {
		return nil, err
	}
	return m.TermPairs, nil
}

// readTerms reads the terms of all docs, which are in order within each.
func (m *pairsMaker) readTerms(r *SegmentReader, s *Segment, dictionary int) error {
	each := func(fn func(term uint32, ord uint32)) error {
		postings := pairsPause
		var failed error
		err := r.Terms(s.Number, dictionary, nil, func(int) bool { return true }, func(term []byte, _ bool, _ int, ords []uint32) bool {
			if len(term) != 8 || len(ords) > 0 && ords[len(ords)-1] >= s.Docs {
				failed = r.wrap(fmt.Errorf("%w: term of %d bytes, ordinal beyond %d documents", ErrFormat, len(term), s.Docs))
				return false
			}
			if postings += len(ords); postings >= pairsPause {
				postings = 0
				if failed = m.pause(m.taken); failed != nil {
					return false
				}
			}
			short := shortOf(binary.BigEndian.Uint64(term))
			for _, ord := range ords {
				fn(short, ord)
			}
			return true
		})
		return errors.Join(err, failed)
	}
	if err := each(func(_, ord uint32) { m.first[ord+1]++ }); err != nil {
		return err
	}
	all := uint64(0)
	for ord := range s.Docs {
		if all += uint64(m.first[ord+1]); all > 1<<31 {
			return errManyPairs
		}
		m.first[ord+1] = uint32(all)
	}
	places := 4 * int64(len(m.first))
	m.taken += 4*int64(all) + places
	if err := m.pause(m.taken); err != nil {
		return err
	}
	m.tags, m.lower = make([]uint16, all), make([]uint16, all)
	next := slices.Clone(m.first)
	err := each(func(term, ord uint32) {
		if at := next[ord]; at < m.first[ord+1] {
			m.tags[at], m.lower[at] = tagOf(term), uint16(term)
			next[ord]++
		}
	})
	m.taken -= places
	return err
}

// each calls fn for the keys of all docs.
func (m *pairsMaker) each(fn func(ord uint32, key uint64)) error {
	for ord := range m.docs {
		if ord%pairsPause == 0 {
			if err := m.pause(m.taken); err != nil {
				return err
			}
		}
		m.terms = m.terms[:0]
		for i := m.first[ord]; i < m.first[ord+1]; i++ {
			m.terms = append(m.terms, uint32(m.tags[i])<<16|uint32(m.lower[i]))
		}
		eachKey(m.terms, func(key uint64) { fn(ord, key) })
	}
	return nil
}

// enter makes the entries of all keys.
func (m *pairsMaker) enter() error {
	all := uint64(0)
	if err := m.each(func(uint32, uint64) { all++ }); err != nil {
		return err
	}
	if all > 1<<31 {
		return errManyPairs
	}
	buckets := all/bucketSize + 1
	m.taken += 4 * int64(all+buckets+1)
	if err := m.pause(m.taken); err != nil {
		return err
	}
	m.starts, m.entries = make([]uint32, buckets+1), make([]uint32, all)
	if err := m.each(func(_ uint32, key uint64) { b, _ := m.bucket(key); m.starts[b+1]++ }); err != nil {
		return err
	}
	for b := range m.starts[1:] {
		m.starts[b+1] += m.starts[b]
	}
	// Each bucket is filled from its end on.
	ends := m.starts[1:]
	if err := m.each(func(ord uint32, key uint64) {
		b, head := m.bucket(key)
		ends[b]--
		m.entries[ends[b]] = head | ord
	}); err != nil {
		return err
	}
	copy(m.starts, ends)
	m.starts[buckets] = uint32(all)
	for b := range buckets {
		if b%pairsPause == 0 {
			if err := m.pause(m.taken); err != nil {
				return err
			}
		}
		slices.Sort(m.entries[m.starts[b]:m.starts[b+1]])
	}
	return nil
}

// PairSearch goes through the docs of a segment that may share half of some terms, the newest first.
type PairSearch struct {
	p     *TermPairs
	tags  []uint16 // of the terms, in order
	lists []pairList
	from  uint32 // docs before this one are left out
}

// pairList has the entries of one key that are still to come. It is of use as long as not more terms than most are
// needed.
type pairList struct {
	entries []uint32
	most    int
}

// Search begins a search for docs with some of the terms, which are hashes.
func (p *TermPairs) Search(hashes []uint64) *PairSearch {
	n := len(hashes)
	q, terms := &PairSearch{p: p, tags: make([]uint16, n)}, make([]uint32, n)
	for i, t := range hashes {
		terms[i] = shortOf(t)
	}
	slices.Sort(terms)
	for i, t := range terms {
		q.tags[i] = tagOf(t)
	}
	for i, t := range terms {
		if n <= fewTerms {
			q.add(pairKey(t, singleOfFew), 1)
		}
		if most := n - i; most >= leastOfMany {
			q.add(pairKey(t, singleOfMany), most)
		}
		// A doc with pairs has at most so many terms, and that is half of the search's terms at least.
		if n > 2*pairedTerms {
			continue
		}
		for _, before := range terms[:i] {
			q.add(pairKey(before, t), min(n+1-i, pairedTerms))
		}
	}
	return q
}

// add adds the list of a key, if any doc may have the key.
func (q *PairSearch) add(key uint64, most int) {
	b, head := q.p.bucket(key)
	entries := q.p.entries[q.p.starts[b]:q.p.starts[b+1]]
	from, _ := slices.BinarySearch(entries, head)
	to := from + sort.Search(len(entries)-from, func(i int) bool { return entries[from+i] > head|ordMask })
	if from < to {
		q.lists = append(q.lists, pairList{entries[from:to], most})
	}
}

// Lists is the number of lists that a step goes through at most.
func (q *PairSearch) Lists() int { return len(q.lists) }

// Next gives the next doc that may share so many of the terms, and half of them and of its own; false at the end.
// least must not fall from call to call.
func (q *PairSearch) Next(least int) (ord uint32, ok bool) {
	for i := range q.lists {
		l := &q.lists[i]
		if l.most < least {
			continue
		}
		for len(l.entries) > 0 && l.entries[0]&ordMask < q.from {
			if l.entries = l.entries[1:]; len(l.entries) > 0 && l.entries[0]&ordMask < q.from {
				l.entries = l.entries[sort.Search(len(l.entries), func(i int) bool { return l.entries[i]&ordMask >= q.from }):]
			}
		}
		if len(l.entries) > 0 && (!ok || l.entries[0]&ordMask < ord) {
			ord, ok = l.entries[0]&ordMask, true
		}
	}
	q.from = ord + 1
	return ord, ok
}

// Skip leaves out the docs before the given one.
func (q *PairSearch) Skip(ord uint32) { q.from = max(q.from, ord) }

// Shared tells how many of the terms a doc has, or more where terms have a tag in common, and how many terms it has in
// all.
func (q *PairSearch) Shared(ord uint32) (atMost, all int) {
	theirs := q.p.tags[q.p.first[ord]:q.p.first[ord+1]]
	all = len(theirs)
	for mine := q.tags; len(mine) > 0 && len(theirs) > 0; {
		switch {
		case mine[0] < theirs[0]:
			mine = mine[1:]
		case mine[0] > theirs[0]:
			theirs = theirs[1:]
		default:
			atMost, mine, theirs = atMost+1, mine[1:], theirs[1:]
		}
	}
	return atMost, all
}
