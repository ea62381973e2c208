package storage

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A segment has 32 bytes for each doc, from which a search can tell the terms of the filtered dictionary that the doc
// may have: a set of 128 bits of which each term has one, a Bloom filter of 113 bits of which each has eight, and the
// number of the terms. TermSlices are these in memory, the sets stored by bit instead of by doc: "bit-sliced signatures"
// (Faloutsos and Chan, Fast text access methods for optical and large magnetic disks, VLDB 1988). A search for docs
// with some of the terms reads as many bits of a doc as it has terms, 64 docs at a time, and needs no list of
// postings. Docs with many terms have more of a search's by chance. So where they need one more, a bit that reports
// whether a doc has few terms counts as one of the terms. Of the docs that are found the filters leave out nearly all
// that don't have the terms.

const (
	setBits         = 128
	docFilterBits   = 113 // a prime: the bits of a term differ
	docFilterProbes = 8   // bits of each term
	docTermsBytes   = 32
	docTermsPerRow  = 512 // of termColumn
	groupDocs       = 64  // docs that are looked at together
	blockGroups     = 64  // groups whose bits are stored together
	blockDocs       = groupDocs * blockGroups
	// mostCounted is the most terms in common that a search tells from less.
	mostCounted = 16
	// mostShort is the most terms of a doc that a search can count as short.
	mostShort = 15
)

// docTerms are the terms of a doc. The upper eight bits of the filter are their number, of at most 255.
type docTerms struct{ set, filter [2]uint64 }

// setBit is the bit of a term in a set. Signatures and the filter of the segment use other bits first.
func setBit(term uint64) int { return int(term >> 12 % setBits) }

// termFilter is the part of a filter that a doc with a term has.
func termFilter(term uint64) (f [2]uint64) {
	at, step := term>>20%docFilterBits, term>>32%(docFilterBits-1)+1
	for range docFilterProbes {
		f[at/64] |= 1 << (at % 64)
		at = (at + step) % docFilterBits
	}
	return f
}

func (t *docTerms) terms() int { return int(t.filter[1] >> 56) }

// addTerm adds a term to the docs that have it.
func addTerm(all []docTerms, term []byte, ords []uint32) {
	if len(term) != 8 {
		return
	}
	hash := binary.BigEndian.Uint64(term)
	bit, f := setBit(hash), termFilter(hash)
	for _, ord := range ords {
		t := &all[ord]
		t.set[bit/64] |= 1 << (bit % 64)
		t.filter[0] |= f[0]
		t.filter[1] |= f[1]
		if t.terms() < 255 {
			t.filter[1] += 1 << 56
		}
	}
}

// writeTerms adds a row with the terms of a segment's docs, from the given one on, and returns which one is the first
// of the next row.
func writeTerms(all []docTerms, from int, segment uint32, out *segmentRows) (next int) {
	next = min(from+docTermsPerRow, len(all))
	value := make([]byte, 0, docTermsBytes*(next-from))
	for i := range all[from:next] {
		t := &all[from+i]
		for _, part := range [...]uint64{t.set[0], t.set[1], t.filter[0], t.filter[1]} {
			value = binary.BigEndian.AppendUint64(value, part)
		}
	}
	out.add(binary.BigEndian.AppendUint32(segmentKey(segment, termColumn), uint32(from/docTermsPerRow)), value)
	return next
}

func readTerms(b []byte) docTerms {
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return docTerms{[2]uint64{n(0), n(1)}, [2]uint64{n(2), n(3)}}
}

// terms reads a row of the terms of a segment's docs; nil when the segment has none: an earlier version of the
// program wrote it.
func (r *SegmentReader) terms(s *Segment, row int) ([]byte, error) {
	value, err := r.value(binary.BigEndian.AppendUint32(r.prefix(s.Number, termColumn), uint32(row)))
	if err != nil || value == nil && row == 0 {
		return nil, err
	}
	if len(value) != docTermsBytes*min(docTermsPerRow, int(s.Docs)-row*docTermsPerRow) {
		return nil, r.wrap(fmt.Errorf("%w: row of %d bytes of the terms of documents", ErrFormat, len(value)))
	}
	return value, nil
}

