package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// SegmentReader reads segments of a workspace, through one cursor, at one moment.
type SegmentReader struct {
	s *Segments
	v *View
	// c is nil until it is needed by a reader with blocks in memory.
	c *Cursor
	// seek is space for keys.
	seek []byte
	er   entryReader
	// blocks are kept in memory; nil for most readers.
	blocks *SegmentBlocks
	keep   int // more blocks, as many
	// block is the one of them that is being read, unless that is the one which the cursor is at.
	block termBlock
	// user is the list whose next piece is the next entry; nil: none.
	user *PostingList
	// space has the memory of the lists; nil: each has its own.
	space *ListSpace
}

// Reader opens a reader, to be closed. r must not be used by others meanwhile.
func (s *Segments) Reader(r Reader) (*SegmentReader, error) {
	v := r.Reader()
	c, err := v.Cursor(s.ID)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return &SegmentReader{s: s, v: v, c: c}, nil
}

// ReaderWith opens a reader that uses the blocks which are kept in memory, and keeps more. r must read what is
// committed, and until Close no segment may change that is read.
func (s *Segments) ReaderWith(r Reader, blocks *SegmentBlocks) *SegmentReader {
	return &SegmentReader{s: s, v: r.Reader(), blocks: blocks}
}

// open makes the cursor, where there is none yet.
func (r *SegmentReader) open() (err error) {
	if r.c == nil {
		r.c, err = r.v.Cursor(r.s.ID)
	}
	return err
}

// Close ends the reader.
func (r *SegmentReader) Close() error {
	if r.c == nil {
		return nil
	}
	return r.c.Close()
}

// prefix makes the beginning of a key in the reader's space.
func (r *SegmentReader) prefix(segment uint32, kind byte) []byte {
	r.seek = append(binary.BigEndian.AppendUint32(r.seek[:0], segment), kind)
	return r.seek
}

// within reports whether the cursor is at a row of a segment's kind.
func (r *SegmentReader) within(segment uint32, kind byte) bool {
	f := r.c.Fields()
	return len(f) >= 5 && binary.BigEndian.Uint32(f) == segment && f[4] == kind
}

// keyBytes are those of a row's fields in front of its term: of segment and dictionary.
const keyBytes = 5

// begin begins to read the entries of the block that the cursor is at, from about a
// term on; nil: from the first.
func (r *SegmentReader) begin(term []byte) ([]byte, error) {
	r.block = termBlock{}
	value, err := r.c.Value()
	if err != nil {
		return nil, err
	}
	return value, r.er.begin(value, term)
}

// seekTerm moves to the block with the first postings of a term from an ordinal on, or
// behind the term; false when there is none. keep says to keep the block in memory.
func (r *SegmentReader) seekTerm(segment uint32, dictionary int, term []byte, ord uint32, keep bool) (bool, error) {
	r.user, r.keep = nil, 0
	if keep {
		r.keep = math.MaxInt
	}
	r.seek = binary.BigEndian.AppendUint32(append(r.prefix(segment, byte(dictionary)), term...), ord)
	return r.seekBlock(segment, dictionary, term)
}

// seekBlock moves to the first block that is not before the key in the reader's space, and in it to about a term.
func (r *SegmentReader) seekBlock(segment uint32, dictionary int, term []byte) (bool, error) {
	if r.block = r.kept(segment, dictionary); r.block.entries != nil {
		return true, r.er.begin(r.block.entries, term)
	}
	if err := r.open(); err != nil {
		return false, err
	}
	if !r.c.SeekGE(r.seek) || !r.within(segment, byte(dictionary)) {
		return false, r.c.Err()
	}
	value, err := r.begin(term)
	if err == nil && r.keep > 0 {
		r.keep--
		r.keepBlock(segment, dictionary, value)
	}
	return true, err
}

// kept gives the block in memory that a seek for the key in the reader's space finds; one without entries when there
// is none.
func (r *SegmentReader) kept(segment uint32, dictionary int) termBlock {
	switch {
	case r.blocks != nil && r.blocks.dictionary == dictionary:
		return r.blocks.find(segment, r.seek[keyBytes:])
	case r.v.segments.cache != nil:
		return r.v.segments.find(r.run(segment, byte(dictionary)), r.seek[keyBytes:])
	}
	return termBlock{}
}

