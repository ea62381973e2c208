package storage

import "slices"

// SegmentBuilder makes a segment in memory, from docs that come newest first.
type SegmentBuilder struct {
	s       *Segments
	columns columns
	terms   []map[string]*TermPostings
}

// NewBuilder begins a segment.
func (s *Segments) NewBuilder() *SegmentBuilder {
	b := &SegmentBuilder{s: s}
	for range s.Dictionaries {
		b.terms = append(b.terms, map[string]*TermPostings{})
	}
	return b
}

// Doc begins a doc, which must be older than those before. The last one's ordinal is
// Docs()-1.
func (b *SegmentBuilder) Doc(d *SegmentDoc) { b.columns.add(d, b.s.Measure) }

// Docs is the number of docs.
func (b *SegmentBuilder) Docs() int { return len(b.columns.docs) }

// Term gives the postings of a term of a dictionary, to add to. Terms are encoded so
// that none is the beginning of another.
func (b *SegmentBuilder) Term(dictionary int, term []byte) *TermPostings {
	p := b.terms[dictionary][string(term)]
	if p == nil {
		p = &TermPostings{}
		b.terms[dictionary][string(term)] = p
	}
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
		sorted := make([]string, 0, len(b.terms[i]))
		for term := range b.terms[i] {
			sorted = append(sorted, term)
		}
		slices.Sort(sorted)
		for _, term := range sorted {
			w.add([]byte(term), b.terms[i][term])
		}
		w.end()
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
