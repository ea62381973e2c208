package tracker

import (
	"encoding/binary"
	"fmt"
	"math"

	"switchyard/storage"
)

// The search index of a workspace is log-structured. Segments, made from many issues at
// a time by a timer, hold the words of the issues up to Manifest.Through. Newer issues
// are the tail: readers look at them as they are stored. So they do with issues that
// were changed or deleted since they were indexed, of which each has a row in
// searchChanged. Segments, tail and these rows together are exact at any moment.
//
// An issue that is indexed again is in a second segment. A row in searchReplaced tells
// which of its segments counts, until a merge drops the postings of the others.

// Dictionaries of searchIndex.
const (
	// wordTerms are the words of title, description and identifier.
	wordTerms = iota
	// stemTerms are the stems of the significant words of title and description; the
	// payload of a posting is how often the stem occurs, in the title twice.
	stemTerms
	// titleTermsOf are the hashes of a title's terms; a payload is how many terms the
	// title has, and their signature.
	titleTermsOf
)

var searchIndex = storage.Segments{
	ID: searchSegments, Name: "search index",
	Dictionaries: []storage.Dictionary{
		{Name: "words"}, {Name: "stems", Width: 1, Classed: true}, {Name: "title terms", Width: storage.SignedPayload, Filtered: true},
	},
	Measure: func(b byte) uint64 { return uint64(math.Round(lengthOf(b))) },
}

// SegmentTable is the table of the segments of search indexes.
const SegmentTable = searchSegments

func wordKey(k storage.Key, word []byte) storage.Key { return append(append(k, word...), 0) }

func titleKey(k storage.Key, hash uint64) storage.Key { return k.U64(hash) }

// titlePayload is a title's payload among titleTermsOf.
func titlePayload(b []byte, terms []term) []byte {
	return binary.BigEndian.AppendUint64(append(b, byte(len(terms))), signature(terms))
}

// replacedKey is the key in searchReplaced: the newest first.
func replacedKey(k storage.Key, doc storage.Doc) storage.Key { return k.U64(^uint64(doc)) }

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// searchText is the part of a stored issue that goes into the index.
type searchText struct {
	Title       string  `json:"title"`
	Description *string `json:"description"`
	Identifier  *string `json:"identifier"`
}

// manifest reads which segments count.
func (v *View) manifest() (storage.Manifest, error) {
	value, err := v.Value(searchManifest, nil, nil)
	if err != nil {
		return storage.Manifest{}, fmt.Errorf("read the manifest of the search index: %w", err)
	}
	return storage.ParseManifest(value)
}

// indexNew notes an issue that was created.
func (tx *Tx) indexNew(t *Issue) error {
	if err := tx.recent().load(tx); err != nil {
		return err
	}
	before := tx.recent().text
	tx.recent().put(t, tx.terms(t.Title), 0)
	return tx.indexLater(before, t.textBytes() >= indexLong)
}

// indexImported notes an issue that was stored with the id that it had elsewhere. Segments are made in the
// order of the ids. So an issue that is older than one which the index has, or is about to have, counts as
// changed: the segment of its place was made without it, or is just being made.
func (tx *Tx) indexImported(t *Issue) error {
	newest, through, err := tx.newestIndexed()
	if err != nil {
		return err
	}
	if doc := storage.DocOf(t.id()); doc < newest || doc <= through {
		return tx.indexAgain(t)
	}
	return tx.indexNew(t)
}

// newestIndexed returns the newest issue that is there, or that the index may have had before the issue
// was deleted, and the place up to which there are segments.
func (tx *Tx) newestIndexed() (newest, through storage.Doc, err error) {
	m, err := tx.manifest()
	if err != nil {
		return 0, 0, err
	}
	newest = m.Through
	err = tx.Rows(issueTable, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) == storage.ListedKeyLen {
			newest = max(newest, storage.DocOfKey(fields))
		}
		return false, nil
	})
	if err == nil {
		err = tx.RowsBack(searchChanged, nil, nil, func(fields, _ []byte) (bool, error) {
			if len(fields) == len(storage.ID{}) {
				newest = max(newest, storage.DocOf(storage.ID(fields)))
			}
			return false, nil
		})
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look for the newest issue of the index: %w", err)
	}
	return newest, m.Through, nil
}

// indexLater sets the timer that makes a segment, once there are issues enough for one, a long one, or much text
// together. before is how much text was to be indexed before the change: only the change that reaches indexText, or a
// multiple of it, sets the timer, not each one behind it.
func (tx *Tx) indexLater(before int, long bool) error {
	waiting, most := tx.recent().waiting, tx.buffer.indexText
	switch {
	case waiting > 0 && waiting%indexMany == 0,
		waiting > 0 && waiting%indexCrowded == 0 && tx.buffer.tails.Crowding() > 0,
		tx.recent().text/most > before/most:
		return tx.SetTimerAtOnce(timerIndexSearch, "")
	case waiting >= tx.buffer.indexFew || long:
		return tx.setSweep(indexSearch, tx.now.Add(indexSoon))
	}
	return nil
}

