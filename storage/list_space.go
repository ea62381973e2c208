package storage

import "bytes"

// ListSpace is the memory of the posting lists of a search, for the next search. A nil *ListSpace
// gives each list memory of its own.
type ListSpace struct {
	lists []PostingList // a part of them are in use; no more than the capacity
	bytes []byte        // of terms and pieces
	posts TermPostings  // of the list that was begun last
}

const (
	// spaceLists is the number of lists for which memory is made at once, and spaceBytes that of bytes.
	spaceLists = 256
	spaceBytes = 64 << 10
	// spacePostings is the most postings of a list whose memory is kept.
	spacePostings = 64 << 10
)

// Use has the reader make its lists in a space. They end with the next Reset of it.
func (r *SegmentReader) Use(space *ListSpace) { r.space = space }

// list gives an empty list.
func (s *ListSpace) list() *PostingList {
	if s == nil {
		return new(PostingList)
	}
	if len(s.lists) == cap(s.lists) {
		s.lists = make([]PostingList, 0, max(spaceLists, 2*cap(s.lists))) // the lists that are there keep the old memory
	}
	s.lists = s.lists[:len(s.lists)+1]
	return &s.lists[len(s.lists)-1]
}

// copy copies bytes.
func (s *ListSpace) copy(b []byte) []byte {
	if s == nil {
		return bytes.Clone(b)
	}
	if len(b) > cap(s.bytes)-len(s.bytes) {
		s.bytes = make([]byte, 0, max(spaceBytes, 2*cap(s.bytes), len(b)))
	}
	s.bytes = append(s.bytes, b...)
	return s.bytes[len(s.bytes)-len(b) : len(s.bytes) : len(s.bytes)]
}

// lend gives a list memory for its postings.
func (s *ListSpace) lend(l *PostingList) {
	if s != nil {
		l.posts, s.posts = s.posts, TermPostings{}
		l.posts.reset()
	}
}

// End says that a list was read, and leaves the memory of its postings to the next one that is begun.
func (l *PostingList) End() {
	if s := l.r.space; s != nil && cap(l.posts.ords) <= spacePostings {
		s.posts, l.posts = l.posts, TermPostings{}
	}
}

// Reset ends all lists, so that their memory can be used again.
func (s *ListSpace) Reset() {
	clear(s.lists)
	s.lists, s.bytes = s.lists[:0], s.bytes[:0]
	if cap(s.bytes) > 16*spaceBytes {
		s.bytes = nil
	}
}
