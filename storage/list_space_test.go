package storage

import (
	"bytes"
	"testing"
)

// A space grows beyond what it begins with, and what was given stays as it is until Reset.
func TestListSpace_Grows(t *testing.T) {
	t.Parallel()
	s := new(ListSpace)
	for round := range 3 {
		lists := make([]*PostingList, 3*spaceLists)
		terms := make([][]byte, len(lists))
		for i := range lists {
			l := s.list()
			if l.Total != 0 || l.term != nil {
				t.Fatalf("round %d: list %d is not empty: %+v", round, i, l)
			}
			l.Total, lists[i] = i+1, l
			terms[i] = s.copy(bytes.Repeat([]byte{byte(i)}, 200+i))
		}
		for i, l := range lists {
			if l.Total != i+1 || !bytes.Equal(terms[i], bytes.Repeat([]byte{byte(i)}, 200+i)) {
				t.Fatalf("round %d: list %d has become %d, %x", round, i, l.Total, terms[i])
			}
		}
		s.Reset()
	}
	big := s.copy(make([]byte, 20*spaceBytes))
	if len(big) != 20*spaceBytes {
		t.Errorf("%d bytes", len(big))
	}
	if s.Reset(); s.bytes != nil {
		t.Errorf("%d bytes are kept", cap(s.bytes))
	}
}

// Bytes that are appended to a term do not change the next term.
func TestListSpace_CopiesApart(t *testing.T) {
	t.Parallel()
	s := new(ListSpace)
	one, two := s.copy([]byte("one")), s.copy([]byte("two"))
	one = append(one, "more"...)
	if string(one) != "onemore" || string(two) != "two" {
		t.Errorf("%q, %q", one, two)
	}
}
