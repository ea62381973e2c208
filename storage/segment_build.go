package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// SegmentBuilder makes a segment in memory, from docs that come newest first. It keeps
// terms and postings in a few large slices without pointers: a segment has tens of
// thousands of terms, most with one or two postings.
type SegmentBuilder struct {
	s       *Segments
	columns columns
	terms   []builtTerms
}

// builtTerms are the terms and postings of a dictionary.
type builtTerms struct {
	width int
	text  []byte   // of all terms, one behind the other
	ends  []uint32 // where each term ends in text
	// last is, by term, one more than the place of its newest posting.
	last []uint32
	// posts are in the order in which they came: by ordinal, not by term.
	posts    []builtPosting
	payloads []byte
	// table finds terms by their hashes: one more than their numbers. It has a power of
	// two of places, at most half of them taken.
	table  []uint32
	hashes []uint32
}

type builtPosting struct{ term, ord uint32 }

// NewBuilder begins a segment of about so many docs.
func (s *Segments) NewBuilder(docs int) *SegmentBuilder {
	b := &SegmentBuilder{s: s, terms: make([]builtTerms, len(s.Dictionaries))}
	for i := range b.terms {
		b.terms[i].width = s.Dictionaries[i].Width
		b.terms[i].grow(16 * docs)
	}
	return b
}

// Doc begins a doc, which must be older than those before. The last one's ordinal is
// Docs()-1.
func (b *SegmentBuilder) Doc(d *SegmentDoc) { b.columns.add(d, b.s.Measure) }

// Docs is the number of docs.
func (b *SegmentBuilder) Docs() int { return len(b.columns.docs) }

