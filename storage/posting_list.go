package storage

import (
	"bytes"
	"sort"
)

// PostingList is a term's postings in one segment, from the newest doc on.
type PostingList struct {
	r          *SegmentReader
	segment    uint32
	dictionary int
	term       []byte
	// Total is the number of postings, and Counts that by class; empty where the
	// segment has one class.
	Total  int
	Counts []ClassCount

	// Filter, if not nil, selects postings: the list leaves out the others. It is set before
	// Begin, of a dictionary whose width is SignedPayload.
	Filter *SignatureFilter

	posts         TermPostings
	i             int
	from, through uint32 // the first and the last ordinal of the piece in posts, selected or not
	last          bool   // the piece in posts is the last one
	// block has the piece in posts if it is one in memory, and rest is what is behind that.
	block termBlock
	rest  []byte
	// piece is the first piece, until it is needed: lists that are found too long are
	// not read.
	piece []byte
	first uint32
	n     int
}

// decode decodes a piece.
func (l *PostingList) decode(e *entry) error {
	l.posts.reset()
	l.i, l.last = 0, e.first && e.n == e.total
	l.block, l.rest = l.r.block, l.r.er.rest
	return l.decodePiece(e.piece, e.ord, e.n)
}

func (l *PostingList) decodePiece(b []byte, first uint32, n int) (err error) {
	l.from = first
	if l.Filter != nil {
		l.through, err = l.posts.decodeSigned(b, first, n, l.Filter)
	} else {
		l.through, err = l.posts.decodePiece(b, first, n, l.width())
	}
	return l.r.wrap(err)
}

func (l *PostingList) width() int { return l.r.s.Dictionaries[l.dictionary].Width }

// load finds the piece with the first ordinal not before ord, which is behind the piece in posts.
func (l *PostingList) load(ord uint32) error {
	next := l.i >= len(l.posts.ords) && l.r.user == l // the piece behind this one
	l.posts.reset()
	l.i, l.last = 0, true
	switch {
	case next:
	case l.block.entries != nil && ord == l.through+1:
		l.r.resume(l)
	default:
		ok, err := l.r.seekTerm(l.segment, l.dictionary, l.term, ord, l.Total <= keptPostings)
		if err != nil || !ok {
			return l.r.wrap(err)
		}
	}
	for {
		e, err := l.r.nextEntry(l.segment, l.dictionary)
		if err != nil || e == nil {
			return l.r.wrap(err)
		}
		c := bytes.Compare(e.term, l.term)
		if c < 0 || c == 0 && e.ord <= l.from {
			continue
		}
		if c > 0 {
			return nil
		}
		if err := l.decode(e); err != nil {
			return err
		}
		if n := len(l.posts.ords); n > 0 && l.posts.ords[n-1] >= ord {
			l.i = sort.Search(len(l.posts.ords), func(i int) bool { return l.posts.ords[i] >= ord })
			l.r.user = l
			return nil
		}
		l.posts.reset()
		l.last = true
	}
}

// Begin moves to the first posting. A list must be begun before it is read.
func (l *PostingList) Begin() error {
	piece := l.piece
	l.piece = nil
	l.r.space.lend(l)
	if err := l.decodePiece(piece, l.first, l.n); err != nil {
		return err
	}
	if len(l.posts.ords) > 0 || l.last {
		return nil
	}
	return l.load(l.through + 1)
}

// Valid reports whether the list is at a posting.
func (l *PostingList) Valid() bool { return l.i < len(l.posts.ords) }

// Ord is the ordinal of the posting that the list is at.
func (l *PostingList) Ord() uint32 { return l.posts.ords[l.i] }

// Payload of the posting, valid until the list moves.
func (l *PostingList) Payload() []byte {
	w := l.width()
	return l.posts.payloads[l.i*w : (l.i+1)*w]
}

// Piece gives the postings from the one that the list is at on, as far as they were read:
// their ordinals and payloads, valid until the list moves.
func (l *PostingList) Piece() (ords []uint32, payloads []byte) {
	return l.posts.ords[l.i:], l.posts.payloads[l.i*l.width():]
}

// NextPiece moves behind what Piece gave.
func (l *PostingList) NextPiece() error {
	l.i = len(l.posts.ords) - 1
	return l.Step()
}

// Step moves to the next posting.
func (l *PostingList) Step() error {
	if l.i++; l.i < len(l.posts.ords) || l.last {
		return nil
	}
	return l.load(l.through + 1)
}

// Seek moves to the first posting whose ordinal is not before ord.
func (l *PostingList) Seek(ord uint32) error {
	if !l.Valid() || l.Ord() >= ord {
		return nil
	}
	if end := len(l.posts.ords); l.posts.ords[end-1] >= ord {
		l.i += sort.Search(end-l.i, func(i int) bool { return l.posts.ords[l.i+i] >= ord })
		return nil
	}
	if l.last {
		l.i = len(l.posts.ords)
		return nil
	}
	return l.load(max(ord, l.through+1))
}
