package storage

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Match is one condition of a list query: a stream of primary keys in the order
// of the table, newest first. The tables it applies to have Key.Newest of their
// id as their primary key.
type Match struct {
	kind   matchKind
	index  TableID
	fields []byte
	any    []Match
}

type matchKind uint8

const (
	matchEqual matchKind = iota
	matchAny
	matchReferenced
	matchNothing
)

// Equal matches the records with an index entry of exactly these fields.
func Equal(index TableID, fields Key) Match {
	return Match{kind: matchEqual, index: index, fields: fields}
}

// AnyOf matches the records that satisfy at least one of the given matches.
func AnyOf(any ...Match) Match { return Match{kind: matchAny, any: any} }

// Referenced matches the records named by the first field, a Key.Newest, of any
// entry of index: the parents, say, of an index by parent.
func Referenced(index TableID) Match { return Match{kind: matchReferenced, index: index} }

// Nothing matches no record.
func Nothing() Match { return Match{kind: matchNothing} }

// ListedKeyLen is the length of the primary keys of tables that are listed.
const ListedKeyLen = 16

// source is an opened Match.
type source interface {
	// seek returns the first primary key not before target, nil at the end. It
	// only moves forward. The key is valid until the next call.
	seek(target []byte) ([]byte, error)
	close()
}

// List walks the records that satisfy every match, newest first, from behind
// after (a primary key; nil: from the newest). fn returns false to stop; the
// record is valid until then. The cost of a selective combination is in
// proportion to its answers: the streams leap over each other's gaps.
func (t *Table[T]) List(r Reader, matches []Match, after []byte, fn func(pk []byte, rec Record) (bool, error)) error {
	v := r.Reader()
	if len(matches) == 0 {
		return t.Scan(r, nil, after, fn)
	}
	sources := make([]source, 0, len(matches))
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	for _, m := range matches {
		s, err := v.open(m)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		sources = append(sources, s)
	}
	records, skip, err := v.iterate(t.ID, nil)
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }()
	full := append([]byte(nil), v.tableKey(t.ID)...)
	target := make([]byte, 0, ListedKeyLen+1)
	if len(after) > 0 {
		target = append(append(target, after...), 0)
	}
	for {
		found, err := leap(sources, &target)
		if err != nil || !found {
			return err
		}
		full = append(full[:skip], target...)
		if !records.SeekGE(full) || !bytes.Equal(records.Key(), full) {
			if err := records.Error(); err != nil {
				return fmt.Errorf("%s: read a record: %w", t.Name, err)
			}
			return fmt.Errorf("%s: an index entry names a record that is not there", t.Name)
		}
		value, err := records.ValueAndErr()
		if err != nil {
			return fmt.Errorf("%s: read a record: %w", t.Name, err)
		}
		rec, err := parseRecord(value)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		more, err := fn(target, rec)
		if err != nil || !more {
			return err
		}
		target = append(target, 0)
	}
}

// leap moves target to the first key not before it that every source has.
func leap(sources []source, target *[]byte) (bool, error) {
	agree := 0
	for i := 0; agree < len(sources); i = (i + 1) % len(sources) {
		key, err := sources[i].seek(*target)
		if err != nil || key == nil {
			return false, err
		}
		if bytes.Equal(key, *target) {
			agree++
			continue
		}
		*target = append((*target)[:0], key...)
		agree = 1
	}
	return true, nil
}

func (v *View) open(m Match) (source, error) {
	switch m.kind {
	case matchNothing:
		return empty{}, nil
	case matchAny:
		u := &union{}
		for _, part := range m.any {
			s, err := v.open(part)
			if err != nil {
				u.close()
				return nil, err
			}
			u.parts = append(u.parts, s)
		}
		return u, nil
	}
	it, skip, err := v.iterate(m.index, m.fields)
	if err != nil {
		return nil, err
	}
	s := &indexSource{it: it, skip: skip + len(m.fields)}
	s.key = append(append(s.key, v.tableKey(m.index)...), m.fields...)
	return s, nil
}

// indexSource streams the primary keys behind an index prefix.
type indexSource struct {
	it      *pebble.Iterator
	skip    int
	key     []byte
	started bool
	valid   bool
}

func (s *indexSource) seek(target []byte) ([]byte, error) {
	if s.started && s.valid {
		at := s.current()
		if bytes.Compare(at, target) >= 0 {
			return at, nil
		}
		// Dense streams are met one step further; a seek costs several steps.
		if s.valid = s.it.Next(); s.valid {
			if at := s.current(); bytes.Compare(at, target) >= 0 {
				return at, nil
			}
		}
	}
	if !s.started || s.valid {
		s.key = append(s.key[:s.skip], target...)
		s.valid = s.it.SeekGE(s.key)
		s.started = true
	}
	if !s.valid {
		return nil, s.it.Error()
	}
	return s.current(), nil
}

func (s *indexSource) current() []byte { return s.it.Key()[s.skip : s.skip+ListedKeyLen] }

func (s *indexSource) close() { _ = s.it.Close() }

// union streams what any of its parts has.
type union struct{ parts []source }

func (u *union) seek(target []byte) ([]byte, error) {
	var least []byte
	for _, p := range u.parts {
		key, err := p.seek(target)
		if err != nil {
			return nil, err
		}
		if key != nil && (least == nil || bytes.Compare(key, least) < 0) {
			least = key
		}
	}
	return least, nil
}

func (u *union) close() {
	for _, p := range u.parts {
		p.close()
	}
}

type empty struct{}

func (empty) seek([]byte) ([]byte, error) { return nil, nil }
func (empty) close()                      {}

// Has tells whether index has an entry that begins with fields.
func (v *View) Has(index TableID, fields []byte) (bool, error) {
	it, _, err := v.iterate(index, fields)
	if err != nil {
		return false, err
	}
	ok := it.First()
	return ok, it.Close()
}