// Term numbers the terms of a dictionary from 0 in the order in which they come; fresh
// says that this one came for the first time. Terms are encoded so that none is the
// beginning of another.
func (b *SegmentBuilder) Term(dictionary int, term []byte) (number uint32, fresh bool) {
	t := &b.terms[dictionary]
	hash := uint32(xxhash.Sum64(term))
	mask := uint32(len(t.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		at := t.table[i]
		if at == 0 {
			break
		}
		if t.hashes[at-1] == hash && bytes.Equal(t.term(at-1), term) {
			return at - 1, false
		}
	}
	number = uint32(len(t.ends))
	t.text = append(t.text, term...)
	t.ends = append(t.ends, uint32(len(t.text)))
	t.last = append(t.last, 0)
	t.hashes = append(t.hashes, hash)
	if 2*len(t.hashes) > len(t.table) {
		t.grow(len(t.hashes))
	} else {
		t.place(number)
	}
	return number, true
}

// grow makes the table large enough for twice as many terms.
func (t *builtTerms) grow(terms int) {
	size := 64
	for size < 4*terms {
		size *= 2
	}
	t.table = make([]uint32, size)
	for i := range t.hashes {
		t.place(uint32(i))
	}
}

func (t *builtTerms) place(number uint32) {
	mask := uint32(len(t.table) - 1)
	i := t.hashes[number] & mask
	for t.table[i] != 0 {
		i = (i + 1) & mask
	}
	t.table[i] = number + 1
}

// term gives a term's text.
func (t *builtTerms) term(number uint32) []byte {
	from := uint32(0)
	if number > 0 {
		from = t.ends[number-1]
	}
	return t.text[from:t.ends[number]]
}

// has reports whether the newest posting of a term is of an ordinal, and where it is.
func (t *builtTerms) has(term, ord uint32) (at uint32, is bool) {
	at = t.last[term]
	return at - 1, at > 0 && t.posts[at-1].ord == ord
}

func (t *builtTerms) put(term, ord uint32) {
	t.posts = append(t.posts, builtPosting{term, ord})
	t.last[term] = uint32(len(t.posts))
}

// Add adds a posting, or adds to the payload of the last one if that is of the same
// ordinal: a term's byte of payload is a weight that ends at 255.
func (b *SegmentBuilder) Add(dictionary int, term, ord uint32, weight byte) {
	t := &b.terms[dictionary]
	if at, is := t.has(term, ord); is {
		t.payloads[at] = min(t.payloads[at], 255-weight) + weight
		return
	}
	t.put(term, ord)
	t.payloads = append(t.payloads, weight)
}

// Has adds a posting without a payload, unless it is there.
func (b *SegmentBuilder) Has(dictionary int, term, ord uint32) {
	t := &b.terms[dictionary]
	if _, is := t.has(term, ord); !is {
		t.put(term, ord)
	}
}

// Put adds a posting with a payload of the dictionary's width.
func (b *SegmentBuilder) Put(dictionary int, term, ord uint32, payload []byte) {
	t := &b.terms[dictionary]
	t.put(term, ord)
	t.payloads = append(t.payloads, payload...)
}

// Rows gives the rows of the segment under a number, and what a manifest says of it.
func (b *SegmentBuilder) Rows(number uint32) ([]SegmentRow, Segment) {
	var out segmentRows
	b.columns.write(number, &out)
	var terms []docTerms
	if b.s.filtered() {
		terms = make([]docTerms, b.Docs())
	}
	for i := range b.terms {
		t := &b.terms[i]
		starts, ords, payloads := t.byTerm()
		w := blockWriter{segment: number, kind: byte(i), d: &b.s.Dictionaries[i], classes: b.columns.several(), out: &out}
		for _, term := range t.sorted() {
			from, to := starts[term], starts[term+1] // a term may have no posting
			w.add(t.term(term), &TermPostings{ords: ords[from:to], payloads: payloads[int(from)*t.width : int(to)*t.width]})
			if w.d.Filtered {
				addTerm(terms, t.term(term), ords[from:to])
			}
		}
		w.closeBlock()
		newTermFilter(w.hashes).write(number, &out)
	}
	for written := 0; written < len(terms); {
		written = writeTerms(terms, written, number, &out)
	}
	return out.drain(), b.columns.segment(number)
}

// byTerm gives the postings by term: those of term i are [starts[i], starts[i+1]).
func (t *builtTerms) byTerm() (starts, ords []uint32, payloads []byte) {
	starts = make([]uint32, len(t.ends)+2)
	for _, p := range t.posts {
		starts[p.term+2]++
	}
	for i := 2; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	// starts[i+1] is where the next posting of term i goes, and so in the end where its
	// postings end.
	ords, payloads = make([]uint32, len(t.posts)), make([]byte, len(t.payloads))
	for i, p := range t.posts {
		at := starts[p.term+1]
		starts[p.term+1]++
		ords[at] = p.ord
		switch t.width {
		case 0:
		case 1:
			payloads[at] = t.payloads[i]
		default:
			copy(payloads[int(at)*t.width:], t.payloads[i*t.width:(i+1)*t.width])
		}
	}
	return starts, ords, payloads
}

// sorted gives the numbers of the terms in the order of their texts.
func (t *builtTerms) sorted() []uint32 {
	type place struct {
		start  uint64 // the first 8 bytes, which decide nearly always
		number uint32
	}
	places := make([]place, len(t.ends))
	for i := range places {
		term := t.term(uint32(i))
		var start [8]byte
		copy(start[:], term)
		places[i] = place{binary.BigEndian.Uint64(start[:]), uint32(i)}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return bytes.Compare(t.term(a.number), t.term(b.number))
	})
	numbers := make([]uint32, len(places))
	for i, p := range places {
		numbers[i] = p.number
	}
	return numbers
}

// segment is what a manifest says of a segment with these columns.
func (c *columns) segment(number uint32) Segment {
	s := Segment{Number: number, Docs: uint32(len(c.docs))}
	if len(c.docs) > 0 {
		s.Newest = c.docs[0]
	}
	for _, t := range c.table {
		s.Length += t.Length
	}
	return s
}
