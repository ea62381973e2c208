package tracker

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"switchyard/storage"
)

const (
	// duplicatesShown is how many possible duplicates an answer lists.
	duplicatesShown = 5
	// duplicateScore is the least share of common terms that makes one.
	duplicateScore = 0.5
	// maxRead bounds the postings that one search reads, newest first, and maxCompared those
	// of them whose signatures have enough terms. They are met only by titles of common words
	// alone, none of whose combinations occurs.
	maxRead     = 500_000
	maxCompared = 50_000
	// An issue that has to be read counts once more for each comparedRead bytes of its record. One that is
	// also decoded counts for each comparedTitle bytes of its title, whose words are brought to their stems,
	// and for each comparedRecord bytes of its record.
	comparedRead   = 16 << 10
	comparedTitle  = 100
	comparedRecord = 2 << 10
)

// duplicates searches for the issues whose titles are closest to a new one's.
type duplicates struct {
	tx       *Tx
	terms    int    // of the new title
	mask     uint64 // its signature
	best     []duplicate
	filter   storage.SignatureFilter // counts the postings that were read
	compared int                     // postings and what reading issues takes, see maxCompared
	closed   int                     // issues that were looked at
	rows     *storage.Cursor         // of issues; nil until there is one to compare
	// open walks the issues that are not closed; openAt is where it was last in each
	// status, in the present segment.
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
	d := duplicates{tx: tx, mask: signature(terms), terms: len(terms), filter: storage.SignatureFilter{Most: maxRead}}
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
	r := d.tx.recent().reader(d.tx.Writer().Committed())
	defer func() { err = errors.Join(err, r.Close()) }()
	for i := len(m.Segments) - 1; i >= 0 && d.goesOn(); i-- {
		s := segmentSearch{duplicates: d, r: r, s: &m.Segments[i], newest: m.Segments[i].Newest}
		if err := s.search(terms); err != nil {
			return err
		}
	}
	return nil
}

// goesOn reports whether the search has met none of its bounds.
func (d *duplicates) goesOn() bool { return d.filter.Read <= maxRead && d.compared < maxCompared }
