package storage

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// SegmentBlocks keeps parts of segments in memory: blocks of one dictionary, where look-ups of single terms find them
// without a seek in all levels of the database, and of columns those of the docs by ordinal, those of their
// signatures, TermSlices and TermPairs. Segments never change, so what it keeps of a segment is right for as long as that
// counts. One goroutine at a time uses it.
type SegmentBlocks struct {
	dictionary           int
	forTerms, forColumns ReserveMemory
	segments             map[uint32]*keptSegment // by number
}

// ReserveMemory takes bytes of memory, and reports whether there are as many left. A negative number gives bytes back.
// Several goroutines may use it.
type ReserveMemory func(bytes int64) bool

// keptSegment is what is kept of a segment.
type keptSegment struct {
	terms              []termBlock // by their last keys
	docs, signatures   [][]byte    // by their numbers; nil for those that are not kept
	slices             *TermSlices // nil until there is memory for them
	order              *PairsOrder // nil until there is one
	refused            bool        // there was no memory for TermPairs
	unsliced           bool        // the segment has no terms by doc
	ofTerms, ofColumns int64       // bytes
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

// NewSegmentBlocks begins to keep blocks of segments and of one of their dictionaries, in memory that is reserved for
// blocks of terms and for columns.
func NewSegmentBlocks(dictionary int, terms, columns ReserveMemory) *SegmentBlocks {
	return &SegmentBlocks{dictionary: dictionary, forTerms: terms, forColumns: columns, segments: map[uint32]*keptSegment{}}
}

// Keep forgets the segments that keep is false for, and gives their memory back.
func (k *SegmentBlocks) Keep(keep func(segment uint32) bool) {
	for number, s := range k.segments {
		if !keep(number) {
			k.forTerms(-s.ofTerms)
			k.forColumns(-s.ofColumns)
			if s.order != nil {
				s.order.drop()
			}
			delete(k.segments, number)
		}
	}
}

// of gives what is kept of a segment.
func (k *SegmentBlocks) of(segment uint32) *keptSegment {
	s := k.segments[segment]
	if s == nil {
		s = &keptSegment{}
		k.segments[segment] = s
	}
	return s
}

// roomForColumn takes memory for a part of a column of a segment, or gives it back, and reports whether there was
// enough.
func (k *SegmentBlocks) roomForColumn(s *keptSegment, bytes int64) bool {
	if !k.forColumns(bytes) {
		return false
	}
	s.ofColumns += bytes
	return true
}

// column gives a block of a column, which it reads unless it is kept.
func (k *SegmentBlocks) column(s *keptSegment, blocks *[][]byte, number int, read func() ([]byte, error)) ([]byte, error) {
	if number < len(*blocks) && (*blocks)[number] != nil {
		return (*blocks)[number], nil
	}
	value, err := read()
	if err == nil && k.roomForColumn(s, int64(len(value))) {
		for len(*blocks) <= number {
			*blocks = append(*blocks, nil)
		}
		(*blocks)[number] = value
	}
	return value, err
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
	bytesTaken := int64(termBlockBytes + len(entries))
	if !k.forTerms(bytesTaken) {
		return
	}
	s := k.of(segment)
	s.ofTerms += bytesTaken
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
