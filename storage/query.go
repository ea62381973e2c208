package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Match is one condition of a list query: a stream of primary keys in the order
// of the table, newest first. The tables it applies to have Key.DescID of their
// id as their primary key.
type Match struct {
	kind   matchKind
	index  TableID
	fields []byte
	any    []Match
	docs   Docs
}

type matchKind uint8

const (
	matchEqual matchKind = iota
	matchAny
	matchReferenced
	matchOnly
	matchDocs
	matchNothing
)

// Equal matches the records with an index entry of exactly these fields.
func Equal(index TableID, fields Key) Match {
	return Match{kind: matchEqual, index: index, fields: fields}
}

// AnyOf matches the records that satisfy at least one of the given matches.
func AnyOf(any ...Match) Match { return Match{kind: matchAny, any: any} }

// Referenced matches the records named by the first field, a Key.DescID, of any
// entry of index: the parents, say, of an index by parent.
func Referenced(index TableID) Match { return Match{kind: matchReferenced, index: index} }

// Only matches the one record with this primary key, which must exist: a unique index or a row with
// the key has led to it.
func Only(pk []byte) Match { return Match{kind: matchOnly, fields: pk} }

// Nothing matches no record.
func Nothing() Match { return Match{kind: matchNothing} }

// ListedKeyLen is the length of the primary keys of tables that are listed.
const ListedKeyLen = 16

// source is an opened Match.
type source interface {
	// seek returns the first primary key not before target, nil at the end. The target is a primary
	// key, or a primary key followed by a zero byte for the position after it. Targets only grow.
	// The key is valid until the next call.
	seek(target []byte) ([]byte, error)
	close()
}

// List walks the records that satisfy every match, newest first, from behind
// after (a primary key; nil: from the newest). fn returns false to stop; the
// record is valid until then. The cost of a selective combination is in
// proportion to its answers: the streams leap over each other's gaps. All of them
// see the one moment at which List is called, also where the Reader holds none.
func (t *Table[T]) List(r Reader, matches []Match, after []byte, fn func(pk []byte, rec Record) (bool, error)) error {
	leaps := math.MaxInt
	_, err := t.ListWithin(r, matches, after, &leaps, fn)
	return err
}

