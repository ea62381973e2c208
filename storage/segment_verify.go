package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// EachPosting goes through all postings of a dictionary of a segment, for the verifier.
// The arguments of fn are valid until it returns. Postings that are out of order, or not as
// many as their term says, are an error.
func (r *SegmentReader) EachPosting(s *Segment, c *SegmentColumns, dictionary int, fn func(term []byte, ord uint32, payload []byte)) error {
	if ok, err := r.seekTerm(s.Number, dictionary, nil, 0, false); err != nil || !ok {
		return r.wrap(err)
	}
	d := &r.s.Dictionaries[dictionary]
	t := termCheck{columns: c}
	filter, err := r.Filter(s.Number)
	if err != nil {
		return err
	}
	var p TermPostings
	terms := make([]docTerms, len(c.Docs))
	for {
		e, err := r.nextEntry(s.Number, dictionary)
		if err != nil {
			return r.wrap(err)
		}
		if e == nil {
			if d.Filtered && c.terms != nil && !slices.Equal(terms, c.terms) {
				return r.wrap(fmt.Errorf("%w: the terms of the documents are not those of the postings", ErrFormat))
			}
			return r.wrap(t.end())
		}
		if e.first {
			if err := t.end(); err != nil {
				return r.wrap(err)
			}
			if bytes.Compare(e.term, t.term) <= 0 && t.term != nil {
				return r.wrap(fmt.Errorf("%w: the term %q is out of order", ErrFormat, e.term))
			}
			if d.Filtered && (len(e.term) != 8 || !filter.MayHave(binary.BigEndian.Uint64(e.term))) {
				return r.wrap(fmt.Errorf("%w: the filter lacks the term %x", ErrFormat, e.term))
			}
			t.begin(e)
		}
		p.reset()
		if _, err := p.decodePiece(e.piece, e.ord, e.n, d.Width); err != nil {
			return r.wrap(err)
		}
		for i, ord := range p.ords {
			if !bytes.Equal(e.term, t.term) || t.found > 0 && ord <= t.last || int(ord) >= len(c.Docs) {
				return r.wrap(fmt.Errorf("%w: a posting of %q is out of order", ErrFormat, e.term))
			}
			t.add(ord)
			fn(e.term, ord, p.payloads[i*d.Width:(i+1)*d.Width])
		}
		if d.Filtered {
			addTerm(terms, e.term, p.ords)
		}
	}
}

// termCheck counts the postings of a term.
type termCheck struct {
	columns *SegmentColumns
	term    []byte
	total   int
	found   int
	last    uint32
	counts  map[uint32]int64 // what is said by class, less what was found
}

func (t *termCheck) begin(e *entry) {
	t.term, t.total, t.found, t.counts = append([]byte{}, e.term...), e.total, 0, nil
	if len(e.count) > 0 {
		t.counts = map[uint32]int64{}
		for _, c := range e.count {
			t.counts[c.Class] += int64(c.Count)
		}
	}
}

func (t *termCheck) add(ord uint32) {
	t.found++
	t.last = ord
	if t.counts != nil {
		t.counts[uint32(t.columns.class(int(ord)))]--
	}
}

func (t *termCheck) end() error {
	if t.found != t.total {
		return fmt.Errorf("%w: the term %q has %d postings and says %d", ErrFormat, t.term, t.found, t.total)
	}
	for class, n := range t.counts {
		if n != 0 {
			return fmt.Errorf("%w: the term %q counts %d postings of class %d too many", ErrFormat, t.term, n, class)
		}
	}
	return nil
}

// Totals proves that the table of classes and the manifest count the docs right.
func (c *SegmentColumns) Totals(s *Segment, measure func(byte) uint64) error {
	again := columns{}
	for ord, doc := range c.Docs {
		again.add(&SegmentDoc{Doc: doc, Length: c.Lengths[ord], Class: c.Class(ord)}, measure)
	}
	for _, t := range again.table {
		same := false
		for _, said := range c.Table {
			same = same || said == t
		}
		if !same {
			return fmt.Errorf("has %d documents of length %d in a class, and doesn't say so", t.Docs, t.Length)
		}
	}
	if found := again.segment(s.Number); found.Length != s.Length || found.Newest != s.Newest || found.Docs != s.Docs || len(again.table) != len(c.Table) {
		return fmt.Errorf("the manifest says %d documents of length %d, there are %d of %d", s.Docs, s.Length, found.Docs, found.Length)
	}
	return nil
}

// SegmentOf tells which segment a row belongs to.
func SegmentOf(fields []byte) (uint32, error) {
	if len(fields) < 5 {
		return 0, errors.New("its key is too short")
	}
	return binary.BigEndian.Uint32(fields), nil
}
