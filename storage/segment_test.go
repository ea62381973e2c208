package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

var testSegments = Segments{
	ID: 90, Name: "test index", Measure: func(b byte) uint64 { return uint64(b) },
	Dictionaries: []Dictionary{{Name: "words"}, {Name: "weights", Width: 1, Classed: true}, {Name: "wide", Width: SignedPayload}},
}

// segmentTx opens a store in memory, and a batch to write segments to.
func segmentTx(t testing.TB) *Tx {
	t.Helper()
	s := ok(Open(Config{Dir: "store", FS: vfs.NewMem(), Logger: quiet}))(t)
	t.Cleanup(func() { must(t, s.Close()) })
	tx := NewTx(s.State(), 1, wsA)
	t.Cleanup(func() { must(t, tx.Close()) })
	return tx
}

// segmentModel has the expected terms of each live doc, and checks all segments against them.
type segmentModel struct {
	t        *rapid.T
	tb       testing.TB
	tx       *Tx
	manifest Manifest
	next     Doc
	docs     map[Doc]*modelDoc
	replaced map[Doc]uint32 // age of the segment that counts
	space    ListSpace
}

type modelDoc struct {
	terms map[string]byte
	SegmentDoc
}

func (m *segmentModel) draw() *modelDoc {
	d := &modelDoc{terms: map[string]byte{}}
	for range rapid.IntRange(0, 6).Draw(m.t, "terms") {
		d.terms[rapid.SampledFrom([]string{"a", "ab", "abc", "b", "ba", "zebra", "zed"}).Draw(m.t, "term")] = rapid.ByteRange(1, 3).Draw(m.t, "weight")
	}
	d.Length = rapid.Byte().Draw(m.t, "length")
	d.Class = Class{Group: ID{15: rapid.ByteRange(1, 3).Draw(m.t, "group")}, Restricted: rapid.Bool().Draw(m.t, "restricted")}
	d.Signature = rapid.Uint64().Draw(m.t, "signature")
	return d
}

// wide is the payload of a posting in the third dictionary. It changes seldom from doc to doc.
func wide(weight byte, doc Doc) []byte {
	return binary.BigEndian.AppendUint64([]byte{weight}, uint64(doc>>9)*0x9e37_79b9_7f4a_7c15)
}

// flush writes a segment of new docs and of changed ones, in which some are deleted.
func (m *segmentModel) flush() {
	var in []*modelDoc
	age := m.manifest.Next + 1
	for _, doc := range slices.Sorted(maps.Keys(m.docs)) {
		switch rapid.IntRange(0, 5).Draw(m.t, "change") {
		case 0:
			delete(m.docs, doc)
			m.replaced[doc] = age
		case 1:
			d := m.draw()
			d.Doc, m.docs[doc] = doc, d
			m.replaced[doc] = age
			in = append(in, d)
		}
	}
	// Enough at times for lists of several pieces and blocks.
	same := m.draw()
	for range rapid.SampledFrom([]int{0, 1, 5, 40, 700}).Draw(m.t, "new") {
		m.next += 1 + Doc(len(m.docs)%3)
		d := &modelDoc{terms: same.terms, SegmentDoc: same.SegmentDoc}
		if m.next%7 < 2 {
			d = m.draw()
		}
		d.Doc, m.docs[m.next] = m.next, d
		in = append(in, d)
	}
	slices.SortFunc(in, func(a, b *modelDoc) int { return -compareDocs(a.Doc, b.Doc) })
	b := testSegments.NewBuilder(len(in))
	for ord, d := range in {
		b.Doc(&d.SegmentDoc)
		for term, weight := range d.terms {
			key := Key(nil).Str(term)
			numbers := [3]uint32{}
			for dictionary := range numbers {
				numbers[dictionary], _ = b.Term(dictionary, key)
			}
			b.Has(0, numbers[0], uint32(ord))
			b.Has(0, numbers[0], uint32(ord)) // once more counts once
			b.Add(1, numbers[1], uint32(ord), weight)
			b.Put(2, numbers[2], uint32(ord), wide(weight, d.Doc))
		}
	}
	m.manifest.Next++
	rows, s := b.Rows(m.manifest.Next)
	s.Age = s.Number
	m.write(rows)
	m.manifest.Segments = append(m.manifest.Segments, s)
	m.manifest.Through = m.next
}

func (m *segmentModel) write(rows []SegmentRow) {
	for _, row := range rows {
		must(m.tb, m.tx.SetValue(testSegments.ID, row.Fields, row.Value))
	}
}

