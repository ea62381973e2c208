package tracker

import (
	"errors"

	"switchyard/storage"
)

// grantsCost is how many more issues an issue counts as if its grants are looked at.
const grantsCost = 9

// issuePage is a page of issues.
type issuePage struct {
	page
	keeps      eachRecord
	visibility visibility
}

// issueList is the issues that a page is taken from: those that satisfy all of matches
// or, if there is a selection, are selected, and are among docs.
type issueList struct {
	matches  []storage.Match
	selected *storage.Selection // nil: none
	docs     storage.Docs       // nil: any
	enough   bool               // set by walk: there may be more than was selected
}

func (l *issueList) close() (err error) {
	if l.selected != nil {
		err = l.selected.Close()
	}
	if l.docs != nil {
		err = errors.Join(err, l.docs.Close())
	}
	return err
}

// walk goes through the list from behind after. It closes what l holds.
func (l *issueList) walk(v *View, after []byte, fn eachRecord) ([]byte, error) {
	leaps := maxLeaps
	if l.selected != nil {
		l.enough = l.selected.More()
		return issues.ListSelected(v, l.selected, l.docs, after, &leaps, fn)
	}
	if l.docs != nil {
		l.matches = append(l.matches, storage.FromDocs(issueTable, l.docs))
	}
	resume, err := issues.ListWithin(v, l.matches, after, &leaps, fn)
	v.filters.work += maxLeaps - leaps
	return resume, err
}

// build answers with the issues of a list that the page keeps.
func (p *issuePage) build(v *View, list issueList) (Reply, error) {
	err := p.fill(
		func(fn eachRecord) ([]byte, error) { return list.walk(v, p.after, fn) },
		func(pk []byte, rec storage.Record) (bool, error) {
			if rec.Flags()&issueRestricted != 0 {
				p.visibility.spent += grantsCost
			}
			keep, err := p.keeps(pk, rec)
			p.spent = p.visibility.spent
			return keep, err
		},
		func(b []byte, rec storage.Record) ([]byte, error) {
			b, _, err := p.visibility.append(b, rec)
			return b, err
		})
	if err != nil {
		return Reply{}, err
	}
	if list.selected == nil {
		v.filters.work += max(0, p.looked-p.count)
	}
	p.more = p.more || list.enough // the page left out some of the issues that were to fill it
	return p.reply(), nil
}
