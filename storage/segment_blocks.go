package storage

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// SegmentBlocks keeps blocks of segments in memory: of one dictionary, where look-ups of single terms find them
// without a seek in all levels of the database, and of the docs by ordinal. Segments never change, so what it keeps
// of a segment is right for as long as that counts. One goroutine at a time uses it.
type SegmentBlocks struct {
	dictionary int
	// reserve takes bytes of memory, and reports whether there are as many left.
	reserve  func(bytes int64) bool
	segments map[uint32]*keptSegment // by number
}

// keptSegment is what is kept of a segment.
type keptSegment struct {
	terms []termBlock // by their last keys
	docs  [][]byte    // by their numbers; nil for those that are not kept
	bytes int64
}

// termBlock is a block and the keys, without segment and dictionary, that a seek finds it for: from the first
// one to the last one, which is the block's own.
type termBlock struct {
	from, last []byte
	entries    []byte
}

const (
	// termBlockBytes is the memory of a block of terms beside its entries, with keys of 12 bytes.
	termBlockBytes = 112
	// keptPostings is the most that a term has whose pieces are kept behind the first: few searches read longer
	// lists, and each of these would take much of the memory.
	keptPostings = 16 * piecePostings
)

// NewSegmentBlocks begins to keep blocks of segments and of one of their dictionaries, in memory that reserve
// grants: it takes some bytes, and reports whether there are as many left. Keep gives them back.
func NewSegmentBlocks(dictionary int, reserve func(bytes int64) bool) *SegmentBlocks {
	return &SegmentBlocks{dictionary: dictionary, reserve: reserve, segments: map[uint32]*keptSegment{}}
}

// Keep forgets the blocks of the segments that keep is false for, and returns how many bytes they took.
func (k *SegmentBlocks) Keep(keep func(segment uint32) bool) (bytes int64) {
	for number, s := range k.segments {
		if !keep(number) {
			bytes += s.bytes
			delete(k.segments, number)
		}
	}
	return bytes
}

// room takes memory for a block of a segment; nil when there is none left.
func (k *SegmentBlocks) room(segment uint32, bytes int) *keptSegment {
	if !k.reserve(int64(bytes)) {
		return nil
	}
	s := k.segments[segment]
	if s == nil {
		s = &keptSegment{}
		k.segments[segment] = s
	}
	s.bytes += int64(bytes)
	return s
}

// docs gives a block of the docs of a segment, which it reads unless it is kept.
func (k *SegmentBlocks) docs(r *SegmentReader, segment uint32, block int) ([]byte, error) {
	if s := k.segments[segment]; s != nil && block < len(s.docs) && s.docs[block] != nil {
		return s.docs[block], nil
	}
	value, err := r.readColumn(segment, docColumn, block)
	if err != nil {
		return nil, err
	}
	if s := k.room(segment, len(value)); s != nil {
		for len(s.docs) <= block {
			s.docs = append(s.docs, nil)
		}
		s.docs[block] = value
	}
	return value, nil
}

// find gives the block that a seek for a key finds; one without entries when it is not kept.
func (k *SegmentBlocks) find(segment uint32, key []byte) termBlock {
	s := k.segments[segment]
	if s == nil {
		return termBlock{}
	}
	i := s.search(key)
	if i == len(s.terms) || bytes.Compare(s.terms[i].from, key) > 0 {
		return termBlock{}
	}
	return s.terms[i]
}

// search gives the place of the first block of terms whose last key is not before a key.
func (s *keptSegment) search(key []byte) int {
	return sort.Search(len(s.terms), func(i int) bool { return bytes.Compare(s.terms[i].last, key) >= 0 })
}

// add keeps the block that a seek for a key found, if there is memory for it. It copies what it keeps.
func (k *SegmentBlocks) add(segment uint32, key, last, entries []byte) {
	if s := k.segments[segment]; s != nil {
		if i := s.search(last); i < len(s.terms) && bytes.Equal(s.terms[i].last, last) {
			if bytes.Compare(key, s.terms[i].from) < 0 {
				s.terms[i].from = bytes.Clone(key)
			}
			return
		}
	}
	s := k.room(segment, termBlockBytes+len(entries))
	if s == nil {
		return
	}
	if first := firstKey(entries); first != nil && bytes.Compare(first, key) < 0 {
		key = first
	}
	s.terms = slices.Insert(s.terms, s.search(last), termBlock{bytes.Clone(key), bytes.Clone(last), bytes.Clone(entries)})
}

// firstKey gives the first ordinal of the term that a block begins with, as a key: a seek for it finds the block,
// whatever is before that. nil when the block begins within a term's postings.
func firstKey(entries []byte) []byte {
	r := entryReader{rest: entries}
	head := r.number()
	term := r.read(r.number())
	if r.bad || head != 1 { // nothing shared, the first piece
		return nil
	}
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, len(term)+4), term...), 0)
}
