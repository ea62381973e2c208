package storage

import (
	"slices"
	"strings"
)

// SegmentBuilder makes a segment in memory, from docs that come newest first.
type SegmentBuilder struct {
	s       *Segments
	columns columns
	terms   [][]builtTerm
	// slab is space for postings, most of which are one or two of a term.
	slab     []TermPostings
	ords     []uint32
	payloads []byte
}

type builtTerm struct {
	term  string
	posts *TermPostings
}

// NewBuilder begins a segment.
func (s *Segments) NewBuilder() *SegmentBuilder {
	return &SegmentBuilder{s: s, terms: make([][]builtTerm, len(s.Dictionaries))}
}

// Doc begins a doc, which must be older than those before. The last one's ordinal is
// Docs()-1.
func (b *SegmentBuilder) Doc(d *SegmentDoc) { b.columns.add(d, b.s.Measure) }

// Docs is the number of docs.
func (b *SegmentBuilder) Docs() int { return len(b.columns.docs) }

// Term begins the postings of a term of a dictionary, which must be new to it. Terms are
// encoded so that none is the beginning of another.
func (b *SegmentBuilder) Term(dictionary int, term string) *TermPostings {
	const slab, few = 256, 2
	if len(b.slab) == 0 {
		b.slab = make([]TermPostings, slab)
	}
	p := &b.slab[0]
	b.slab = b.slab[1:]
	width := few * b.s.Dictionaries[dictionary].Width
	if len(b.ords) < few {
		b.ords = make([]uint32, few*slab)
	}
	if len(b.payloads) < width {
		b.payloads = make([]byte, slab*width)
	}
	p.ords, b.ords = b.ords[:0:few], b.ords[few:]
	p.payloads, b.payloads = b.payloads[:0:width], b.payloads[width:]
	b.terms[dictionary] = append(b.terms[dictionary], builtTerm{term, p})
	return p
}

// Add appends a posting, or adds to the payload of the last one if that is of the
// same ordinal: a term's first byte of payload is a weight that ends at 255.
func (p *TermPostings) Add(ord uint32, weight byte) {
	if last := len(p.ords) - 1; last >= 0 && p.ords[last] == ord {
		p.payloads[last] = min(p.payloads[last], 255-weight) + weight
		return
	}
	p.ords, p.payloads = append(p.ords, ord), append(p.payloads, weight)
}

// Has appends a posting without a payload, unless it is there.
func (p *TermPostings) Has(ord uint32) {
	if last := len(p.ords) - 1; last < 0 || p.ords[last] != ord {
		p.ords = append(p.ords, ord)
	}
}

// Put appends a posting with a payload of the dictionary's width.
func (p *TermPostings) Put(ord uint32, payload []byte) {
	p.ords, p.payloads = append(p.ords, ord), append(p.payloads, payload...)
}

// Rows gives the rows of the segment under a number, and what a manifest says of it.
func (b *SegmentBuilder) Rows(number uint32) ([]SegmentRow, Segment) {
	var out segmentRows
	b.columns.write(number, &out)
	for i := range b.s.Dictionaries {
		w := blockWriter{segment: number, kind: byte(i), d: &b.s.Dictionaries[i], classes: b.columns.several(), out: &out}
		slices.SortFunc(b.terms[i], func(a, b builtTerm) int { return strings.Compare(a.term, b.term) })
		var term []byte
		for _, t := range b.terms[i] {
			term = append(term[:0], t.term...)
			w.add(term, t.posts)
		}
		w.end()
		newTermFilter(w.hashes).write(number, &out)
	}
	return out.take(), b.columns.segment(number)
}

// segment is what a manifest says of a segment with these columns.
func (c *columns) segment(number uint32) Segment {
	s := Segment{Number: number, Docs: uint32(len(c.docs))}
	if len(c.docs) > 0 {
		s.Newest = c.docs[0]
	}
	for _, t := range c.table {
		s.Length += t.Length
	}
	return s
}