// terms gives the terms of a title; a creation asks for them twice.
func (tx *Tx) terms(title string) []term {
	if l := tx.buffer; l.title != title || l.terms == nil {
		l.title, l.terms = title, titleTerms(title)
	}
	return tx.buffer.terms
}

// indexChange notes that an issue changed from old to t.
func (tx *Tx) indexChange(old, t *Issue) error {
	if old.Title == t.Title && text(old.Description) == text(t.Description) && text(old.Identifier) == text(t.Identifier) && old.TeamID == t.TeamID {
		tx.recent().refresh(t)
		return nil
	}
	return tx.indexAgain(t)
}

// indexAgain notes that the index row of an issue is out of date: its text has changed,
// or its visibility.
func (tx *Tx) indexAgain(t *Issue) error {
	if err := tx.recent().load(tx); err != nil {
		return err
	}
	change, err := tx.noteChange(t.id())
	if err != nil {
		return err
	}
	before := tx.recent().text
	tx.recent().put(t, titleTerms(t.Title), change)
	return tx.indexLater(before, t.textBytes() >= indexLong)
}

// indexGone notes that an issue was deleted.
func (tx *Tx) indexGone(t *Issue) error {
	if err := tx.recent().load(tx); err != nil {
		return err
	}
	change, err := tx.noteChange(t.id())
	if err != nil {
		return err
	}
	before := tx.recent().text
	tx.recent().gone(t.id(), change)
	return tx.indexLater(before, false)
}

// noteChange writes an issue's row in searchChanged. Its value tells one change from
// another, so that indexing one does not hide the next.
func (tx *Tx) noteChange(id storage.ID) (change uint64, err error) {
	mark, err := tx.NewID()
	if err != nil {
		return 0, err
	}
	change = uint64(storage.DocOf(mark))
	if err := tx.Writer().SetNumber(searchChanged, id[:], change); err != nil {
		return 0, fmt.Errorf("note a change for the index: %w", err)
	}
	return change, nil
}

// eachChanged goes through the rows of searchChanged, oldest issue first.
func (v *View) eachChanged(fn func(id storage.ID, change uint64) (bool, error)) error {
	return v.Rows(searchChanged, nil, nil, func(fields, value []byte) (bool, error) {
		if len(fields) != len(storage.ID{}) || len(value) != 8 {
			return false, fmt.Errorf("%w: row of a changed issue", storage.ErrFormat)
		}
		return fn(storage.ID(fields), binary.BigEndian.Uint64(value))
	})
}

// eachInTail goes through the issues newer than the indexed ones, oldest first.
func (v *View) eachInTail(through storage.Doc, fn func(rec storage.Record) (bool, error)) error {
	var before storage.Key
	if through > 0 {
		before = storage.DocKey(nil, through)
	}
	return v.RowsBack(issueTable, nil, before, func(_, value []byte) (bool, error) {
		rec, err := storage.ParseRecord(value)
		if err != nil {
			return false, err
		}
		return fn(rec)
	})
}

// replaced reads the rows of searchReplaced, asked about one doc after another, the
// newest first.
type replaced struct {
	c     *storage.Cursor
	doc   storage.Doc // that the cursor is at
	age   uint32
	begun bool
	ended bool
	key   [8]byte
}

func (v *View) replaced() (*replaced, error) {
	c, err := v.Cursor(searchReplaced)
	return &replaced{c: c}, err
}

func (r *replaced) close() error { return r.c.Close() }

// find gives the age of the segment that counts for a doc; 0 when it is in one only.
func (r *replaced) find(doc storage.Doc) (uint32, error) {
	if !r.ended && (!r.begun || r.doc > doc) {
		r.begun = true
		if !r.c.SeekGE(replacedKey(r.key[:0], doc)) {
			r.ended = true
			return 0, r.c.Err()
		}
		value, err := r.c.Value()
		if err != nil {
			return 0, err
		}
		if r.doc, r.age, err = parseReplaced(r.c.Fields(), value); err != nil {
			return 0, err
		}
	}
	if r.ended || r.doc != doc {
		return 0, nil
	}
	return r.age, nil
}

func parseReplaced(fields, value []byte) (doc storage.Doc, age uint32, err error) {
	if len(fields) != 8 || len(value) != 4 {
		return 0, 0, fmt.Errorf("%w: row of a replaced issue", storage.ErrFormat)
	}
	return storage.Doc(^binary.BigEndian.Uint64(fields)), binary.BigEndian.Uint32(value), nil
}

// lengthByte puts a length into a byte, to an eighth of a doubling.
func lengthByte(n int) byte {
	return byte(min(math.MaxUint8, math.Round(8*math.Log2(float64(n)+1))))
}

// lengthOf reads lengthByte back.
func lengthOf(b byte) float64 { return math.Exp2(float64(b)/8) - 1 }
