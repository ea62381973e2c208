package tracker

import "slices"

// termShares estimates which terms many titles of a workspace have, from the lists that
// searches met. A wrong estimate costs time and changes no answer.
type termShares []termShare

// termShare says in how many of 65,535 titles a term was.
type termShare struct {
	tag   uint32 // of the term's hash
	share uint16
}

// keptShares is how many terms are remembered, each at the place that its hash says.
const keptShares = 256

func (s termShares) place(t term) (*termShare, uint32) {
	return &s[t.hash%keptShares], uint32(t.hash >> 32)
}

// of returns a term's share, 0 for a term that is not remembered.
func (s termShares) of(t term) uint16 {
	if s == nil {
		return 0
	}
	if at, tag := s.place(t); at.tag == tag {
		return at.share
	}
	return 0
}

// note remembers that total of docs titles have the term, unless its place is taken by a
// more frequent one.
func (s *termShares) note(t term, total, docs int) {
	if *s == nil {
		*s = make(termShares, keptShares)
	}
	share := uint16(min(total, docs) * 65535 / max(docs, 1))
	if at, tag := s.place(t); at.tag == tag || at.share < share {
		*at = termShare{tag, share}
	}
}

// sort orders terms by their shares, the rarest first, and leaves equal ones in their order.
func (s termShares) sort(terms []term) {
	slices.SortStableFunc(terms, func(a, b term) int { return int(s.of(a)) - int(s.of(b)) })
}
