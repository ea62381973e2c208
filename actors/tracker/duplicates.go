package tracker

import (
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
	tx    *Tx
	terms []term // of the new title, rarest first
	mask  uint64 // its signature
	best  []duplicate
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
	d := duplicates{tx: tx, mask: signature(terms), terms: slices.Clone(terms)}
	slices.SortFunc(d.terms, func(a, b term) int { return -cmp.Compare(a.rare, b.rare) })
	if err := tx.recent().load(tx); err != nil {
		return nil, err
	}
	if err := d.searchRecent(terms); err != nil {
		return nil, err
	}
	if err := d.searchIndex(terms); err != nil {
		return nil, fmt.Errorf("search for duplicates: %w", err)
	}
	return d.best, nil
}

// score of titles of so many terms with so many in common.
func score(common, a, b int) float64 { return float64(common) / float64(max(a, b)) }

// wants tells whether an issue with this score would be among the best.
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

// atMost bounds the terms in common with a title of the given signature.
func atMost(terms []term, signature uint64) (n int) {
	for _, t := range terms {
		n += int(signature >> (t.hash & 63) & 1)
	}
	return n
}

// atMostBoth is atMost by both signatures.
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
	// What is older than the last of the best has to share more than what is newer.
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

// searchIndex goes through the lists of some of the terms, newest issues first.
//
// An issue that is to be among the best shares a number of terms, need, and so at
// least one of any len(terms)-need+1 of them: the lists of the rarest so many
// suffice. What the others would say is in the issue's signature, as a bound.
func (d *duplicates) searchIndex(terms []term) (err error) {
	newest, err := d.tx.Counter(searchTotals, newestIndexed)
	if err != nil || newest == 0 {
		return err
	}
	var lists []*storage.PostingReader
	defer func() {
		for _, l := range lists {
			err = errors.Join(err, l.Close())
		}
	}()
	need := d.need(storage.Doc(newest))
	opened := 0
	for opened < len(d.terms)-need+1 {
		l := titlePostings.Read(d.tx.Writer().Committed())
		lists = append(lists, l)
		var name [8]byte
		if err := l.List(termList(name[:0], d.terms[opened].hash), math.MaxUint64); err != nil {
			return err
		}
		opened++
	}
	for compared := 0; compared < maxCompared; {
		doc, met, payload := newestOf(lists[:opened])
		if met == 0 || len(d.terms)-opened+live(lists[:opened]) < need {
			return nil
		}
		// Payload and position are of use until the lists move on.
		m, sig := int(payload[0]), binary.BigEndian.Uint64(payload[1:])
		compared += met
		if _, recent := d.tx.recent().at[doc]; !recent {
			bound := min(m, met+atMost(d.terms[opened:], sig))
			if d.wants(doc, score(bound, len(terms), m)) {
				if err := d.compare(doc, terms); err != nil {
					return err
				}
			}
		}
		for _, l := range lists[:opened] {
			if l.Valid() && l.Doc() == doc {
				if err := l.Step(); err != nil {
					return err
				}
			}
		}
		if doc == 0 {
			return nil
		}
		if need = d.need(doc - 1); need > len(d.terms) {
			return nil
		}
		opened = min(opened, len(d.terms)-need+1)
	}
	return nil
}

// newestOf gives the newest doc that any of the lists is at, by how many, and one's
// payload.
func newestOf(lists []*storage.PostingReader) (doc storage.Doc, met int, payload []byte) {
	for _, l := range lists {
		switch {
		case !l.Valid():
		case met == 0 || l.Doc() > doc:
			doc, met, payload = l.Doc(), 1, l.Payload()
		case l.Doc() == doc:
			met++
		}
	}
	return doc, met, payload
}

func live(lists []*storage.PostingReader) (n int) {
	for _, l := range lists {
		if l.Valid() {
			n++
		}
	}
	return n
}

// need is how many terms an issue has to share to be among the best, if it is not
// newer than doc.
func (d *duplicates) need(doc storage.Doc) int {
	k := float64(len(d.terms))
	if len(d.best) < duplicatesShown {
		return max(1, int(math.Ceil(duplicateScore*k)))
	}
	last := &d.best[len(d.best)-1]
	if doc > last.doc {
		return max(1, int(math.Ceil(last.Score*k-1e-9)))
	}
	return int(math.Floor(last.Score*k+1e-9)) + 1
}

// likeness is what of a stored issue a comparison needs.
type likeness struct {
	ID         IssueID     `json:"id"`
	Title      string      `json:"title"`
	Status     IssueStatus `json:"status"`
	Identifier *string     `json:"identifier"`
}

// compare looks at an issue itself.
func (d *duplicates) compare(doc storage.Doc, terms []term) error {
	var key [8]byte
	return issues.Scan(d.tx, storage.DocKey(key[:0], doc), nil, func(_ []byte, rec storage.Record) (bool, error) {
		var like likeness
		if err := json.Unmarshal(rec.JSON(), &like); err != nil {
			return false, fmt.Errorf("read an issue: %w", err)
		}
		theirs := titleTerms(like.Title)
		s := score(common(terms, theirs), len(terms), len(theirs))
		if !d.wants(doc, s) {
			return false, nil
		}
		seen, err := d.tx.seesIssue(rec)
		if err == nil && seen {
			d.insert(duplicate{doc, PossibleDuplicate{ID: like.ID, Identifier: like.Identifier, Title: like.Title, Status: like.Status, Score: s}})
		}
		return false, err
	})
}
