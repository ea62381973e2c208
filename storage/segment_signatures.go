package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// UnknownSignature stands for the signature of a doc of which the segment has none. As a set it has everything.
const UnknownSignature = ^uint64(0)

// signaturesPerBlock is how many signatures a block of their column has.
const signaturesPerBlock = 512

// signatureBlocks is how many blocks of signatures a segment has.
func (s *Segment) signatureBlocks() int {
	return (int(s.Docs) + signaturesPerBlock - 1) / signaturesPerBlock
}

// signatures reads a block of the signatures of a segment's docs: those of the ordinals from
// block*signaturesPerBlock on, 8 bytes each, big-endian. Segments that earlier versions of the program
// wrote have no signatures: all are UnknownSignature then.
func (r *SegmentReader) signatures(s *Segment, block int) ([]byte, error) {
	size := 8 * min(signaturesPerBlock, int(s.Docs)-block*signaturesPerBlock)
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

// Signature gives the signature of a doc by its ordinal; UnknownSignature when the segment lacks it. The reader must
// have blocks in memory.
func (r *SegmentReader) Signature(s *Segment, ord uint32) (uint64, error) {
	kept, number := r.blocks.of(s.Number), int(ord/signaturesPerBlock)
	block, err := r.blocks.column(kept, &kept.signatures, number, func() ([]byte, error) { return r.signatures(s, number) })
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(block[ord%signaturesPerBlock*8:]), nil
}

// Learn takes up the signature of a doc that was read, if its segment lacks it: an earlier version of the program
// wrote that segment.
func (k *SegmentBlocks) Learn(s *Segment, ord uint32, signature uint64) {
	blocks, number := k.of(s.Number).signatures, int(ord/signaturesPerBlock)
	if number >= len(blocks) || blocks[number] == nil {
		return
	}
	if b := blocks[number][ord%signaturesPerBlock*8:]; binary.BigEndian.Uint64(b) == UnknownSignature {
		binary.BigEndian.PutUint64(b, signature)
	}
}

// allSignatures reads the signatures of all docs of a segment.
func (r *SegmentReader) allSignatures(s *Segment) ([]uint64, error) {
	all := make([]uint64, 0, s.Docs)
	for i := range s.signatureBlocks() {
		block, err := r.signatures(s, i)
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
	for i := 0; i < len(all); i += signaturesPerBlock {
		part := all[i:min(i+signaturesPerBlock, len(all))]
		value := make([]byte, 0, 8*len(part))
		for _, signature := range part {
			value = binary.BigEndian.AppendUint64(value, signature)
		}
		out.add(binary.BigEndian.AppendUint32(segmentKey(segment, signatureColumn), uint32(i/signaturesPerBlock)), value)
	}
}

// SignedPayload is the width of payloads that are a number of terms, in a byte, and a signature of these terms, in
// 8 bytes, big-endian: a set of their bits.
const SignedPayload = 9

// SignatureFilter selects postings with SignedPayload of docs that may share terms with a set of wanted ones: by
// their signatures at least as many as Least, and at least half of their own. Once more than Most postings were
// read it selects all.
type SignatureFilter struct {
	Least, Most int
	Read        int // postings that were looked at
	// layers have the bits of the wanted terms: a bit that several of them share is in as many layers.
	layers []uint64
}

// Begin forgets the wanted terms, of which docs have to have some from now on.
func (f *SignatureFilter) Begin(least int) { f.Least, f.layers = least, f.layers[:0] }

// Want adds a term to the wanted ones, by the one bit of its signature.
func (f *SignatureFilter) Want(bit uint64) {
	for i := range f.layers {
		if f.layers[i]&bit == 0 {
			f.layers[i] |= bit
			return
		}
	}
	f.layers = append(f.layers, bit)
}

// Shared bounds the wanted terms that a doc has, by its signature.
func (f *SignatureFilter) Shared(signature uint64) (n int) {
	for _, layer := range f.layers {
		n += bits.OnesCount64(signature & layer)
	}
	return n
}

// decodeSigned is decodePiece for postings with SignedPayload that a filter selects from.
func (p *TermPostings) decodeSigned(b []byte, first uint32, n int, f *SignatureFilter) (last uint32, err error) {
	whole, ord, all := b, uint64(first), f.Read > f.Most
	f.Read += n
	for i := range n {
		step, size := binary.Uvarint(b)
		if size <= 0 {
			return 0, errPiece(whole)
		}
		if ord += step; ord > 0xffff_ffff || (step == 0) != (i == 0) || len(b) < size+SignedPayload {
			return 0, errPiece(whole)
		}
		payload := b[size : size+SignedPayload]
		b = b[size+SignedPayload:]
		if shared := f.Shared(binary.BigEndian.Uint64(payload[1:])); all || shared >= f.Least && 2*shared >= int(payload[0]) {
			p.payloads = append(p.payloads, payload...)
			p.ords = append(p.ords, uint32(ord))
		}
	}
	if len(b) > 0 {
		return 0, errPiece(whole)
	}
	return uint32(ord), nil
}