// allTerms reads the terms of all docs of a segment; nil when it has none.
func (r *SegmentReader) allTerms(s *Segment) (all []docTerms, err error) {
	for len(all) < int(s.Docs) {
		row, err := r.terms(s, len(all)/docTermsPerRow)
		if err != nil || row == nil {
			return nil, err
		}
		for ; len(row) > 0; row = row[docTermsBytes:] {
			all = append(all, readTerms(row))
		}
	}
	return all, nil
}

// TermSlices are the terms of a segment's docs. They don't change once they are whole.
type TermSlices struct {
	docs, loaded int
	blocks       []sliceBlock // of blockDocs docs each, the last one of the rest
}

// sliceBlock are the terms of some docs.
type sliceBlock struct {
	groups int
	// sets has the groups of the docs with bit 0, then those with bit 1, and so on.
	sets []uint64
	// short has those of the docs with at most one term, then with at most two, and so on.
	short   []uint64
	filters [][2]uint64
}

// slicesBytes is the memory of the slices of a segment.
func slicesBytes(docs uint32) int64 {
	groups := (int64(docs) + groupDocs - 1) / groupDocs
	return (setBits+mostShort)*8*groups + 16*int64(docs)
}

// whole reports whether the terms of all docs are there.
func (s *TermSlices) whole() bool { return s.loaded == s.docs }

// load takes up a row of the column.
func (s *TermSlices) load(row []byte) {
	for len(row) > 0 {
		if s.loaded%blockDocs == 0 {
			docs := min(blockDocs, s.docs-s.loaded)
			groups := (docs + groupDocs - 1) / groupDocs
			s.blocks = append(s.blocks, sliceBlock{groups, make([]uint64, setBits*groups), make([]uint64, mostShort*groups), make([][2]uint64, docs)})
		}
		block, at := &s.blocks[s.loaded/blockDocs], s.loaded%blockDocs
		var low, high [groupDocs]uint64
		n := min(groupDocs, len(row)/docTermsBytes)
		for i := range n {
			t := readTerms(row[i*docTermsBytes:])
			low[i], high[i], block.filters[at+i] = t.set[0], t.set[1], t.filter
			for terms := max(t.terms(), 1); terms <= mostShort; terms++ {
				block.short[(terms-1)*block.groups+at/groupDocs] |= 1 << i
			}
		}
		transpose(&low)
		transpose(&high)
		for i := range groupDocs {
			block.sets[i*block.groups+at/groupDocs] = low[i]
			block.sets[(groupDocs+i)*block.groups+at/groupDocs] = high[i]
		}
		s.loaded += n
		row = row[n*docTermsBytes:]
	}
}

// Slices gives the terms of the docs of a segment, from memory. Until they are there it reads at most so many rows
// more, of 512 docs each, and returns nil, as it does where there is no memory for them, and for segments of earlier
// versions of the program. The reader must have blocks in memory.
func (r *SegmentReader) Slices(s *Segment, rows int) (*TermSlices, error) {
	kept := r.blocks.of(s.Number)
	if kept.slices == nil {
		if kept.unsliced || !r.blocks.roomForColumn(kept, slicesBytes(s.Docs)) {
			return nil, nil
		}
		kept.slices = &TermSlices{docs: int(s.Docs)}
	}
	for ; rows > 0 && !kept.slices.whole(); rows-- {
		row, err := r.terms(s, kept.slices.loaded/docTermsPerRow)
		if err != nil {
			return nil, err
		}
		if row == nil {
			kept.unsliced = true
			r.blocks.dropSlices(kept, s)
			return nil, nil
		}
		kept.slices.load(row)
	}
	if !kept.slices.whole() {
		return nil, nil
	}
	return kept.slices, nil
}

// dropSlices gives back the memory of the slices of a segment.
func (k *SegmentBlocks) dropSlices(kept *keptSegment, s *Segment) {
	kept.slices = nil
	k.roomForColumn(kept, -slicesBytes(s.Docs))
}

// transpose turns a matrix of 64 rows of bits into one of its columns (Warren, Hacker's Delight, section 7-3).
func transpose(rows *[64]uint64) {
	mask := uint64(1)<<32 - 1
	for width := 32; width > 0; width, mask = width/2, mask^mask<<(width/2) {
		for i := 0; i < 64; i = (i + width + 1) &^ width {
			swap := (rows[i]>>width ^ rows[i+width]) & mask
			rows[i] ^= swap << width
			rows[i+width] ^= swap
		}
	}
}