func (m *segmentModel) merge(from, to int) {
	of := m.manifest.Segments[from:to]
	if len(of) == 0 {
		return
	}
	m.manifest.Next++
	merge := testSegments.Merge(m.manifest.Next, of)
	must(m.tb, merge.Begin(m.tx, func(d Doc) uint32 { return m.replaced[d] }))
	for !merge.Done() {
		m.write(ok(merge.Step(m.tx, rapid.IntRange(1, 3000).Draw(m.t, "step")))(m.tb))
	}
	numbers := merge.Numbers()
	if !m.manifest.Replace(merge.Segment(), numbers) {
		m.t.Fatal("the merged segments are not there")
	}
	for _, n := range numbers {
		must(m.tb, m.tx.DeleteRows(testSegments.ID, SegmentPrefix(n)))
	}
	again := ok(ParseManifest(m.manifest.Encode(nil)))(m.tb)
	if fmt.Sprint(again) != fmt.Sprint(m.manifest) {
		m.t.Fatalf("the manifest %+v is read as %+v", m.manifest, again)
	}
}

func (m *segmentModel) counts(s *Segment, doc Doc) bool { return s.Age >= m.replaced[doc] }

// check compares all readable postings with the model.
func (m *segmentModel) check() {
	r := ok(testSegments.Reader(m.tx))(m.tb)
	defer func() { must(m.tb, r.Close()) }()
	if rapid.Bool().Draw(m.t, "one space") {
		m.space.Reset()
		r.Use(&m.space)
	}
	found := map[Doc]map[string]byte{}
	for i := range m.manifest.Segments {
		s := &m.manifest.Segments[i]
		c := ok(r.Columns(s))(m.tb)
		length, docs := uint64(0), map[Class]uint64{}
		for ord, doc := range c.Docs {
			length += uint64(c.Lengths[ord])
			docs[c.Class(ord)]++
			if !m.counts(s, doc) {
				continue
			}
			if found[doc] != nil {
				m.t.Fatalf("doc %d counts in two segments", doc)
			}
			found[doc] = map[string]byte{}
			if want := m.docs[doc]; want == nil || want.Length != c.Lengths[ord] || want.Class != c.Class(ord) || want.Signature != c.Signatures[ord] {
				m.t.Fatalf("doc %d has length %d, class %v and signature %x, want %+v", doc, c.Lengths[ord], c.Class(ord), c.Signatures[ord], want)
			}
		}
		if length != s.Length || len(docs) != len(c.Table) {
			m.t.Fatalf("the segment is of length %d and has the classes %v; found %d and %v", s.Length, c.Table, length, docs)
		}
		for _, term := range []string{"a", "ab", "abc", "b", "ba", "zebra", "zed", "none", ""} {
			m.list(r, s, c, term, found)
		}
	}
	for doc, d := range m.docs {
		if !maps.Equal(found[doc], d.terms) {
			m.t.Fatalf("doc %d has %v, want %v", doc, found[doc], d.terms)
		}
	}
	if len(found) != len(m.docs) {
		m.t.Fatalf("%d docs, want %d", len(found), len(m.docs))
	}
	for _, prefix := range []string{"", "a", "ab", "z", "q"} {
		m.prefix(r, prefix)
	}
}

