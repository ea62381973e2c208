package storage

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"
)

// Ords is a stream of ordinals of a segment, ascending: the newest docs first.
type Ords interface {
	// Next gives the first ordinal not before from; false when there is none. from never
	// falls from call to call.
	Next(from uint32) (uint32, bool, error)
}

// Next implements Ords.
func (l *PostingList) Next(from uint32) (uint32, bool, error) {
	if err := l.Seek(from); err != nil || !l.Valid() {
		return 0, false, err
	}
	return l.Ord(), true, nil
}

// OrdList streams ordinals given in ascending order.
type OrdList []uint32

// Next implements Ords.
func (l *OrdList) Next(from uint32) (uint32, bool, error) {
	if len(*l) > 0 && (*l)[0] < from {
		*l = (*l)[sort.Search(len(*l), func(i int) bool { return (*l)[i] >= from }):]
	}
	if len(*l) == 0 {
		return 0, false, nil
	}
	return (*l)[0], true, nil
}

// OrdSet streams ordinals given in any order: bit i of its words is for ordinal i.
type OrdSet []uint64

// NewOrdSet gives a stream of the ordinals of a segment with so many docs, and none of more.
func NewOrdSet(ords []uint32, docs uint32) OrdSet {
	set := make(OrdSet, (uint64(docs)+63)/64)
	for _, ord := range ords {
		if ord < docs {
			set[ord/64] |= 1 << (ord % 64)
		}
	}
	return set
}

// Next implements Ords.
func (s OrdSet) Next(from uint32) (uint32, bool, error) {
	word := int(from / 64)
	if word >= len(s) {
		return 0, false, nil
	}
	left := s[word] &^ (1<<(from%64) - 1)
	for left == 0 {
		if word++; word == len(s) {
			return 0, false, nil
		}
		left = s[word]
	}
	return uint32(64*word + bits.TrailingZeros64(left)), true, nil
}

// AnyOrds streams what is in any of the streams.
type AnyOrds []Ords

// Next implements Ords.
func (a AnyOrds) Next(from uint32) (least uint32, found bool, err error) {
	for _, s := range a {
		ord, ok, err := s.Next(from)
		if err != nil {
			return 0, false, err
		}
		if ok && (!found || ord < least) {
			least, found = ord, true
		}
	}
	return least, found, nil
}

// AllOrds streams what is in all of the streams; every ordinal when there are none.
type AllOrds []Ords

// Next implements Ords.
func (a AllOrds) Next(from uint32) (uint32, bool, error) {
	if len(a) == 0 {
		return from, true, nil
	}
	for agree, i := 0, 0; ; i = (i + 1) % len(a) {
		ord, ok, err := a[i].Next(from)
		if err != nil || !ok {
			return 0, false, err
		}
		if ord == from && agree > 0 {
			agree++
		} else {
			from, agree = ord, 1
		}
		if agree == len(a) {
			return ord, true, nil
		}
	}
}

// DocColumn turns ordinals of a segment into docs and back.
type DocColumn struct {
	r      *SegmentReader
	s      *Segment
	firsts []byte // the first doc of each block; nil until Ord needs them
	block  []byte
	at     int // number of the block; -1: block has none
}

// DocColumn reads which doc has an ordinal, for one goroutine.
func (r *SegmentReader) DocColumn(s *Segment) *DocColumn {
	return &DocColumn{r: r, s: s, at: -1}
}

func (c *DocColumn) loadFirsts() error {
	if c.firsts != nil {
		return nil
	}
	firsts, err := c.r.row(c.r.prefix(c.s.Number, docFirsts), nil)
	if err == nil && len(firsts) != 8*((int(c.s.Docs)+docsPerBlock-1)/docsPerBlock) {
		err = c.r.wrap(fmt.Errorf("%w: %d bytes of first docs of a segment of %d", ErrFormat, len(firsts), c.s.Docs))
	}
	if err == nil {
		c.firsts = firsts
	}
	return err
}