// keepBlock keeps the block that the cursor is at, which a seek for the key in the reader's space found, in memory.
func (r *SegmentReader) keepBlock(segment uint32, dictionary int, entries []byte) {
	key, last := r.seek[keyBytes:], r.c.Fields()[keyBytes:]
	switch {
	case r.blocks != nil && r.blocks.dictionary == dictionary:
		r.blocks.add(segment, key, last, entries)
	case r.v.segments.cache != nil:
		if first := firstKey(entries); first != nil && bytes.Compare(first, key) < 0 {
			key = first
		}
		r.v.segments.add(r.run(segment, byte(dictionary)), key, last, entries)
	}
}

// run names the rows of a kind of a segment to the view's cache.
func (r *SegmentReader) run(segment uint32, kind byte) segmentRun {
	return segmentRun{r.v.prefix, segment, kind}
}

// nextBlock moves to the next block of a dictionary; false when there is none.
func (r *SegmentReader) nextBlock(segment uint32, dictionary int) (bool, error) {
	if r.block.entries != nil {
		// The least key behind that of the block in memory.
		r.seek = append(append(r.prefix(segment, byte(dictionary)), r.block.last...), 0)
		return r.seekBlock(segment, dictionary, nil)
	}
	if !r.c.Next() || !r.within(segment, byte(dictionary)) {
		return false, r.c.Err()
	}
	_, err := r.begin(nil)
	return true, err
}

// resume goes on behind the piece of a list that is in a block in memory.
func (r *SegmentReader) resume(l *PostingList) {
	r.user, r.keep, r.block = nil, 0, l.block
	if l.Total <= keptPostings {
		r.keep = math.MaxInt
	}
	r.er.rest, r.er.bad, r.er.e.term = l.rest, false, append(r.er.e.term[:0], l.term...)
}

// nextEntry reads the next entry of a dictionary, if need be of the next block.
func (r *SegmentReader) nextEntry(segment uint32, dictionary int) (*entry, error) {
	for {
		ok, err := r.er.next(&r.s.Dictionaries[dictionary])
		if err != nil || ok {
			return &r.er.e, err
		}
		if there, err := r.nextBlock(segment, dictionary); err != nil || !there {
			return nil, err
		}
	}
}

// List looks up a term; nil when the segment doesn't have it.
func (r *SegmentReader) List(segment uint32, dictionary int, term []byte) (*PostingList, error) {
	ok, err := r.seekTerm(segment, dictionary, term, 0, true)
	if err != nil || !ok {
		return nil, r.wrap(err)
	}
	for {
		e, err := r.nextEntry(segment, dictionary)
		if err != nil || e == nil {
			return nil, r.wrap(err)
		}
		switch c := bytes.Compare(e.term, term); {
		case c > 0:
			return nil, nil
		case c == 0 && e.first:
			l := r.space.list()
			l.r, l.segment, l.dictionary, l.term, l.Total = r, segment, dictionary, r.space.copy(term), e.total
			l.Counts = append(l.Counts, e.count...)
			l.piece, l.first, l.n, l.last = e.piece, e.ord, e.n, e.n == e.total
			l.block, l.rest = r.block, r.er.rest
			if l.block.entries == nil {
				l.piece = r.space.copy(e.piece)
			}
			return l, nil
		}
	}
}

func (r *SegmentReader) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", r.s.Name, err)
}

// keptBehind is how many blocks behind the first one are kept for the terms with a prefix, of which there may be many.
const keptBehind = 2

// Terms calls fn for each piece of the postings of the terms that begin with prefix, in order, until it returns
// false. The ordinals are valid until fn returns, which must not use the reader; decode leaves them out when it returns false.
func (r *SegmentReader) Terms(segment uint32, dictionary int, prefix []byte, decode func(total int) bool, fn func(term []byte, first bool, total int, ords []uint32) bool) error {
	if ok, err := r.seekTerm(segment, dictionary, prefix, 0, true); err != nil || !ok {
		return r.wrap(err)
	}
	r.keep = keptBehind
	var p TermPostings
	width, want := r.s.Dictionaries[dictionary].Width, false
	for {
		e, err := r.nextEntry(segment, dictionary)
		if err != nil || e == nil {
			return r.wrap(err)
		}
		if !bytes.HasPrefix(e.term, prefix) {
			if bytes.Compare(e.term, prefix) > 0 {
				return nil
			}
			continue
		}
		if err := r.v.Work(1); err != nil {
			return r.wrap(err)
		}
		if e.first {
			want = decode(e.total)
		}
		p.reset()
		if want {
			if _, err := p.decodePiece(e.piece, e.ord, e.n, width); err != nil {
				return r.wrap(err)
			}
		}
		if !fn(e.term, e.first, e.total, p.ords) {
			return nil
		}
	}
}

