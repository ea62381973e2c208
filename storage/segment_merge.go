package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// SegmentMerge makes one segment of several, in steps that each read what they need and
// give some rows of the new segment. It keeps the docs of all of them in memory, some
// 60 bytes each, and the postings of one term.
type SegmentMerge struct {
	s       *Segments
	number  uint32
	of      []Segment // oldest first
	columns columns
	remap   [][]uint32 // by segment: from an ordinal to the new one
	began   bool
	wrote   bool   // the columns
	dict    int    // the dictionary in hand
	after   []byte // the term behind which to go on; nil: from the first
	hashes  []uint64
	terms   []docTerms // of the new docs
	written int        // of terms
	done    bool
}

// dropped stands for the new ordinal of postings that don't count.
const dropped = ^uint32(0)

// Merge begins to merge segments, the oldest first, into a new one. The segments must
// stay until it is done.
func (s *Segments) Merge(number uint32, of []Segment) *SegmentMerge {
	return &SegmentMerge{s: s, number: number, of: slices.Clone(of)}
}

// Done reports whether all rows were given.
func (m *SegmentMerge) Done() bool { return m.done }

// Segment is what a manifest says of the new segment. It is known after the first step.
func (m *SegmentMerge) Segment() Segment { return m.columns.segment(m.number) }

// Numbers of the segments that are merged.
func (m *SegmentMerge) Numbers() (all []uint32) {
	for i := range m.of {
		all = append(all, m.of[i].Number)
	}
	return all
}

// Begin reads the docs of the segments. replaced gives the age of the segment that holds
// what counts of a doc; 0 for docs of one segment alone.
func (m *SegmentMerge) Begin(r Reader, replaced func(Doc) uint32) (err error) {
	read, err := m.s.Reader(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, read.Close()) }()
	m.columns = columns{}
	type source struct {
		*SegmentColumns
		i int
	}
	sources := make([]source, len(m.of))
	m.remap = make([][]uint32, len(m.of))
	for i := range m.of {
		all, err := read.Columns(&m.of[i])
		if err != nil {
			return err
		}
		sources[i] = source{SegmentColumns: all}
		m.remap[i] = make([]uint32, len(all.Docs))
	}
	for {
		newest, at := Doc(0), -1
		for i := range sources {
			s := &sources[i]
			for s.i < len(s.Docs) && m.of[i].Age < replaced(s.Docs[s.i]) {
				m.remap[i][s.i] = dropped
				s.i++
			}
			if s.i < len(s.Docs) && (at < 0 || s.Docs[s.i] >= newest) {
				newest, at = s.Docs[s.i], i
			}
		}
		if at < 0 {
			if m.s.filtered() {
				m.terms = make([]docTerms, len(m.columns.docs))
			}
			m.began = true
			return nil
		}
		s := &sources[at]
		if n := len(m.columns.docs); n > 0 && m.columns.docs[n-1] == newest {
			return fmt.Errorf("%s: doc %d counts in two segments", m.s.Name, newest)
		}
		m.remap[at][s.i] = uint32(len(m.columns.docs))
		m.columns.add(&SegmentDoc{Doc: newest, Length: s.Lengths[s.i], Class: s.Class(s.i), Signature: s.Signatures[s.i]}, m.s.Measure)
		s.i++
	}
}

// Step gives rows of the new segment, of about so many bytes. It begins where the one
// before it ended.
func (m *SegmentMerge) Step(r Reader, size int) (rows []SegmentRow, err error) {
	if !m.began {
		return nil, errors.New("a merge goes on that has not begun")
	}
	var out segmentRows
	if !m.wrote {
		m.wrote = true
		m.columns.write(m.number, &out)
	}
	for len(m.columns.docs) > 0 && m.dict < len(m.s.Dictionaries) && out.size < size {
		if err := m.mergeTerms(r, &out, size); err != nil {
			return nil, err
		}
	}
	for m.dict == len(m.s.Dictionaries) && m.written < len(m.terms) && out.size < size {
		m.written = writeTerms(m.terms, m.written, m.number, &out)
	}
	m.done = len(m.columns.docs) == 0 || m.dict == len(m.s.Dictionaries) && m.written == len(m.terms)
	return out.drain(), nil
}

// mergeSource walks the terms of one segment.
type mergeSource struct {
	*SegmentReader
	e *entry
}

