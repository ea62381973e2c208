package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// segmentRows gathers the rows of a segment in the making.
type segmentRows struct {
	rows []SegmentRow
	size int
}

func (r *segmentRows) add(fields, value []byte) {
	r.rows = append(r.rows, SegmentRow{fields, value})
	r.size += len(fields) + len(value)
}

// drain gives what was gathered.
func (r *segmentRows) drain() []SegmentRow {
	rows := r.rows
	r.rows, r.size = nil, 0
	return rows
}

// blockWriter writes the blocks of one dictionary. Terms come in order.
type blockWriter struct {
	segment uint32
	kind    byte
	d       *Dictionary
	classes []uint16 // by ordinal; nil where there is one class
	out     *segmentRows

	block   []byte
	last    []byte // term
	lastOrd uint32
	hashes  []uint64 // of all terms, for the filter
	entries int      // of the block
	starts  []uint16 // where whole terms begin
	scratch []byte
	count   map[uint16]uint32
}

// add writes the postings of a term.
func (w *blockWriter) add(term []byte, p *TermPostings) {
	if w.d.Filtered && len(term) == 8 {
		w.hashes = append(w.hashes, binary.BigEndian.Uint64(term))
	}
	for from := 0; from < len(p.ords); from += piecePostings {
		to := min(from+piecePostings, len(p.ords))
		shared := 0
		if w.entries%entriesPerStart == 0 {
			w.starts = append(w.starts, uint16(len(w.block)))
		} else {
			for shared < len(term) && shared < len(w.last) && term[shared] == w.last[shared] {
				shared++
			}
		}
		head := uint64(shared) << 1
		if from == 0 {
			head |= 1
		}
		b := binary.AppendUvarint(w.block, head)
		b = append(binary.AppendUvarint(b, uint64(len(term)-shared)), term[shared:]...)
		if from == 0 {
			b = binary.AppendUvarint(b, uint64(len(p.ords)))
			if w.d.Classed {
				b = w.appendCounts(b, p.ords)
			}
		}
		b = binary.AppendUvarint(b, uint64(to-from))
		b = binary.AppendUvarint(b, uint64(p.ords[from]))
		w.scratch = p.appendPiece(w.scratch[:0], from, to, w.d.Width)
		b = append(binary.AppendUvarint(b, uint64(len(w.scratch))), w.scratch...)
		w.entries++
		w.block, w.last, w.lastOrd = b, append(w.last[:0], term...), p.ords[to-1]
		if len(w.block) >= blockBytes {
			w.closeBlock()
		}
	}
}

// appendCounts counts postings by class; nothing where there is one.
func (w *blockWriter) appendCounts(b []byte, ords []uint32) []byte {
	if w.classes == nil {
		return append(b, 0)
	}
	if w.count == nil {
		w.count = map[uint16]uint32{}
	}
	clear(w.count)
	for _, ord := range ords {
		w.count[w.classes[ord]]++
	}
	all := make([]ClassCount, 0, 8)
	for class, n := range w.count {
		all = append(all, ClassCount{uint32(class), n})
	}
	slices.SortFunc(all, func(a, b ClassCount) int { return cmp.Compare(a.Class, b.Class) })
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, c := range all {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.Class)), uint64(c.Count))
	}
	return b
}

// closeBlock closes the block.
func (w *blockWriter) closeBlock() {
	if len(w.block) > 0 {
		for _, start := range w.starts {
			w.block = binary.BigEndian.AppendUint16(w.block, start)
		}
		w.block = binary.BigEndian.AppendUint16(w.block, uint16(len(w.starts)))
		key := append(segmentKey(w.segment, w.kind), w.last...)
		w.out.add(binary.BigEndian.AppendUint32(key, w.lastOrd), bytes.Clone(w.block))
		w.block, w.starts, w.entries = w.block[:0], w.starts[:0], 0
	}
}

// columns are what a segment holds by ordinal.
type columns struct {
	docs       []Doc // newest first
	lengths    []byte
	classes    []uint16
	signatures []uint64
	table      []ClassTotals
	places     map[Class]uint16
}

func (c *columns) add(d *SegmentDoc, measure func(byte) uint64) {
	if c.places == nil {
		c.places = map[Class]uint16{}
	}
	place, known := c.places[d.Class]
	if !known {
		if place = uint16(len(c.table)); len(c.table) == maxClasses {
			place-- // a workspace with as many teams counts the last ones together
		} else {
			c.places[d.Class] = place
			c.table = append(c.table, ClassTotals{Class: d.Class})
		}
	}
	c.table[place].Docs++
	c.table[place].Length += measure(d.Length)
	c.docs = append(c.docs, d.Doc)
	c.lengths = append(c.lengths, d.Length)
	c.classes = append(c.classes, place)
	c.signatures = append(c.signatures, d.Signature)
}

// several returns the classes by ordinal, or nil where all docs have the same.
func (c *columns) several() []uint16 {
	if len(c.table) < 2 {
		return nil
	}
	return c.classes
}

func (c *columns) write(segment uint32, out *segmentRows) {
	block := func(kind byte, n int) Key { return binary.BigEndian.AppendUint32(segmentKey(segment, kind), uint32(n)) }
	var firsts []byte
	for i := 0; i < len(c.docs); i += docsPerBlock {
		var value []byte
		for _, doc := range c.docs[i:min(i+docsPerBlock, len(c.docs))] {
			value = binary.BigEndian.AppendUint64(value, uint64(doc))
		}
		firsts = append(firsts, value[:8]...)
		out.add(block(docColumn, i/docsPerBlock), value)
	}
	out.add(segmentKey(segment, docFirsts), firsts)
	for i := 0; i < len(c.lengths); i += lengthsPerBlock {
		out.add(block(lengthColumn, i/lengthsPerBlock), bytes.Clone(c.lengths[i:min(i+lengthsPerBlock, len(c.lengths))]))
	}
	if classes := c.several(); classes != nil {
		for i := 0; i < len(classes); i += classesPerBlock {
			var value []byte
			for _, class := range classes[i:min(i+classesPerBlock, len(classes))] {
				value = binary.BigEndian.AppendUint16(value, class)
			}
			out.add(block(classColumn, i/classesPerBlock), value)
		}
	}
	writeSignatures(c.signatures, segment, out)
	var table []byte
	for _, t := range c.table {
		restricted := byte(0)
		if t.Restricted {
			restricted = 1
		}
		table = append(append(table, t.Group[:]...), restricted)
		table = binary.AppendUvarint(binary.AppendUvarint(table, t.Docs), t.Length)
	}
	out.add(segmentKey(segment, classTable), table)
}
