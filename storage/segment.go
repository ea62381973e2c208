package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// Segments is the table of a log-structured inverted index. A segment holds the
// postings of a set of docs, is written once and never changed; merging writes a new
// segment from several and deletes these. Which segments count is said elsewhere, by
// a Manifest.
//
// Within a segment docs are numbered from 0, the newest first: a posting names a doc
// by this number, its ordinal. The rows of a segment are, behind its number:
//
//   - for each dictionary, blocks of about blockBytes: terms in order, each with its
//     postings in ascending order of ordinals. The key of a block is its last term and
//     the last of that term's ordinals, so that one seek finds the postings of a term
//     from any ordinal on. A long list is cut into pieces of piecePostings.
//   - columns with the docs by ordinal, their lengths, classes and signatures, in blocks
//     of a fixed number, and the table of classes; for the dictionary that is filtered the
//     filter, and for each doc which of them it may have.
//
// A class is what decides who may see a doc. Dictionaries that are Classed count
// the postings of a term by class, so that a caller can be told how frequent a term is
// among the docs that the caller sees, and among no others.
type Segments struct {
	ID           TableID
	Name         string
	Dictionaries []Dictionary // their number in front of a term is their place here
	// Measure turns the byte that is kept of a doc's length into the length that is
	// added up.
	Measure func(byte) uint64
}

// Dictionary is one of the sets of terms of a segment.
type Dictionary struct {
	Name    string
	Width   int  // bytes of each posting's payload
	Classed bool // with numbers of postings by class
	// Filtered: a filter tells which terms may be there. They are hashes of 8 bytes. At
	// most one dictionary of a segment is filtered.
	Filtered bool
}

// filtered reports whether one of the dictionaries is filtered.
func (s *Segments) filtered() bool {
	return slices.ContainsFunc(s.Dictionaries, func(d Dictionary) bool { return d.Filtered })
}

const (
	blockBytes    = 4 << 10
	piecePostings = 256
	// entriesPerStart is how many entries of a block share the beginnings of their terms:
	// a look-up finds the nearest whole term by bisection.
	entriesPerStart = 16

	// Columns, in front of the number of a block.
	docColumn    = 0xf0 // 8 bytes each
	docFirsts    = 0xf1 // one row: the first doc of each block of docColumn
	lengthColumn = 0xf2 // 1 byte each
	classColumn  = 0xf3 // 2 bytes each; left out where there is one class
	classTable   = 0xf4 // one row
	filterColumn = 0xf5 // filterBytes each
	// signatureColumn has 8 bytes each. Segments of earlier versions lack it.
	signatureColumn = 0xf6
	// termColumn has 32 bytes each. Segments of earlier versions lack it.
	termColumn = 0xf7

	docsPerBlock    = 512
	lengthsPerBlock = 4096
	classesPerBlock = 2048
	// maxClasses bounds the classes of a segment.
	maxClasses = 1 << 16
)

// Class is a class of docs: those of a group, for everyone who sees that group or, if
// restricted, for some.
type Class struct {
	Group      ID
	Restricted bool
}

// ClassTotals say how many docs of a class a segment has, and of what length together.
type ClassTotals struct {
	Class
	Docs, Length uint64
}

// SegmentRow is a row to be written: its fields behind the table, and its value.
type SegmentRow struct{ Fields, Value []byte }

// SegmentDoc is what a segment holds of a doc beside its postings.
type SegmentDoc struct {
	Doc    Doc
	Length byte // see Segments.Measure
	Class  Class
	// Signature is a set in 64 bits, of the caller's choice: readers leave out docs by it without reading them.
	Signature uint64
}

func segmentKey(segment uint32, kind byte) Key {
	return append(binary.BigEndian.AppendUint32(make(Key, 0, 48), segment), kind)
}

// SegmentPrefix is what the fields of all rows of a segment begin with.
func SegmentPrefix(segment uint32) Key { return binary.BigEndian.AppendUint32(nil, segment) }

// TermPostings are the postings of a term: ascending ordinals, each with a payload.
type TermPostings struct {
	ords     []uint32
	payloads []byte
}

func (p *TermPostings) reset() { p.ords, p.payloads = p.ords[:0], p.payloads[:0] }

// appendPiece encodes postings [from, to). The first ordinal is not part of it.
func (p *TermPostings) appendPiece(b []byte, from, to, width int) []byte {
	last := p.ords[from]
	for i := from; i < to; i++ {
		step := uint64(p.ords[i] - last)
		last = p.ords[i]
		switch width {
		case 0:
			if i > from {
				b = binary.AppendUvarint(b, step)
			}
		case 1: // nearly all are 1
			if w := p.payloads[i]; w != 1 {
				b = append(binary.AppendUvarint(b, step<<1|1), w)
			} else {
				b = binary.AppendUvarint(b, step<<1)
			}
		default:
			b = append(binary.AppendUvarint(b, step), p.payloads[i*width:(i+1)*width]...)
		}
	}
	return b
}

