package tracker

import (
	"fmt"
	"slices"

	"switchyard/storage"
)

// hiddenDocs lists what the search index may hold of issues that the caller may not
// see, oldest first: those of hidden teams, restricted ones, and deleted ones that
// the index still has.
func (s *sight) hiddenDocs() (hidden []storage.Doc, err error) {
	if partial, err := s.partial(); err != nil || !partial {
		return nil, err
	}
	v := s.v
	for team := range v.Caller.Hidden {
		err := v.Rows(issueByTeam, storage.Key(nil).ID(team), nil, func(fields, _ []byte) (bool, error) {
			hidden = append(hidden, storage.DocOfKey(fields[len(team):]))
			return true, nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the issues of a hidden team: %w", err)
		}
	}
	if v.Caller.Level < Admin {
		if err := v.eachUngranted(func(issue []byte) { hidden = append(hidden, storage.DocOfKey(issue)) }); err != nil {
			return nil, err
		}
	}
	oldest, err := v.Number(searchTotals, oldestPending[:])
	if err != nil {
		return nil, err
	}
	err = v.eachPending(oldest, func(id storage.ID, value []byte) (bool, error) {
		x, err := parseIndexed(value)
		if err != nil || x.text == textNone {
			return err == nil, err
		}
		there, err := v.Has(issueTable, issueKey(id))
		if !there {
			hidden = append(hidden, storage.DocOf(id))
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("read what the index lacks: %w", err)
	}
	slices.Sort(hidden)
	return hidden, nil
}

// docSet is a set of docs, oldest first, that is asked about docs in order, newest
// first, again and again.
type docSet struct {
	docs []storage.Doc
	left int // docs[left:] are newer than the doc asked for last
}

// rewind begins with the newest doc again.
func (s *docSet) rewind() { s.left = len(s.docs) }

// has reports whether a doc, not newer than the one asked for before, is in the set.
func (s *docSet) has(doc storage.Doc) bool {
	for step := 1; s.left > 0 && s.docs[s.left-1] > doc; step *= 2 {
		low := max(0, s.left-step)
		if s.docs[low] > doc {
			s.left = low
			continue
		}
		n, _ := slices.BinarySearch(s.docs[low:s.left], doc+1)
		s.left = low + n
	}
	return s.left > 0 && s.docs[s.left-1] == doc
}
