package tracker

import (
	"encoding/binary"
	"slices"

	"switchyard/storage"
)

// titleSignatures are the second signatures of the titles that the segments have, as far as searches for
// duplicates have read them. A posting has the first one. Among many issues the first signatures of some
// have enough terms of a new title by chance, and reading these issues would take about half of the time of
// a search. The second signatures leave nearly all of them out. They are in a column of the segment, and a
// block of it that was read stays in memory.
//
// A signature in a segment is of the title that the segment's postings are of: where an issue got another
// title since, a newer segment or the recent titles have that one. The workspace's goroutine owns the
// signatures.
type titleSignatures struct {
	blocks map[uint32][][]byte // by the number of a segment
}

// signatureBytes is the memory of a signature.
const signatureBytes = 8

// find gives the second signature of a title by its ordinal in a segment; storage.UnknownSignature when the
// segment lacks it.
func (s *titleSignatures) find(from *storage.SegmentReader, segment *storage.Segment, ord uint32, tails *Tails) (uint64, error) {
	blocks, known := s.blocks[segment.Number]
	if !known {
		blocks = make([][]byte, segment.SignatureBlocks())
		if s.blocks == nil {
			s.blocks = map[uint32][][]byte{}
		}
		s.blocks[segment.Number] = blocks
	}
	number, at := signaturePlace(ord)
	if number >= len(blocks) || blocks[number] == nil {
		block, err := from.Signatures(segment, number)
		if err != nil {
			return 0, err
		}
		if !tails.reserveSignatures(int64(len(block))) {
			return binary.BigEndian.Uint64(block[at:]), nil
		}
		blocks[number] = block
	}
	return binary.BigEndian.Uint64(blocks[number][at:]), nil
}

// signaturePlace gives the block of an ordinal's signature, and where it begins there.
func signaturePlace(ord uint32) (block, at int) {
	return int(ord / storage.SignaturesPerBlock), int(ord%storage.SignaturesPerBlock) * signatureBytes
}

// learn takes up the second signature of an issue that was read, if its segment lacks it: an earlier version
// of the program wrote that segment.
func (s *titleSignatures) learn(segment *storage.Segment, ord uint32, second uint64) {
	number, at := signaturePlace(ord)
	if blocks := s.blocks[segment.Number]; number < len(blocks) && blocks[number] != nil {
		if b := blocks[number][at:]; binary.BigEndian.Uint64(b) == storage.UnknownSignature {
			binary.BigEndian.PutUint64(b, second)
		}
	}
}

// keep forgets the signatures of segments that are no longer among the given ones.
func (s *titleSignatures) keep(segments []storage.Segment, tails *Tails) {
	for number, blocks := range s.blocks {
		if !slices.ContainsFunc(segments, func(of storage.Segment) bool { return of.Number == number }) {
			unreserveBlocks(blocks, tails)
			delete(s.blocks, number)
		}
	}
}

// forget forgets all signatures.
func (s *titleSignatures) forget(tails *Tails) {
	for _, blocks := range s.blocks {
		unreserveBlocks(blocks, tails)
	}
	s.blocks = nil
}

func unreserveBlocks(blocks [][]byte, tails *Tails) {
	bytes := 0
	for _, b := range blocks {
		bytes += len(b)
	}
	tails.unreserveSignatures(int64(bytes))
}