func (c *DocColumn) load(block int) (err error) {
	if c.at == block {
		return nil
	}
	c.at = -1
	own := c.block
	if c.r.blocks != nil || c.r.v.segments.cache != nil {
		own = nil // others read it
	}
	if c.block, err = c.r.column(c.s.Number, docColumn, block, own); err == nil {
		if len(c.block) != 8*min(docsPerBlock, int(c.s.Docs)-block*docsPerBlock) {
			return c.r.wrap(fmt.Errorf("%w: block of %d bytes of docs", ErrFormat, len(c.block)))
		}
		c.at = block
	}
	return err
}

// Doc gives the doc of an ordinal.
func (c *DocColumn) Doc(ord uint32) (Doc, error) {
	if ord >= c.s.Docs {
		return 0, c.r.wrap(fmt.Errorf("%w: ordinal %d of a segment of %d docs", ErrFormat, ord, c.s.Docs))
	}
	if err := c.load(int(ord) / docsPerBlock); err != nil {
		return 0, err
	}
	return Doc(binary.BigEndian.Uint64(c.block[ord%docsPerBlock*8:])), nil
}

// Ord gives the ordinal of the newest doc not newer than most; the number of docs when
// there is none.
func (c *DocColumn) Ord(most Doc) (uint32, error) {
	if err := c.loadFirsts(); err != nil {
		return 0, err
	}
	at := func(b []byte, i int) Doc { return Doc(binary.BigEndian.Uint64(b[8*i:])) }
	// The block before the first one that begins at or below most may still end there.
	block := sort.Search(len(c.firsts)/8, func(i int) bool { return at(c.firsts, i) <= most })
	if block > 0 {
		if err := c.load(block - 1); err != nil {
			return 0, err
		}
		n := len(c.block) / 8
		if i := sort.Search(n, func(i int) bool { return at(c.block, i) <= most }); i < n {
			return uint32((block-1)*docsPerBlock + i), nil
		}
	}
	return min(uint32(block*docsPerBlock), c.s.Docs), nil
}

// SegmentDocs streams the docs of a stream of a segment's ordinals.
type SegmentDocs struct {
	ords    Ords
	column  *DocColumn
	skip    func(Doc) (bool, error)
	current Doc
	next    uint32 // the ordinal behind current's
	begun   bool
	ended   bool
}

// Docs streams the docs of a segment's ordinals, but those that skip says true of; nil:
// none. skip is asked about each doc once, the newest first.
func (r *SegmentReader) Docs(s *Segment, ords Ords, skip func(Doc) (bool, error)) *SegmentDocs {
	return &SegmentDocs{ords: ords, column: r.DocColumn(s), skip: skip}
}

// Next implements Docs.
func (d *SegmentDocs) Next(most Doc) (Doc, bool, error) {
	if d.ended || d.begun && d.current <= most {
		return d.current, !d.ended, nil
	}
	from := d.next
	// A leap to most is needed only where the next doc may be newer.
	if most < d.column.s.Newest && (!d.begun || d.current-1 > most) {
		ord, err := d.column.Ord(most)
		if err != nil {
			return 0, false, err
		}
		from = max(from, ord)
	}
	d.begun = true
	for {
		ord, ok, err := d.ords.Next(from)
		if err != nil {
			return 0, false, err
		}
		if !ok || ord >= d.column.s.Docs {
			d.ended = true
			return 0, false, nil
		}
		from = ord + 1
		doc, err := d.column.Doc(ord)
		if err != nil {
			return 0, false, err
		}
		skip := false
		if d.skip != nil {
			if skip, err = d.skip(doc); err != nil {
				return 0, false, err
			}
		}
		if !skip {
			d.current, d.next = doc, from
			return doc, true, nil
		}
	}
}

// Close implements Docs; the reader outlives it.
func (*SegmentDocs) Close() error { return nil }