// list reads the postings of a term in each dictionary.
func (m *segmentModel) list(r *SegmentReader, s *Segment, c *SegmentColumns, term string, found map[Doc]map[string]byte) {
	key := Key(nil).Str(term)
	words, weights, widths := ok(r.List(s.Number, 0, key))(m.tb), ok(r.List(s.Number, 1, key))(m.tb), ok(r.List(s.Number, 2, key))(m.tb)
	if words == nil || weights == nil || widths == nil {
		if words != nil || weights != nil || widths != nil {
			m.t.Fatalf("%q is not in all dictionaries", term)
		}
		return
	}
	// some leaves out postings, at times whole pieces of them.
	some := ok(r.List(s.Number, 2, key))(m.tb)
	some.Filter = &SignatureFilter{Least: rapid.IntRange(0, 3).Draw(m.t, "least"), Most: rapid.SampledFrom([]int{0, 300, 1 << 30}).Draw(m.t, "most")}
	wanted := rapid.SliceOfN(rapid.IntRange(0, 7), 0, 5).Draw(m.t, "wanted")
	for _, bit := range wanted {
		some.Filter.Want(1 << bit)
	}
	keeps := func(n int, payload []byte) bool {
		shared := 0
		for _, bit := range wanted {
			shared += int(binary.BigEndian.Uint64(payload[1:]) >> bit & 1)
		}
		return n/piecePostings*piecePostings > some.Filter.Most || shared >= some.Filter.Least && 2*shared >= int(payload[0])
	}
	must(m.tb, errors.Join(words.Begin(), weights.Begin(), widths.Begin(), some.Begin()))
	n, counts := 0, map[uint32]uint32{}
	for words.Valid() {
		ord := words.Ord()
		doc := c.Docs[ord]
		if weights.Ord() != ord || widths.Ord() != ord || !slices.Equal(widths.Payload(), wide(weights.Payload()[0], doc)) {
			m.t.Fatalf("%q has different postings in the dictionaries", term)
		}
		if m.counts(s, doc) {
			found[doc][term] = weights.Payload()[0]
		}
		counts[uint32(c.class(int(ord)))]++
		if kept := some.Valid() && some.Ord() == ord; kept != keeps(n, widths.Payload()) || some.Valid() && some.Ord() < ord {
			m.t.Fatalf("%q: the posting %d with %v is kept: %t", term, ord, widths.Payload(), kept)
		} else if kept && n%2 == 0 {
			must(m.tb, some.Step())
		} else {
			must(m.tb, some.Seek(ord+1))
		}
		must(m.tb, words.Step())
		must(m.tb, weights.Step())
		must(m.tb, widths.Seek(ord+1))
		n++
	}
	for _, l := range []*PostingList{words, weights, widths, some} {
		l.End()
	}
	if n != words.Total || weights.Valid() || widths.Valid() || some.Valid() {
		m.t.Fatalf("%q has %d postings, want %d", term, n, words.Total)
	}
	if len(c.Table) > 1 {
		for _, count := range weights.Counts {
			if counts[count.Class] != count.Count {
				m.t.Fatalf("%q has %v postings by class, want %v", term, weights.Counts, counts)
			}
		}
		if len(counts) != len(weights.Counts) {
			m.t.Fatalf("%q has %v postings by class, want %v", term, weights.Counts, counts)
		}
	}
}

// prefix streams the docs with a term that begins with some letters, and leaps.
func (m *segmentModel) prefix(r *SegmentReader, prefix string) {
	var any AnyDocs
	for i := range m.manifest.Segments {
		s := &m.manifest.Segments[i]
		var all AnyOrds
		must(m.tb, r.Terms(s.Number, 0, []byte(prefix), func(int) bool { return true }, func(term []byte, first bool, total int, ords []uint32) bool {
			list := OrdList(slices.Clone(ords))
			if total < len(ords) || first != (len(ords) == 0 || ok(r.listIsFirst(s.Number, term, ords[0]))(m.tb)) {
				m.t.Fatalf("%q has a piece of %d of %d postings, the first: %t", term, len(ords), total, first)
			}
			all = append(all, &list)
			return true
		}))
		any = append(any, r.Docs(s, all, func(d Doc) (bool, error) { return !m.counts(s, d), nil }))
	}
	var want []Doc
	for _, doc := range slices.Backward(slices.Sorted(maps.Keys(m.docs))) {
		for term := range m.docs[doc].terms {
			if strings.HasPrefix(term, prefix) {
				want = append(want, doc)
				break
			}
		}
	}
	most := m.next + 5
	for {
		got, more, err := any.Next(most)
		must(m.tb, err)
		for len(want) > 0 && want[0] > most {
			want = want[1:]
		}
		if more != (len(want) > 0) || more && got != want[0] {
			m.t.Fatalf("from %d on, doc %d has a term with %q, want %v", most, got, prefix, want[:min(len(want), 3)])
		}
		if !more || got == 0 {
			return
		}
		most = got - Doc(rapid.SampledFrom([]int{1, 1, 1, 3, 600}).Draw(m.t, "leap"))
		if most > got {
			return
		}
	}
}

// listIsFirst reports whether a term's postings begin with an ordinal. It reads through a
// reader of its own, since r is in use.
func (r *SegmentReader) listIsFirst(segment uint32, term []byte, ord uint32) (bool, error) {
	other, err := r.s.Reader(r.v)
	if err != nil {
		return false, err
	}
	defer func() { _ = other.Close() }()
	l, err := other.List(segment, 0, slices.Clone(term))
	if err == nil && l != nil {
		err = l.Begin()
	}
	return err == nil && l != nil && l.Ord() == ord, err
}

