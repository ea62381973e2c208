package tracker

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// fewClosed is how many issues may turn out to be closed before closed ones are leapt
// over, which is slower where there are few of them: a workspace may have thousands of
// closed issues with the title of the new one.
const fewClosed = 16

// nextOpen returns the newest issue not newer than doc that is not closed; 0 if there is
// none.
func (d *duplicates) nextOpen(doc storage.Doc) (newest storage.Doc, err error) {
	if d.open == nil {
		if d.open, err = d.tx.Cursor(issueByStatus); err != nil {
			return 0, err
		}
	}
	var key [9]byte
	for _, s := range issueStatuses {
		if s.Closed() {
			continue
		}
		at := &d.openAt[s.rank()]
		if *at > doc {
			*at = 0
			if d.open.SeekGE(storage.DocKey(append(key[:0], s.rank()), doc)) {
				if f := d.open.Fields(); len(f) >= 9 && f[0] == s.rank() {
					*at = storage.DocOfKey(f[1:])
				}
			} else if err := d.open.Err(); err != nil {
				return 0, err
			}
		}
		newest = max(newest, *at)
	}
	return newest, nil
}

// consider compares an issue with the title, unless it is known to be out of question. It gives the second
// signature of the issue's title; storage.UnknownSignature when it didn't read that.
func (d *duplicates) consider(doc storage.Doc, best float64, terms []term) (second uint64, err error) {
	if _, recent := d.tx.recent().at[doc]; recent || !d.wants(doc, best) || slices.ContainsFunc(d.best, func(b duplicate) bool { return b.doc == doc }) {
		return storage.UnknownSignature, nil
	}
	return d.compare(doc, terms)
}

// need is how many terms an issue has to share to be among the best, if it is not
// newer than doc.
func (d *duplicates) need(doc storage.Doc) int {
	k := float64(d.terms)
	if len(d.best) < duplicatesShown {
		return max(1, int(math.Ceil(duplicateScore*k)))
	}
	last := &d.best[len(d.best)-1]
	if doc > last.doc {
		return max(1, int(math.Ceil(last.Score*k-1e-9)))
	}
	return int(math.Floor(last.Score*k+1e-9)) + 1
}

// longest is the largest number of terms of an issue that is among the best with so many in common, if it is not newer
// than doc.
func (d *duplicates) longest(need int, doc storage.Doc) int {
	most := d.terms
	for most < 2*need && d.wants(doc, score(need, d.terms, most+1)) {
		most++
	}
	return most
}

// likeness has the parts of a stored issue that a comparison needs.
type likeness struct {
	ID         IssueID     `json:"id"`
	Title      string      `json:"title"`
	Status     IssueStatus `json:"status"`
	IsDraft    bool        `json:"isDraft"`
	Identifier *string     `json:"identifier"`
}

// likeness gives the part of an issue that a comparison needs.
func (t *Issue) likeness() likeness {
	return likeness{ID: t.ID, Title: t.Title, Status: t.Status, IsDraft: t.IsDraft, Identifier: t.Identifier}
}

// mayRepeat reports whether the issue is one that a new one could be a duplicate of.
func (l *likeness) mayRepeat() bool { return !l.Status.Closed() && !l.IsDraft }

// compare looks at an issue itself. It gives what consider gives.
func (d *duplicates) compare(doc storage.Doc, terms []term) (second uint64, err error) {
	second = storage.UnknownSignature
	if d.rows == nil {
		if d.rows, err = d.tx.Cursor(issues.ID); err != nil {
			return second, err
		}
	}
	var space [8]byte
	key := storage.DocKey(space[:0], doc)
	if !d.rows.SeekGE(key) || !bytes.HasPrefix(d.rows.Fields(), key) {
		return second, d.rows.Err()
	}
	value, err := d.rows.Value()
	if err != nil {
		return second, err
	}
	rec, err := storage.ParseRecord(value)
	if err != nil {
		return second, fmt.Errorf("read an issue: %w", err)
	}
	d.compared += len(value) / comparedRead
	if rec.Flags()&(issueDraft|issueClosed) != 0 {
		d.closed++
		return second, nil
	}
	// Issues that the caller may not see are not decoded, so they use up little of the search's bound.
	if seen, err := d.tx.canViewIssue(rec); err != nil || !seen {
		return second, err
	}
	var like likeness
	if err := json.Unmarshal(rec.JSON(), &like); err != nil {
		return second, fmt.Errorf("read an issue: %w", err)
	}
	d.compared += len(like.Title)/comparedTitle + len(rec.JSON())/comparedRecord
	theirs := titleTerms(like.Title)
	second = secondSignature(theirs)
	s := score(common(terms, theirs), len(terms), len(theirs))
	if d.wants(doc, s) {
		d.insert(duplicate{doc, PossibleDuplicate{ID: like.ID, Identifier: like.Identifier, Title: like.Title, Status: like.Status, Score: s}})
	}
	return second, nil
}
