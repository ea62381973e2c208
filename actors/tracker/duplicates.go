package tracker

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

const (
	// duplicatesShown is how many possible duplicates an answer lists.
	duplicatesShown = 5
	// duplicateScore is the least share of common terms that makes one.
	duplicateScore = 0.5
	// maxCompared bounds the postings that one search goes through, newest first. It is
	// met only by titles of common words alone, none of whose combinations occurs.
	maxCompared = 50_000
)

// duplicates searches for the issues whose titles are closest to a new one's.
type duplicates struct {
	tx       *Tx
	terms    int    // of the new title
	mask     uint64 // its signature
	best     []duplicate
	compared int             // postings
	closed   int             // issues that were looked at
	rows     *storage.Cursor // of issues; nil until there is one to compare
	// open walks the issues that are not closed; openAt is where it was last in each
	// status.
	open   *storage.Cursor
	openAt [len(issueStatuses)]storage.Doc
}

type duplicate struct {
	doc storage.Doc
	PossibleDuplicate
}

// append appends the JSON of a possible duplicate: encoding/json would take more
// time for it than finding it did.
func (d *PossibleDuplicate) append(b []byte) (_ []byte, err error) {
	b = append(append(append(b, `{"id":"`...), d.ID...), `","identifier":`...)
	if d.Identifier == nil {
		b = append(b, `null`...)
	} else if b, err = jsontext.AppendQuote(b, *d.Identifier); err != nil {
		return nil, err
	}
	if b, err = jsontext.AppendQuote(append(b, `,"title":`...), d.Title); err != nil {
		return nil, err
	}
	b = append(append(append(b, `,"status":"`...), d.Status...), `","score":`...)
	return append(strconv.AppendFloat(b, d.Score, 'f', -1, 64), '}'), nil
}

// possibleDuplicates lists the open issues that the caller may see and whose titles
// share at least half of their terms with a title: the best first, and of equal ones
// the newest (Decision 19).
func (tx *Tx) possibleDuplicates(title string) ([]duplicate, error) {
	terms := tx.terms(title)
	d := duplicates{tx: tx, mask: signature(terms), terms: len(terms)}
	for i := range d.openAt {
		d.openAt[i] = math.MaxUint64
	}
	if err := tx.recent().load(tx); err != nil {
		return nil, err
	}
	if err := d.searchRecent(terms); err != nil {
		return nil, err
	}
	err := d.searchIndex(terms)
	for _, c := range [...]*storage.Cursor{d.open, d.rows} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("search for duplicates: %w", err)
	}
	return d.best, nil
}

// score of titles of so many terms with so many in common.
func score(common, a, b int) float64 { return float64(common) / float64(max(a, b)) }

// wants reports whether an issue with this score would be among the best.
func (d *duplicates) wants(doc storage.Doc, score float64) bool {
	if score < duplicateScore {
		return false
	}
	if len(d.best) < duplicatesShown {
		return true
	}
	last := &d.best[len(d.best)-1]
	return score > last.Score || score == last.Score && doc > last.doc
}

// last is the worst of the best; none while there is room for more.
func (d *duplicates) last() storage.Doc {
	if len(d.best) < duplicatesShown {
		return 0
	}
	return d.best[len(d.best)-1].doc
}

func (d *duplicates) insert(found duplicate) {
	at, _ := slices.BinarySearchFunc(d.best, found, func(a, b duplicate) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), -cmp.Compare(a.doc, b.doc))
	})
	d.best = slices.Insert(d.best, at, found)
	d.best = d.best[:min(len(d.best), duplicatesShown)]
}

// atMostBoth bounds the terms in common with a title of the given signatures.
func atMostBoth(terms []term, first, second uint64) (n int) {
	for _, t := range terms {
		n += int(first >> (t.hash & 63) & (second >> (t.hash >> 6 & 63)) & 1)
	}
	return n
}

// searchRecent goes through the titles that the index lacks, the latest first.
func (d *duplicates) searchRecent(terms []term) error {
	r := d.tx.recent()
	apart := bits.OnesCount64(d.mask) == len(terms) // no two terms have the same bit
	// Issues older than the last of the best have to share more terms than newer ones.
	newer, older, last := d.need(math.MaxUint64), d.need(0), d.last()
	for i := len(r.scan) - 1; i >= 0; i-- {
		x := &r.scan[i]
		need := older
		if x.doc > last {
			need = newer
		}
		bound := bits.OnesCount64(x.signature & d.mask)
		if apart && bound < need || bound == 0 || atMostBoth(terms, x.signature, x.second) < need {
			continue
		}
		e := &r.all[i]
		s := score(common(terms, e.terms), len(terms), len(e.terms))
		if !d.wants(e.doc, s) {
			continue
		}
		seen := d.tx.Caller.Level >= Admin // who sees everything
		if !seen {
			var err error
			if seen, err = d.tx.hasIssue(e.id); err != nil {
				return err
			}
		}
		if seen {
			d.insert(duplicate{e.doc, PossibleDuplicate{ID: IssueID(e.id.String()), Identifier: e.identifier, Title: e.title, Status: e.status, Score: s}})
			newer, older, last = d.need(math.MaxUint64), d.need(0), d.last()
		}
	}
	return nil
}