// SliceSearch goes through the docs of a segment that may have enough of some terms, the newest first.
type SliceSearch struct {
	s       *TermSlices
	bits    []int       // of the terms in sets
	filters [][2]uint64 // of the terms
	// slices are those of the terms in the block in hand, then that of short docs, or an empty one, and empty ones up
	// to a multiple of four.
	slices [][]uint64
	block  int                 // the block in hand; -1 before the first
	passed [blockGroups]uint64 // its docs that may have enough, by group
	group  int                 // the group behind the one in hand
	groups int                 // of the block
	first  int                 // the first doc of the group in hand
	found  uint64              // docs of it that are still to be given
	from   int                 // docs before this one are left out
}

var noDocs [blockGroups]uint64

// Search begins a search for docs with some of the terms, which are hashes.
func (s *TermSlices) Search(terms []uint64) *SliceSearch {
	q := &SliceSearch{s: s, slices: make([][]uint64, (len(terms)+1+3)/4*4), block: -1}
	for _, t := range terms {
		q.bits, q.filters = append(q.bits, setBit(t)), append(q.filters, termFilter(t))
	}
	return q
}

// Next gives the next doc that may have at least so many of the terms; false at the end. Docs with more than short
// terms in all, of 1 to 15, need one more. Beyond 16 it doesn't tell a doc with 16 terms from one with more. Numbers
// other than those of the last time hold from the next block on.
func (q *SliceSearch) Next(least, short int) (ord uint32, ok bool) {
	for q.found == 0 {
		if q.group == q.groups {
			next := max(q.block+1, q.from/blockDocs)
			if next >= len(q.s.blocks) {
				return 0, false
			}
			q.block, q.group = next, 0
			q.scan(&q.s.blocks[next], least, short)
		}
		q.first = q.block*blockDocs + q.group*groupDocs
		q.found = q.passed[q.group]
		q.group++
		q.leaveOut()
	}
	at := bits.TrailingZeros64(q.found)
	q.found &= q.found - 1
	return uint32(q.first + at), true
}

// Skip leaves out the docs before the given one.
func (q *SliceSearch) Skip(ord uint32) {
	q.from = int(ord)
	q.leaveOut()
}

// leaveOut leaves out docs of the group in hand that are before from.
func (q *SliceSearch) leaveOut() {
	if before := q.from - q.first; before > 0 {
		q.found &= ^uint64(0) << before
	}
}

// Shared tells how many of the terms a doc has at most, and how many terms it has in all; 255 are 255 or more. Of
// docs with less than least of the terms it tells that they have none.
func (q *SliceSearch) Shared(ord uint32, least int) (atMost, all int) {
	doc := &q.s.blocks[ord/blockDocs].filters[ord%blockDocs]
	atMost = len(q.filters)
	for i := range q.filters {
		missing := q.filters[i][0]&^doc[0] | q.filters[i][1]&^doc[1]
		atMost -= int((missing | -missing) >> 63) // a branch here could not be predicted
	}
	if atMost < least {
		return 0, 0
	}
	return atMost, int(doc[1] >> 56)
}

// scan looks for the docs of a block that may have enough terms.
func (q *SliceSearch) scan(block *sliceBlock, least, short int) {
	q.groups = block.groups
	for i := range q.slices {
		if q.slices[i] = noDocs[:q.groups]; i < len(q.bits) {
			q.slices[i] = block.sets[q.bits[i]*q.groups : (q.bits[i]+1)*q.groups]
		}
	}
	if short >= 1 && short <= mostShort {
		q.slices[len(q.bits)] = block.short[(short-1)*q.groups : short*q.groups]
		least++
	}
	begin := counterOf(mostCounted - min(max(least, 1), mostCounted))
	passed := q.passed[:q.groups]
	switch s := q.slices; len(s) {
	case 4:
		passedFour(passed, begin, s[0], s[1], s[2], s[3])
	case 8:
		passedEight(passed, begin, (*[8][]uint64)(s))
	default:
		for i := range passed {
			n, enough := begin, uint64(0)
			for s := q.slices; len(s) >= 4; s = s[4:] {
				enough |= n.add(s[0][i], s[1][i], s[2][i], s[3][i])
			}
			passed[i] = enough
		}
	}
}