func errPiece(b []byte) error {
	return fmt.Errorf("%w: postings of %d bytes", ErrFormat, len(b))
}

// decodePiece appends n postings. The first is at ordinal first. It returns the last one's ordinal.
func (p *TermPostings) decodePiece(b []byte, first uint32, n, width int) (last uint32, err error) {
	whole, ord := b, uint64(first)
	for i := range n {
		if i == 0 && width == 0 {
			p.ords = append(p.ords, first)
			continue
		}
		var step uint64
		if len(b) > 0 && b[0] < 0x80 {
			step, b = uint64(b[0]), b[1:]
		} else {
			var size int
			if step, size = binary.Uvarint(b); size <= 0 {
				return 0, errPiece(whole)
			}
			b = b[size:]
		}
		odd := false
		if width == 1 {
			odd, step = step&1 != 0, step>>1
		}
		if ord += step; ord > 0xffff_ffff || (step == 0) != (i == 0) {
			return 0, errPiece(whole)
		}
		switch {
		case width == 1 && !odd:
			p.payloads = append(p.payloads, 1)
		case width > 0:
			if len(b) < width {
				return 0, errPiece(whole)
			}
			p.payloads = append(p.payloads, b[:width]...)
			b = b[width:]
		}
		p.ords = append(p.ords, uint32(ord))
	}
	if len(b) > 0 {
		return 0, errPiece(whole)
	}
	return uint32(ord), nil
}

// entry is a piece of a term's postings as a block holds it.
type entry struct {
	term  []byte // valid until the next entry is read
	first bool   // the term's first piece; the next two are set there
	total int    // postings of the term
	count []ClassCount
	n     int
	ord   uint32
	piece []byte
}

// ClassCount is a number of postings of a class, by its place in the table of classes.
type ClassCount struct{ Class, Count uint32 }

// entryReader reads the entries of a block one after another.
type entryReader struct {
	rest []byte
	bad  bool
	e    entry
}

// begin reads from the front of a block, or from where whole terms begin that are before
// the given one.
func (r *entryReader) begin(block, term []byte) error {
	r.rest, r.bad, r.e.term = nil, false, r.e.term[:0]
	size := len(block) - 2
	if size < 0 {
		return errBlock(block)
	}
	starts := int(binary.BigEndian.Uint16(block[size:]))
	end := size - 2*starts
	if end < 0 {
		return errBlock(block)
	}
	entries, table := block[:end], block[end:size]
	at := func(i int) int { return min(int(binary.BigEndian.Uint16(table[2*i:])), end) }
	// The first start whose term is not before the one that is looked for.
	i := sort.Search(starts, func(i int) bool {
		r.rest = entries[at(i):]
		r.number()
		return bytes.Compare(r.read(r.number()), term) >= 0
	})
	r.bad, r.rest = false, entries
	if i > 0 {
		r.rest = entries[at(i-1):]
	}
	return nil
}

func errBlock(b []byte) error {
	return fmt.Errorf("%w: block of terms of %d bytes", ErrFormat, len(b))
}

// number reads a varint of the block; a bad one leaves nothing to read.
func (r *entryReader) number() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		n := uint64(r.rest[0])
		r.rest = r.rest[1:]
		return n
	}
	return r.long()
}

func (r *entryReader) long() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > 1<<40 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// read reads bytes of the block.
func (r *entryReader) read(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	part := r.rest[:n]
	r.rest = r.rest[n:]
	return part
}

// next reads an entry; false at the end.
func (r *entryReader) next(d *Dictionary) (bool, error) {
	size := len(r.rest)
	if size == 0 {
		return false, nil
	}
	e := &r.e
	head := r.number()
	shared := head >> 1
	if shared > uint64(len(e.term)) {
		r.bad, shared = true, 0
	}
	e.first = head&1 != 0
	e.term = append(e.term[:shared], r.read(r.number())...)
	if e.count = e.count[:0]; e.first {
		e.total = int(r.number())
		if d.Classed {
			for n := r.number(); n > 0 && !r.bad && len(e.count) < maxClasses; n-- {
				e.count = append(e.count, ClassCount{uint32(r.number()), uint32(r.number())})
			}
		}
	}
	e.n, e.ord = int(r.number()), uint32(r.number())
	e.piece = r.read(r.number())
	if r.bad || e.n == 0 || e.n > piecePostings {
		return false, fmt.Errorf("%w: block of terms with %d bytes left", ErrFormat, size)
	}
	return true, nil
}
