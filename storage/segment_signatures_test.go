package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// Segments of earlier versions have no signatures, and those that they were merged into by this one have
// unknown ones.
func TestSegmentSignatures_OfEarlierVersions(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	const docs = 2*signaturesPerBlock + 3
	write := func(number uint32, newest Doc) Segment {
		b := testSegments.NewBuilder(docs)
		for i := range docs {
			doc := newest - Doc(i)
			b.Doc(&SegmentDoc{Doc: doc, Signature: uint64(doc)})
		}
		rows, segment := b.Rows(number)
		for _, row := range rows {
			must(t, tx.SetValue(testSegments.ID, row.Fields, row.Value))
		}
		segment.Age = number
		return segment
	}
	older, newer := write(1, 10_000), write(2, 20_000)
	for i := range older.signatureBlocks() {
		must(t, tx.DeleteValue(testSegments.ID, binary.BigEndian.AppendUint32(segmentKey(1, signatureColumn), uint32(i))))
	}
	merge := testSegments.Merge(3, []Segment{older, newer})
	must(t, merge.Begin(tx, func(Doc) uint32 { return 0 }))
	for !merge.Done() {
		for _, row := range ok(merge.Step(tx, 1<<20))(t) {
			must(t, tx.SetValue(testSegments.ID, row.Fields, row.Value))
		}
	}
	merged := merge.Segment()
	r := ok(testSegments.Reader(tx))(t)
	defer func() { must(t, r.Close()) }()
	unknown := bytes.Repeat([]byte{0xff}, 8*signaturesPerBlock)
	if got := ok(r.signatures(&older, 1))(t); !bytes.Equal(got, unknown) {
		t.Errorf("a segment without signatures has %x", got)
	}
	if got := ok(r.signatures(&older, 2))(t); !bytes.Equal(got, unknown[:3*8]) {
		t.Errorf("the last block of a segment without signatures is %x", got)
	}
	columns := ok(r.Columns(&merged))(t)
	for ord, doc := range columns.Docs {
		want := uint64(doc)
		if doc <= older.Newest {
			want = UnknownSignature
		}
		if columns.Signatures[ord] != want {
			t.Fatalf("doc %d has the signature %x, want %x", doc, columns.Signatures[ord], want)
		}
	}
	for _, block := range []int{-1, 3} {
		if _, err := r.signatures(&newer, block); !errors.Is(err, ErrFormat) {
			t.Errorf("block %d of 3: %v", block, err)
		}
	}
	must(t, tx.SetValue(testSegments.ID, binary.BigEndian.AppendUint32(segmentKey(2, signatureColumn), 0), []byte("short")))
	if _, err := r.signatures(&newer, 0); !errors.Is(err, ErrFormat) {
		t.Errorf("a short block: %v", err)
	}
}
