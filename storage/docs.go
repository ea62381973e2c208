package storage

import (
	"bytes"
	"errors"
	"slices"
	"sort"
)

// Docs is a stream of docs, newest first.
type Docs interface {
	// Next returns the newest doc that is not newer than most, or false if there is none. most
	// never grows from call to call.
	Next(most Doc) (Doc, bool, error)
	Close() error
}

// DocList streams docs given newest first.
type DocList []Doc

// Next implements Docs.
func (l *DocList) Next(most Doc) (Doc, bool, error) {
	*l = (*l)[sort.Search(len(*l), func(i int) bool { return (*l)[i] <= most }):]
	if len(*l) == 0 {
		return 0, false, nil
	}
	return (*l)[0], true, nil
}

// Close implements Docs.
func (*DocList) Close() error { return nil }

// NewestDocs streams the docs of a table's records that are newer than a doc.
type NewestDocs struct {
	c    *Cursor
	than Doc
	doc  Doc // that the cursor is at
	at   bool
	end  bool
}

// NewestDocs opens the stream. The table's keys are made by Key.DescID.
func (v *View) NewestDocs(table TableID, than Doc) (*NewestDocs, error) {
	c, err := v.Cursor(table)
	if err != nil {
		return nil, err
	}
	return &NewestDocs{c: c, than: than}, nil
}

// Next implements Docs.
func (d *NewestDocs) Next(most Doc) (Doc, bool, error) {
	for !d.end && (!d.at || d.doc > most) {
		var key [8]byte
		ok := d.at && d.doc-1 == most && d.c.Next()
		if !ok {
			ok = d.c.SeekGE(DocKey(key[:0], min(most, newestDoc)))
		}
		d.at = true
		if !ok || len(d.c.Fields()) < 8 {
			d.end = true
			return 0, false, d.c.Err()
		}
		if d.doc = DocOfKey(d.c.Fields()); d.doc <= d.than {
			d.end = true
		}
	}
	return d.doc, !d.end, nil
}

// newestDoc is the newest that a key can have.
const newestDoc = Doc(1)<<60 - 1

// Close implements Docs.
func (d *NewestDocs) Close() error { return d.c.Close() }

// AnyDocs streams the docs of any of the streams.
type AnyDocs []Docs

// Next implements Docs.
func (a AnyDocs) Next(most Doc) (newest Doc, found bool, err error) {
	for _, d := range a {
		doc, ok, err := d.Next(most)
		if err != nil {
			return 0, false, err
		}
		if ok && (!found || doc > newest) {
			newest, found = doc, true
		}
	}
	return newest, found, nil
}

// Close implements Docs.
func (a AnyDocs) Close() error { return closeDocs(a) }

func closeDocs(all []Docs) error {
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// DocsExcept streams the docs of From that are not in Not, which is sorted newest first.
type DocsExcept struct {
	From Docs
	Not  []Doc
}

// Next implements Docs.
func (b *DocsExcept) Next(most Doc) (Doc, bool, error) {
	for {
		doc, ok, err := b.From.Next(most)
		if err != nil || !ok {
			return 0, false, err
		}
		if _, skip := slices.BinarySearchFunc(b.Not, doc, func(a, b Doc) int { return -compareDocs(a, b) }); !skip {
			return doc, true, nil
		}
		if doc == 0 {
			return 0, false, nil
		}
		most = doc - 1
	}
}

func compareDocs(a, b Doc) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Close implements Docs.
func (b *DocsExcept) Close() error { return b.From.Close() }

// FromDocs matches the records of table, the listed one, with the docs of the stream. A doc without
// a record is skipped. The list always closes the stream.
func FromDocs(table TableID, d Docs) Match { return Match{kind: matchDocs, index: table, docs: d} }

// docSource turns a stream of docs into one of primary keys.
type docSource struct {
	docs Docs
	docRows
}

func (s *docSource) seek(target []byte) ([]byte, error) {
	most := ^Doc(0)
	if len(target) > 0 {
		most = DocOfKey(target)
	}
	for {
		doc, ok, err := s.docs.Next(most)
		if err != nil || !ok {
			return nil, err
		}
		found, err := s.find(doc)
		if err != nil {
			return nil, err
		}
		// The target's own doc is behind the target when the target is the position after a key.
		if found && bytes.Compare(s.pk, target) >= 0 {
			return s.pk, nil
		}
		if doc == 0 {
			return nil, nil
		}
		most = doc - 1
	}
}