// searchIndex goes through the segments, the newest first.
func (d *duplicates) searchIndex(terms []term) (err error) {
	m := &d.tx.recent().manifest
	if len(m.Segments) == 0 {
		return nil
	}
	// Changes of the open batch are among the recent titles.
	r, err := searchIndex.Reader(d.tx.Writer().Committed())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for i := len(m.Segments) - 1; i >= 0 && d.compared < maxCompared; i-- {
		if err := d.searchSegment(r, &m.Segments[i], terms); err != nil {
			return err
		}
	}
	return nil
}

// searchSegment goes through the postings of some of the terms, newest issues first.
//
// An issue that is to be among the best shares a number of terms, need, and so at
// least one of any n-need+1 of the n terms that the segment may have: the lists of so
// many suffice, and the others are not looked up. They are those of the terms that were
// the rarest so far. The issue's signature bounds how many of the others it has.
func (d *duplicates) searchSegment(r *storage.SegmentReader, s *storage.Segment, terms []term) error {
	newest := s.Newest // no issue that is still to come is newer
	type list struct {
		*storage.PostingList
		term term
	}
	recent := d.tx.recent()
	filter, err := recent.filter(r, s.Number)
	if err != nil {
		return err
	}
	others := make([]term, 0, len(terms)) // that the segment may have, and whose lists aren't looked up
	for _, t := range terms {
		if filter.MayHave(t.hash) {
			others = append(others, t)
		}
	}
	recent.shares.sort(others)
	lists := make([]list, 0, len(others))
	var key [8]byte
	for need := d.need(newest); len(others) >= need; others = others[1:] {
		if len(lists)+len(others) < need {
			return nil
		}
		t := others[0]
		l, err := r.List(s.Number, titleTermsOf, titleKey(key[:0], t.hash))
		if err != nil {
			return err
		}
		if l != nil {
			lists = append(lists, list{l, t})
			recent.shares.note(t, l.Total, int(s.Docs))
		}
	}
	slices.SortFunc(lists, func(a, b list) int { return cmp.Compare(a.Total, b.Total) })
	docs, opened := (*storage.DocColumn)(nil), len(lists)
	for _, l := range lists {
		if err := l.Begin(); err != nil {
			return err
		}
	}
	for d.compared < maxCompared {
		need := d.need(newest)
		if need > len(lists)+len(others) {
			return nil
		}
		opened = min(opened, len(lists)+len(others)-need+1)
		ord, met := ^uint32(0), 0
		var payload []byte
		for _, l := range lists[:opened] {
			switch {
			case !l.Valid():
			case met == 0 || l.Ord() < ord:
				ord, met, payload = l.Ord(), 1, l.Payload()
			case l.Ord() == ord:
				met++
			}
		}
		if met == 0 {
			return nil
		}
		d.compared += met
		m, sig, bound := int(payload[0]), binary.BigEndian.Uint64(payload[1:]), met
		for _, l := range lists[opened:] {
			bound += int(sig >> (l.term.hash & 63) & 1)
		}
		for _, t := range others {
			bound += int(sig >> (t.hash & 63) & 1)
		}
		if best := score(min(bound, m), len(terms), m); d.wants(newest, best) {
			if docs == nil {
				if docs, err = r.DocColumn(s); err != nil {
					return err
				}
			}
			if newest, err = docs.Doc(ord); err != nil {
				return err
			}
			open := newest
			if d.closed > fewClosed {
				if open, err = d.nextOpen(newest); err != nil || open == 0 {
					return err
				}
			}
			if open < newest {
				newest = open
				if ord, err = docs.Ord(open); err != nil {
					return err
				}
				for _, l := range lists[:opened] {
					if err := l.Seek(ord); err != nil {
						return err
					}
				}
				continue
			}
			if err := d.consider(newest, best, terms); err != nil {
				return err
			}
		}
		for _, l := range lists[:opened] {
			if l.Valid() && l.Ord() == ord {
				if err := l.Step(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

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

// consider compares an issue with the title, unless it is known to be out of question.
func (d *duplicates) consider(doc storage.Doc, best float64, terms []term) error {
	if _, recent := d.tx.recent().at[doc]; recent || !d.wants(doc, best) || slices.ContainsFunc(d.best, func(b duplicate) bool { return b.doc == doc }) {
		return nil
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

// compare looks at an issue itself.
func (d *duplicates) compare(doc storage.Doc, terms []term) (err error) {
	if d.rows == nil {
		if d.rows, err = d.tx.Cursor(issues.ID); err != nil {
			return err
		}
	}
	var space [8]byte
	key := storage.DocKey(space[:0], doc)
	if !d.rows.SeekGE(key) || !bytes.HasPrefix(d.rows.Fields(), key) {
		return d.rows.Err()
	}
	value, err := d.rows.Value()
	if err != nil {
		return err
	}
	rec, err := storage.ParseRecord(value)
	if err != nil {
		return fmt.Errorf("read an issue: %w", err)
	}
	var like likeness
	if err := json.Unmarshal(rec.JSON(), &like); err != nil {
		return fmt.Errorf("read an issue: %w", err)
	}
	if !like.mayRepeat() {
		d.closed++
		return nil
	}
	theirs := titleTerms(like.Title)
	s := score(common(terms, theirs), len(terms), len(theirs))
	if !d.wants(doc, s) {
		return nil
	}
	seen, err := d.tx.canViewIssue(rec)
	if err == nil && seen {
		d.insert(duplicate{doc, PossibleDuplicate{ID: like.ID, Identifier: like.Identifier, Title: like.Title, Status: like.Status, Score: s}})
	}
	return err
}