// ListWithin is List with a bound on its work: after *leaps moves of the streams, which it counts down, it stops and
// returns the key to continue behind. The key is nil when the walk came to its end or fn stopped
// it. To make progress it needs twice as many leaps as there are streams. The bound is for two long
// streams without a common key: they would be walked to the end without a result.
func (t *Table[T]) ListWithin(r Reader, matches []Match, after []byte, leaps *int, fn func(pk []byte, rec Record) (bool, error)) (resume []byte, err error) {
	v := r.Reader()
	defer func() { err = errors.Join(err, closeStreams(matches)) }()
	if len(matches) == 0 {
		return nil, t.Scan(r, nil, after, fn)
	}
	moment := v.records.fixed() // before the iterators
	it, skip, err := v.iterate(t.ID, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	defer func() { _ = it.Close() }()
	sources := make([]source, 0, len(matches))
	var docs *docSource
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	for _, m := range matches {
		s, err := v.open(it, moment, m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		sources = append(sources, s)
		if d, ok := s.(*docSource); ok {
			docs = d
		}
	}
	full := append(make([]byte, 0, skip+ListedKeyLen), v.fullKey(t.ID, nil)...)
	target := make([]byte, 0, ListedKeyLen+1)
	if len(after) > 0 {
		target = append(append(target, after...), 0)
	}
	for {
		found, err := leap(v, sources, &target, leaps)
		if err != nil {
			return nil, fmt.Errorf("%s: read an index: %w", t.Name, err)
		}
		if !found {
			return nil, nil
		}
		if *leaps <= 0 && len(target) > 0 {
			return before(target), nil
		}
		var rec Record
		if docs != nil && bytes.Equal(docs.pk, target) { // it has looked the record up
			rec, err = docs.record()
		} else {
			full = append(full[:skip], target...)
			rec, err = moment.recordAt(it, full)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		more, err := fn(target, rec)
		if err != nil || !more {
			return nil, err
		}
		if err := v.step(len(rec)); err != nil {
			return nil, err
		}
		target = append(target, 0)
	}
}

// recordAt reads the record of a key that an index has. It is valid until the iterator moves.
func (m RecordMoment) recordAt(it *pebble.Iterator, key []byte) (Record, error) {
	kept := m.keeps(TableID(key[prefixLen]))
	var miss missed
	if kept {
		var r *keptRecord
		if r, miss = m.find(key); r != nil {
			return r.value, nil
		}
	}
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		if err := it.Error(); err != nil {
			return Record{}, fmt.Errorf("read a record: %w", err)
		}
		return Record{}, errors.New("an index entry names a record that is not there")
	}
	rec, err := currentRecord(it)
	if err == nil && kept {
		m.keep(key, rec, miss)
	}
	return rec, err
}

// currentRecord reads the record that an iterator is at. It is valid until the iterator moves.
func currentRecord(it *pebble.Iterator) (Record, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return Record{}, fmt.Errorf("read a record: %w", err)
	}
	return ParseRecord(value)
}

// closeStreams ends the streams that matches were given.
func closeStreams(matches []Match) error {
	var errs []error
	for _, m := range matches {
		if m.docs != nil {
			errs = append(errs, m.docs.Close())
		}
	}
	return errors.Join(errs...)
}

// before returns the key to continue behind so that target comes next. No primary key between the
// two was skipped.
func before(target []byte) []byte {
	key := bytes.Clone(target[:ListedKeyLen])
	if len(target) > ListedKeyLen {
		return key // target is the position after that key
	}
	for i := len(key) - 1; i >= 0; i-- {
		key[i]--
		if key[i] != 0xff {
			break
		}
	}
	return key
}

// leap moves target to the first key not before it that every source has, or as
// far as leaps, which it counts down, allow: no key between is in all of them.
func leap(v *View, sources []source, target *[]byte, leaps *int) (bool, error) {
	agree := 0
	for i := 0; agree < len(sources); i = (i + 1) % len(sources) {
		if *leaps <= 0 {
			return true, nil
		}
		*leaps--
		if err := v.Work(1); err != nil {
			return false, err
		}
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

// open starts a match on a clone of like, so that both see the same moment, which is also that of records.
func (v *View) open(like *pebble.Iterator, records RecordMoment, m Match) (source, error) {
	switch m.kind {
	case matchNothing:
		return empty{}, nil
	case matchOnly:
		return only(m.fields), nil
	case matchDocs:
		it, err := like.Clone(pebble.CloneOptions{})
		if err != nil {
			return nil, fmt.Errorf("open an iterator: %w", err)
		}
		return &docSource{m.docs, newDocRows(v, m.index, records, it)}, nil
	case matchAny:
		u := &union{}
		for _, part := range m.any {
			s, err := v.open(like, records, part)
			if err != nil {
				u.close()
				return nil, err
			}
			u.parts = append(u.parts, s)
		}
		return u, nil
	}
	it, err := like.Clone(pebble.CloneOptions{IterOptions: v.bounds(m.index, m.fields)})
	if err != nil {
		return nil, fmt.Errorf("open an iterator: %w", err)
	}
	start := v.fullKey(m.index, m.fields)
	s := &indexSource{it: it, skip: len(start), key: make([]byte, 0, len(start)+ListedKeyLen+1)}
	s.key = append(s.key, start...)
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
		s.started = true
		s.valid = s.jump(target)
	}
	if !s.valid {
		return nil, s.it.Error()
	}
	return s.current(), nil
}

func (s *indexSource) jump(target []byte) bool {
	s.key = s.key[:s.skip]
	if len(target) > ListedKeyLen {
		// Behind a primary key: behind all that begins with it, since the entries of
		// Referenced go on with another key.
		s.key = appendSuccessor(s.key, target[:ListedKeyLen])
		return s.key != nil && s.it.SeekGE(s.key)
	}
	s.key = append(s.key, target...)
	return s.it.SeekGE(s.key)
}

func (s *indexSource) current() []byte { return s.it.Key()[s.skip : s.skip+ListedKeyLen] }

func (s *indexSource) close() { _ = s.it.Close() }

// union streams the keys of any of its parts.
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

// only streams one primary key.
type only []byte

func (o only) seek(target []byte) ([]byte, error) {
	if bytes.Compare(o, target) < 0 {
		return nil, nil
	}
	return o, nil
}

func (only) close() {}

type empty struct{}

func (empty) seek([]byte) ([]byte, error) { return nil, nil }
func (empty) close()                      {}

// Has reports whether index has an entry that begins with fields.
func (v *View) Has(index TableID, fields []byte) (bool, error) {
	it, _, err := v.iterate(index, fields)
	if err != nil {
		return false, err
	}
	ok := it.First()
	return ok, it.Close()
}
