package storage

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// within grants so many bytes.
func within(left *int64) ReserveMemory {
	return func(bytes int64) bool {
		if bytes > *left {
			return false
		}
		*left -= bytes
		return true
	}
}

// Readers find the same with and without memory for columns. What is kept needs no rows, and takes as much memory as
// was reserved for it.
func TestSegmentBlocks_Columns(t *testing.T) {
	t.Parallel()
	const docs = 3*docsPerBlock + 7
	for memory, want := range map[int64]struct{ docs, signatures, slices bool }{
		0:                                     {},
		8 * docsPerBlock:                      {docs: true},
		2 * 8 * docsPerBlock:                  {docs: true, signatures: true},
		2*8*docsPerBlock + slicesBytes(docs):  {true, true, true},
		10*8*docsPerBlock + slicesBytes(docs): {true, true, true},
	} {
		tx := segmentTx(t)
		segment := slicedDocs(t, tx, 1, 1_000_000, drawDocs(rand.New(rand.NewPCG(5, 5)), docs))
		signatures := binary.BigEndian.AppendUint32(segmentKey(1, signatureColumn), 1)
		value := make([]byte, 8*docsPerBlock)
		binary.BigEndian.PutUint64(value[8*5:], 42)
		must(t, tx.SetValue(slicedSegments.ID, signatures, value))
		left := memory
		kept := NewSegmentBlocks(1, within(new(int64)), within(&left))
		for _, rows := range []bool{true, true, false} {
			if !rows {
				must(t, tx.DeleteRows(slicedSegments.ID, SegmentPrefix(1)))
			}
			r := slicedSegments.ReaderWith(tx, kept)
			doc, err := r.DocColumn(&segment).Doc(docsPerBlock + 3)
			if there := rows || want.docs; there != (err == nil) || there && doc != 1_000_000-docsPerBlock-3 {
				t.Errorf("%d bytes, rows %t: doc %d, %v", memory, rows, doc, err)
			}
			signature, err := r.Signature(&segment, docsPerBlock+5)
			if there := rows || want.signatures; err != nil || there != (signature == 42) {
				t.Errorf("%d bytes, rows %t: signature %x, %v", memory, rows, signature, err)
			}
			sliced, err := r.Slices(&segment, 10)
			if err != nil || want.slices != (sliced != nil) {
				t.Errorf("%d bytes, rows %t: slices %t, %v", memory, rows, sliced != nil, err)
			}
			must(t, r.Close())
		}
		if kept.Keep(func(segment uint32) bool { return segment != 1 }); left != memory {
			t.Errorf("%d bytes of %d are given back", left, memory)
		}
	}
}

// The signature of a doc that was read takes the place of an unknown one, and of no other.
func TestSegmentBlocks_Learn(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	older := slicedDocs(t, tx, 1, 1000, make([][]uint64, 20))
	newer := slicedDocs(t, tx, 2, 2000, make([][]uint64, 20))
	must(t, tx.DeleteRows(slicedSegments.ID, segmentKey(1, signatureColumn)))
	kept := keepAll()
	r := slicedSegments.ReaderWith(tx, kept)
	defer func() { must(t, r.Close()) }()
	for _, s := range []*Segment{&older, &newer} {
		kept.Learn(s, 3, 7) // nothing is kept yet
		before := ok(r.Signature(s, 3))(t)
		kept.Learn(s, 3, 7)
		want := before
		if s == &older {
			want = 7
		}
		if got := ok(r.Signature(s, 3))(t); got != want {
			t.Errorf("segment %d: signature %x, before %x", s.Number, got, before)
		}
	}
}