// TestSegments_AgreeWithModel writes and merges segments at random, with docs changed
// and deleted in between, and compares all readable postings with a model.
func TestSegments_AgreeWithModel(t *testing.T) {
	t.Parallel()
	s := ok(Open(Config{Dir: "store", FS: vfs.NewMem(), Logger: quiet}))(t)
	t.Cleanup(func() { must(t, s.Close()) })
	rapid.Check(t, func(r *rapid.T) {
		tx := NewTx(s.State(), 1, wsA)
		defer func() { must(t, tx.Close()) }()
		m := &segmentModel{t: r, tb: t, tx: tx, docs: map[Doc]*modelDoc{}, replaced: map[Doc]uint32{}, next: 1000}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			switch n := len(m.manifest.Segments); rapid.IntRange(0, 4).Draw(r, "step") {
			default:
				m.flush()
			case 3:
				m.merge(m.manifest.ToMerge())
			case 4:
				if n > 0 {
					from := rapid.IntRange(0, n-1).Draw(r, "from")
					m.merge(from, rapid.IntRange(from+1, n).Draw(r, "to"))
				}
			}
			m.check()
		}
	})
}

// TestManifest_MergesByOrdersOfMagnitude counts how often a doc is written in its life.
func TestManifest_MergesByOrdersOfMagnitude(t *testing.T) {
	t.Parallel()
	var m Manifest
	written := 0
	const flushes, each = 4096, 10
	for range flushes {
		m.Next++
		m.Segments = append(m.Segments, Segment{Number: m.Next, Age: m.Next, Docs: each})
		written += each
		for from, to := m.ToMerge(); to > from; from, to = m.ToMerge() {
			m.Next++
			merged := Segment{Number: m.Next}
			var of []uint32
			for _, s := range m.Segments[from:to] {
				merged.Docs += s.Docs
				of = append(of, s.Number)
			}
			written += int(merged.Docs)
			if !m.Replace(merged, of) {
				t.Fatal("not replaced")
			}
		}
		if len(m.Segments) > 8*(mergeFanout-1) {
			t.Fatalf("%d segments", len(m.Segments))
		}
	}
	if times := float64(written) / (flushes * each); times > 9 {
		t.Errorf("a doc is written %.1f times", times)
	}
}

func TestTermFilter(t *testing.T) {
	t.Parallel()
	var terms []uint64
	for i := range uint64(5000) {
		terms = append(terms, i*0x9e3779b97f4a7c15)
	}
	f := newTermFilter(terms)
	wrong := 0
	for i, term := range terms {
		if !f.MayHave(term) {
			t.Fatalf("term %d is not there", i)
		}
		if f.MayHave(term + 12345) {
			wrong++
		}
	}
	if wrong > 150 || TermFilter(nil).MayHave(1) {
		t.Errorf("%d of %d other terms may be there", wrong, len(terms))
	}
}

func TestSegmentReader_RefusesBrokenRows(t *testing.T) {
	t.Parallel()
	d := &Dictionary{Width: 1, Classed: true}
	for _, bad := range [][]byte{{1}, {3, 1, 'a'}, {1, 200}, {1, 1, 'a', 1, 0, 0, 0, 0}, {1, 1, 'a', 1, 0, 1, 0, 5, 0}, binary.AppendUvarint(nil, 1<<60)} {
		r := entryReader{rest: bad} // as after begin
		if err := r.begin(bad, []byte("b")); err == nil && r.rest == nil {
			t.Errorf("%x was taken for a block", bad)
		}
		r.rest, r.bad = bad, false
		if ok, err := r.next(d); ok || err == nil {
			t.Errorf("%x was taken for an entry", bad)
		}
	}
	for _, bad := range [][]byte{{}, {1}, {0, 0, 9}, {2, 2}} {
		var p TermPostings
		if _, err := p.decodePiece(bad, 0, 2, 1); err == nil {
			t.Errorf("%x was taken for two postings: %v", bad, p.ords)
		}
	}
	signed := make([]byte, 2*(1+SignedPayload))
	signed[1+SignedPayload] = 1
	if _, err := new(TermPostings).decodeSigned(signed, 0, 2, &SignatureFilter{}); err != nil {
		t.Errorf("two postings: %v", err)
	}
	for _, bad := range [][]byte{{}, signed[:len(signed)-1], append(slices.Clone(signed), 0), make([]byte, len(signed)), bytes.Repeat([]byte{0xff}, len(signed))} {
		var p TermPostings
		if _, err := p.decodeSigned(bad, 0, 2, &SignatureFilter{}); err == nil {
			t.Errorf("%x was taken for two postings: %v", bad, p.ords)
		}
	}
	for _, bad := range [][]byte{{}, {2}, {1, 1}, {1, 1, 1, 0, 0, 0, 7}} {
		if m, err := ParseManifest(bad); err == nil {
			t.Errorf("%x was taken for the manifest %+v", bad, m)
		}
	}
}
