package storage

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

// manyTerms writes a segment whose lists of the third dictionary take many blocks. Term i of the given number has
// every 2*(i%40)+1st doc.
func manyTerms(t *testing.T, tx *Tx, number uint32, terms, docs int) Segment {
	t.Helper()
	b := testSegments.NewBuilder(docs)
	for ord := range docs {
		b.Doc(&SegmentDoc{Doc: Doc(1_000_000 - ord)})
		for i := range terms {
			if ord%(2*(i%40)+1) == 0 {
				term, _ := b.Term(2, numberedTerm(2*i+1))
				b.Put(2, term, uint32(ord), wide(byte(i), Doc(ord)<<9))
			}
		}
	}
	rows, segment := b.Rows(number)
	for _, row := range rows {
		must(t, tx.SetValue(testSegments.ID, row.Fields, row.Value))
	}
	return segment
}

func numberedTerm(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)*0x0101_0101) }

// foundList is a list from some ordinal on, or none.
type foundList struct {
	total, postings int
	hash            uint64 // of ordinals and payloads
}

func readList(t testing.TB, r *SegmentReader, segment uint32, term []byte, from uint32) (found foundList) {
	t.Helper()
	l := ok(r.List(segment, 2, term))(t)
	if l == nil {
		return found
	}
	must(t, l.Begin())
	must(t, l.Seek(from))
	found.total = l.Total
	hash, space := xxhash.New(), []byte(nil)
	for ; l.Valid(); must(t, l.Step()) {
		found.postings++
		space = append(binary.BigEndian.AppendUint32(space[:0], l.Ord()), l.Payload()...)
		ok(hash.Write(space))(t)
	}
	found.hash = hash.Sum64()
	return found
}

// Look-ups find the same with blocks in memory as without, whichever terms were looked up before, and whether there
// is memory for all of the blocks or for some.
func TestSegmentBlocks_FindTheSame(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	const terms, docs = 120, 5000 // some lists are longer than those that are kept whole
	for _, number := range []uint32{3, 4} {
		manyTerms(t, tx, number, terms, docs+int(number))
	}
	plain := ok(testSegments.Reader(tx))(t)
	t.Cleanup(func() { must(t, plain.Close()) })
	type lookUp struct {
		segment uint32
		term    int
		from    uint32
	}
	want := map[lookUp]foundList{}
	rapid.Check(t, func(rt *rapid.T) {
		memory := rapid.SampledFrom([]int64{0, 10_000, 60_000, 1 << 30}).Draw(rt, "memory")
		left := memory
		blocks := NewSegmentBlocks(2, within(&left), within(new(int64)))
		for range rapid.IntRange(1, 40).Draw(rt, "look-ups") {
			if rapid.IntRange(0, 9).Draw(rt, "forget") == 0 {
				gone := rapid.SampledFrom([]uint32{3, 4}).Draw(rt, "forgotten")
				blocks.Keep(func(segment uint32) bool { return segment != gone })
			}
			at := lookUp{
				rapid.SampledFrom([]uint32{3, 4}).Draw(rt, "segment"),
				rapid.IntRange(0, 2*terms+1).Draw(rt, "term"), // the odd ones are there
				rapid.SampledFrom([]uint32{0, 0, 300, 4400}).Draw(rt, "from"),
			}
			if _, known := want[at]; !known {
				want[at] = readList(t, plain, at.segment, numberedTerm(at.term), at.from)
			}
			r := testSegments.ReaderWith(tx, blocks)
			got := readList(t, r, at.segment, numberedTerm(at.term), at.from)
			must(t, r.Close())
			if got != want[at] {
				rt.Fatalf("%+v is %+v, want %+v", at, got, want[at])
			}
		}
		if blocks.Keep(func(uint32) bool { return false }); left != memory {
			rt.Fatalf("%d bytes of %d are given back", left, memory)
		}
	})
}

// Two lists are walked in turns, one of them from blocks in memory.
func TestSegmentBlocks_ListsInTurns(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	manyTerms(t, tx, 3, 80, 1500)
	blocks := NewSegmentBlocks(2, within(new(int64(1<<30))), within(new(int64)))
	walk := func(r *SegmentReader) (all [2][]uint32) {
		var lists [2]*PostingList
		for i, term := range []int{1, 81} { // every doc, in several pieces, and many blocks apart
			lists[i] = ok(r.List(3, 2, numberedTerm(term)))(t)
		}
		for _, l := range lists {
			must(t, l.Begin())
		}
		for lists[0].Valid() || lists[1].Valid() {
			for i, l := range lists {
				for n := 0; n < 200+100*i && l.Valid(); n++ {
					all[i] = append(all[i], l.Ord())
					must(t, l.Step())
				}
			}
		}
		return all
	}
	for range 2 {
		r := testSegments.ReaderWith(tx, blocks)
		all := walk(r)
		must(t, r.Close())
		for i, ords := range all {
			if len(ords) != 1500 || !slices.IsSorted(ords) {
				t.Errorf("list %d has %d postings, want 1500 in order", i, len(ords))
			}
		}
	}
}

// Look-ups of a term whose block is in memory need nothing else: they find it even when its rows are gone.
func TestSegmentBlocks_NeedNoRows(t *testing.T) {
	t.Parallel()
	tx := segmentTx(t)
	manyTerms(t, tx, 3, 80, 100)
	blocks := NewSegmentBlocks(2, within(new(int64(1<<30))), within(new(int64)))
	find := func(term int) foundList {
		r := testSegments.ReaderWith(tx, blocks)
		defer func() { must(t, r.Close()) }()
		return readList(t, r, 3, numberedTerm(term), 0)
	}
	before := find(71)
	must(t, tx.DeleteRows(testSegments.ID, SegmentPrefix(3)))
	if got := find(71); got != before || got.postings == 0 {
		t.Errorf("the list is %+v, want %+v", got, before)
	}
	if got := find(70); got.postings > 0 { // between two terms of the block
		t.Errorf("a term that the segment lacks has %+v", got)
	}
	blocks.Keep(func(uint32) bool { return false })
	if got := find(71); got.postings > 0 {
		t.Errorf("without block and rows the term has %+v", got)
	}
}
