package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	// SignaturesPerBlock is how many signatures a block of their column has.
	SignaturesPerBlock = 512
	// UnknownSignature stands for the signature of a doc of which the segment has none. As a set it
	// has everything.
	UnknownSignature = ^uint64(0)
)

// SignatureBlocks is how many blocks of signatures a segment has.
func (s *Segment) SignatureBlocks() int {
	return (int(s.Docs) + SignaturesPerBlock - 1) / SignaturesPerBlock
}

// Signatures reads a block of the signatures of a segment's docs: those of the ordinals from
// block*SignaturesPerBlock on, 8 bytes each, big-endian. Segments that earlier versions of the program
// wrote have no signatures: all are UnknownSignature then.
func (r *SegmentReader) Signatures(s *Segment, block int) ([]byte, error) {
	size := 8 * min(SignaturesPerBlock, int(s.Docs)-block*SignaturesPerBlock)
	if block < 0 || size <= 0 {
		return nil, r.wrap(fmt.Errorf("%w: block %d of signatures of %d docs", ErrFormat, block, s.Docs))
	}
	value, err := r.value(binary.BigEndian.AppendUint32(r.prefix(s.Number, signatureColumn), uint32(block)))
	if err != nil {
		return nil, err
	}
	if value == nil {
		return bytes.Repeat([]byte{0xff}, size), nil
	}
	if len(value) != size {
		return nil, r.wrap(fmt.Errorf("%w: block of %d bytes of signatures", ErrFormat, len(value)))
	}
	return value, nil
}

// allSignatures reads the signatures of all docs of a segment.
func (r *SegmentReader) allSignatures(s *Segment) ([]uint64, error) {
	all := make([]uint64, 0, s.Docs)
	for i := range s.SignatureBlocks() {
		block, err := r.Signatures(s, i)
		if err != nil {
			return nil, err
		}
		for ; len(block) > 0; block = block[8:] {
			all = append(all, binary.BigEndian.Uint64(block))
		}
	}
	return all, nil
}

// writeSignatures adds the rows of a segment's signatures.
func writeSignatures(all []uint64, segment uint32, out *segmentRows) {
	for i := 0; i < len(all); i += SignaturesPerBlock {
		part := all[i:min(i+SignaturesPerBlock, len(all))]
		value := make([]byte, 0, 8*len(part))
		for _, signature := range part {
			value = binary.BigEndian.AppendUint64(value, signature)
		}
		out.add(binary.BigEndian.AppendUint32(segmentKey(segment, signatureColumn), uint32(i/SignaturesPerBlock)), value)
	}
}