// value reads a row of a segment; nil when there is none.
func (r *SegmentReader) value(fields []byte) ([]byte, error) {
	value, err := r.v.Value(r.s.ID, fields, nil)
	return value, r.wrap(err)
}

var errColumn = errors.New("a column of the segment lacks a block")

// column reads a block of a column into buf, which may be nil, or returns the one that is kept in memory.
func (r *SegmentReader) column(segment uint32, kind byte, block int, buf []byte) ([]byte, error) {
	if r.blocks != nil && kind == docColumn {
		s := r.blocks.of(segment)
		return r.blocks.column(s, &s.docs, block, func() ([]byte, error) { return r.readColumn(segment, kind, block, nil) })
	}
	return r.readColumn(segment, kind, block, buf)
}

func (r *SegmentReader) readColumn(segment uint32, kind byte, block int, buf []byte) ([]byte, error) {
	value, err := r.row(binary.BigEndian.AppendUint32(r.prefix(segment, kind), uint32(block)), buf)
	if err == nil && value == nil {
		err = r.wrap(errColumn)
	}
	return value, err
}

// row reads a row into buf, which may be nil, or returns the one that the view's cache has. That must not be changed. It
// returns nil when there is none.
func (r *SegmentReader) row(fields, buf []byte) ([]byte, error) {
	m := r.v.segments
	if m.cache == nil {
		value, err := r.v.Value(r.s.ID, fields, buf)
		return value, r.wrap(err)
	}
	run, key := r.run(binary.BigEndian.Uint32(fields), fields[keyBytes-1]), fields[keyBytes:]
	if kept := m.find(run, key); kept.entries != nil {
		return kept.entries, nil
	}
	value, err := r.value(fields)
	if err == nil && value != nil {
		m.add(run, key, key, value)
	}
	return value, err
}

// appendColumn appends a block of a column.
func (r *SegmentReader) appendColumn(b []byte, segment uint32, kind byte, block int) ([]byte, error) {
	if m := r.v.segments; m.cache != nil {
		part, err := r.readColumn(segment, kind, block, nil)
		return append(b, part...), err
	}
	b, ok, err := r.v.AppendValue(r.s.ID, binary.BigEndian.AppendUint32(r.prefix(segment, kind), uint32(block)), b)
	if err == nil && !ok {
		err = errColumn
	}
	return b, r.wrap(err)
}

// Lengths reads the lengths of all docs of a segment into b, by ordinal.
func (r *SegmentReader) Lengths(s *Segment, b []byte) ([]byte, error) {
	b = b[:0]
	for i := 0; i < int(s.Docs); i += lengthsPerBlock {
		var err error
		if b, err = r.appendColumn(b, s.Number, lengthColumn, i/lengthsPerBlock); err != nil {
			return nil, err
		}
	}
	if len(b) != int(s.Docs) {
		return nil, r.wrap(errColumn)
	}
	return b, nil
}

// ClassColumn reads the places of the classes of all docs, two bytes each, by ordinal, of
// a segment with several classes.
func (r *SegmentReader) ClassColumn(s *Segment) (b []byte, err error) {
	for i := 0; i < int(s.Docs); i += classesPerBlock {
		part, err := r.column(s.Number, classColumn, i/classesPerBlock, nil)
		if err != nil {
			return nil, err
		}
		b = append(b, part...)
	}
	if len(b) != 2*int(s.Docs) {
		return nil, r.wrap(errColumn)
	}
	return b, nil
}

// Classes reads the classes of a segment, by their places in ClassCount.
func (r *SegmentReader) Classes(segment uint32) (all []ClassTotals, err error) {
	b, err := r.row(r.prefix(segment, classTable), nil)
	if err != nil {
		return nil, err
	}
	whole := b
	for len(b) > 0 {
		var t ClassTotals
		if len(b) < len(t.Group)+1 {
			return nil, r.wrap(fmt.Errorf("%w: table of classes of %d bytes", ErrFormat, len(whole)))
		}
		t.Restricted = b[copy(t.Group[:], b)] != 0
		b = b[len(t.Group)+1:]
		docs, n := binary.Uvarint(b)
		length, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 {
			return nil, r.wrap(fmt.Errorf("%w: table of classes of %d bytes", ErrFormat, len(whole)))
		}
		t.Docs, t.Length, b = docs, length, b[n+m:]
		all = append(all, t)
	}
	return all, nil
}