// mergeTerms merges terms of the dictionary in hand until there are rows enough.
func (m *SegmentMerge) mergeTerms(r Reader, out *segmentRows, size int) (err error) {
	sources := make([]mergeSource, len(m.of))
	defer func() {
		for i := range sources {
			if sources[i].SegmentReader != nil {
				err = errors.Join(err, sources[i].Close())
			}
		}
	}()
	for i := range sources {
		if sources[i].SegmentReader, err = m.s.Reader(r); err != nil {
			return err
		}
		if err := m.start(&sources[i], &m.of[i]); err != nil {
			return err
		}
	}
	d := &m.s.Dictionaries[m.dict]
	w := blockWriter{segment: m.number, kind: byte(m.dict), d: d, classes: m.columns.several(), out: out, hashes: m.hashes}
	var p TermPostings
	var term []byte
	for out.size < size {
		least := -1
		for i := range sources {
			if sources[i].e != nil && (least < 0 || bytes.Compare(sources[i].e.term, sources[least].e.term) < 0) {
				least = i
			}
		}
		if least < 0 {
			w.closeBlock()
			newTermFilter(w.hashes).write(m.number, out)
			m.dict, m.after, m.hashes = m.dict+1, nil, nil
			return nil
		}
		term = append(term[:0], sources[least].e.term...)
		p.reset()
		// The newest docs first, which is the new order as a rule.
		for i := len(sources) - 1; i >= 0; i-- {
			for s := &sources[i]; s.e != nil && bytes.Equal(s.e.term, term); {
				if err := m.gather(&p, s.e, m.remap[i], d.Width); err != nil {
					return err
				}
				if s.e, err = s.nextEntry(m.of[i].Number, m.dict); err != nil {
					return err
				}
			}
		}
		p.sort(d.Width)
		if len(p.ords) > 0 {
			w.add(term, &p)
			if d.Filtered {
				addTerm(m.terms, term, p.ords)
			}
		}
		m.after = append(m.after[:0], term...)
	}
	w.closeBlock()
	m.hashes = w.hashes
	return nil
}

// start moves a source to the first term behind m.after.
func (m *SegmentMerge) start(s *mergeSource, of *Segment) error {
	ok, err := s.seekTerm(of.Number, m.dict, m.after, 0, false)
	if err != nil || !ok {
		return err
	}
	for {
		if s.e, err = s.nextEntry(of.Number, m.dict); err != nil || s.e == nil {
			return err
		}
		if m.after == nil || bytes.Compare(s.e.term, m.after) > 0 {
			return nil
		}
	}
}

// gather adds the postings of a piece that count, under their new ordinals.
func (m *SegmentMerge) gather(p *TermPostings, e *entry, remap []uint32, width int) error {
	from := len(p.ords)
	if _, err := p.decodePiece(e.piece, e.ord, e.n, width); err != nil {
		return err
	}
	kept := from
	for i := from; i < len(p.ords); i++ {
		ord := p.ords[i]
		if int(ord) >= len(remap) {
			return fmt.Errorf("%w: ordinal %d of a segment of %d docs", ErrFormat, ord, len(remap))
		}
		if remap[ord] == dropped {
			continue
		}
		p.ords[kept] = remap[ord]
		copy(p.payloads[kept*width:(kept+1)*width], p.payloads[i*width:(i+1)*width])
		kept++
	}
	p.ords, p.payloads = p.ords[:kept], p.payloads[:kept*width]
	return nil
}

// sort puts the postings into ascending order.
func (p *TermPostings) sort(width int) {
	if slices.IsSorted(p.ords) {
		return
	}
	places := make([]uint64, len(p.ords))
	for i, ord := range p.ords {
		places[i] = uint64(ord)<<32 | uint64(i)
	}
	slices.Sort(places)
	ords, payloads := make([]uint32, 0, len(p.ords)), make([]byte, 0, len(p.payloads))
	for _, place := range places {
		i := int(place & 0xffff_ffff)
		ords = append(ords, uint32(place>>32))
		payloads = append(payloads, p.payloads[i*width:(i+1)*width]...)
	}
	p.ords, p.payloads = ords, payloads
}

// SegmentColumns are the columns of a segment, by ordinal.
type SegmentColumns struct {
	Docs       []Doc
	Lengths    []byte
	Signatures []uint64
	Table      []ClassTotals
	classes    []byte     // two bytes each; nil where there is one class
	terms      []docTerms // nil where the segment has none
}

func (c *SegmentColumns) class(ord int) int {
	if c.classes == nil {
		return 0
	}
	return int(binary.BigEndian.Uint16(c.classes[2*ord:]))
}

// Class of a doc.
func (c *SegmentColumns) Class(ord int) Class { return c.Table[c.class(ord)].Class }

// Columns reads all columns of a segment.
func (r *SegmentReader) Columns(s *Segment) (c *SegmentColumns, err error) {
	c = &SegmentColumns{Docs: make([]Doc, 0, s.Docs)}
	if c.Lengths, err = r.Lengths(s, nil); err != nil {
		return nil, err
	}
	if c.Table, err = r.Classes(s.Number); err != nil {
		return nil, err
	}
	if c.Signatures, err = r.allSignatures(s); err != nil {
		return nil, err
	}
	if c.terms, err = r.allTerms(s); err != nil {
		return nil, err
	}
	column := r.DocColumn(s)
	for ord := range s.Docs {
		doc, err := column.Doc(ord)
		if err != nil {
			return nil, err
		}
		if n := len(c.Docs); n > 0 && c.Docs[n-1] <= doc {
			return nil, r.wrap(fmt.Errorf("%w: docs out of order", ErrFormat))
		}
		c.Docs = append(c.Docs, doc)
	}
	if len(c.Table) > 1 {
		if c.classes, err = r.ClassColumn(s); err != nil {
			return nil, err
		}
	}
	if len(c.Table) == 0 && s.Docs > 0 {
		return nil, r.wrap(errColumn)
	}
	for i := range c.Docs {
		if c.class(i) >= len(c.Table) {
			return nil, r.wrap(fmt.Errorf("%w: class %d of %d", ErrFormat, c.class(i), len(c.Table)))
		}
	}
	return c, nil
}
