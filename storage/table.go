package storage

import (
	"bytes"
	"fmt"

	json "github.com/goccy/go-json"
)

// Table declares how one kind of record is kept.
type Table[T any] struct {
	ID   TableID
	Name string
	// Key appends the record's primary key. Tables that are listed use
	// Key.Newest of their id alone.
	Key func(k Key, t *T) Key
	// Head gives the facts for the header; nil when there are none.
	Head    func(t *T) (Flags, ID)
	Indexes []Index[T]
	// Touches is added to the batch's Touch by every change.
	Touches Touch
}

// Index declares an ordered index of a table. Its entries are derived from the
// record alone, so that a change keeps them in step by comparing old and new.
type Index[T any] struct {
	ID   TableID
	Name string
	// Unique entries have the indexed fields as their key and the primary key as
	// their value; others have the primary key behind the fields.
	Unique bool
	// ShardWide entries lie in the shard's own range, with the workspace in front
	// of the primary key.
	ShardWide bool
	// Entries adds the fields of each entry: e.Add(e.Key().Str(t.Status)).
	Entries func(e *Entries, t *T)
}

// Row is a decoded record with its header.
type Row[T any] struct {
	Header
	Value T
}

// Entries collects the index keys of a record.
type Entries struct {
	prefix  [prefixLen]byte
	system  [prefixLen]byte
	pk      []byte
	index   TableID
	unique  bool
	wide    bool
	key     []byte
	buf     []byte
	spans   []span
	current int // 0: being removed, 1: being added
}

type span struct {
	start, end int
	side       int
	unique     bool
	same       bool
}

// Key starts the fields of one entry.
func (e *Entries) Key() Key {
	if e.wide {
		e.key = append(e.key[:0], e.system[:]...)
	} else {
		e.key = append(e.key[:0], e.prefix[:]...)
	}
	e.key = append(e.key, byte(e.index))
	return e.key
}

// Add ends an entry begun with Key.
func (e *Entries) Add(k Key) {
	e.key = k
	start := len(e.buf)
	e.buf = append(e.buf, k...)
	if !e.unique {
		if e.wide {
			e.buf = append(e.buf, e.prefix[2:]...)
		}
		e.buf = append(e.buf, e.pk...)
	}
	e.spans = append(e.spans, span{start: start, end: len(e.buf), side: e.current, unique: e.unique})
}

func (t *Table[T]) collect(e *Entries, v *T, side int) {
	e.current = side
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		e.index, e.unique, e.wide = ix.ID, ix.Unique, ix.ShardWide
		ix.Entries(e, v)
	}
}

// reindex writes the difference between the index entries of old and new;
// either may be nil. pk is the record's primary key.
func (t *Table[T]) reindex(tx *Tx, pk []byte, old, new *T) error {
	if len(t.Indexes) == 0 {
		return nil
	}
	e := &tx.entries
	e.buf, e.spans = e.buf[:0], e.spans[:0]
	e.pk = append(e.pk[:0], pk...)
	e.prefix = tx.prefix
	e.system = rangePrefix(tx.Shard(), SystemID)
	if old != nil {
		t.collect(e, old, 0)
	}
	removed := len(e.spans)
	if new != nil {
		t.collect(e, new, 1)
	}
	gone, added := e.spans[:removed], e.spans[removed:]
	for i := range added {
		a := &added[i]
		for j := range gone {
			g := &gone[j]
			if !g.same && bytes.Equal(e.buf[g.start:g.end], e.buf[a.start:a.end]) {
				g.same, a.same = true, true
				break
			}
		}
	}
	for _, g := range gone {
		if g.same {
			continue
		}
		if err := tx.batch.Delete(e.buf[g.start:g.end], nil); err != nil {
			return fmt.Errorf("%s: delete an index entry: %w", t.Name, err)
		}
	}
	for _, a := range added {
		if a.same {
			continue
		}
		var value []byte
		if a.unique {
			value = e.pk
		}
		if err := tx.batch.Set(e.buf[a.start:a.end], value, nil); err != nil {
			return fmt.Errorf("%s: write an index entry: %w", t.Name, err)
		}
	}
	return nil
}

func (t *Table[T]) write(tx *Tx, pk []byte, v *T, version uint64) ([]byte, error) {
	h := Header{Version: version}
	if t.Head != nil {
		h.Flags, h.Team = t.Head(v)
	}
	body, err := json.MarshalNoEscape(v)
	if err != nil {
		return nil, fmt.Errorf("%s: encode a record: %w", t.Name, err)
	}
	tx.value = append(appendHeader(tx.value[:0], h), body...)
	if err := tx.batch.Set(append(tx.tableKey(t.ID), pk...), tx.value, nil); err != nil {
		return nil, fmt.Errorf("%s: write a record: %w", t.Name, err)
	}
	tx.touched |= t.Touches
	return body, nil
}

// Insert writes a record that is not there yet and returns its JSON.
func (t *Table[T]) Insert(w Writer, v *T) ([]byte, error) {
	tx := w.Writer()
	pk := t.Key(nil, v)
	if err := t.reindex(tx, pk, nil, v); err != nil {
		return nil, err
	}
	return t.write(tx, pk, v, 1)
}

// Update writes the new value of a record read earlier in this Tx and returns
// its JSON. The primary key may not change.
func (t *Table[T]) Update(w Writer, old *Row[T], v *T) ([]byte, error) {
	tx := w.Writer()
	pk := t.Key(nil, v)
	if err := t.reindex(tx, pk, &old.Value, v); err != nil {
		return nil, err
	}
	return t.write(tx, pk, v, old.Version+1)
}

// Delete removes a record read earlier in this Tx.
func (t *Table[T]) Delete(w Writer, old *Row[T]) error {
	tx := w.Writer()
	pk := t.Key(nil, &old.Value)
	if err := t.reindex(tx, pk, &old.Value, nil); err != nil {
		return err
	}
	if err := tx.batch.Delete(append(tx.tableKey(t.ID), pk...), nil); err != nil {
		return fmt.Errorf("%s: delete a record: %w", t.Name, err)
	}
	tx.touched |= t.Touches
	return nil
}

// Record hands the stored form to fn while it is valid; false when there is
// none under that primary key.
func (t *Table[T]) Record(r Reader, pk []byte, fn func(Record) error) (bool, error) {
	v := r.Reader()
	return v.get(append(v.tableKey(t.ID), pk...), func(value []byte) error {
		rec, err := parseRecord(value)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		return fn(rec)
	})
}

// Get decodes the record under a primary key; nil when there is none.
func (t *Table[T]) Get(r Reader, pk []byte) (*Row[T], error) {
	var row *Row[T]
	_, err := t.Record(r, pk, func(rec Record) (err error) {
		row, err = t.Decode(rec)
		return err
	})
	return row, err
}

// Decode reads a record.
func (t *Table[T]) Decode(rec Record) (*Row[T], error) {
	row := &Row[T]{Header: rec.Header()}
	if err := json.Unmarshal(rec.JSON(), &row.Value); err != nil {
		return nil, fmt.Errorf("%s: decode a record: %w", t.Name, err)
	}
	return row, nil
}

// Lookup finds the primary key under a unique index entry; nil when there is
// none.
func (t *Table[T]) Lookup(r Reader, index TableID, fields []byte) ([]byte, error) {
	return r.Reader().Value(index, fields, nil)
}

// Scan walks records in the order of their primary keys, those that begin with
// prefix, from behind after (a primary key; nil: from the start). fn returns
// false to stop; the record is valid until then.
func (t *Table[T]) Scan(r Reader, prefix, after []byte, fn func(pk []byte, rec Record) (bool, error)) error {
	var from []byte
	if len(after) > 0 {
		from = append(bytes.Clone(after[len(prefix):]), 0)
	}
	return r.Reader().Rows(t.ID, prefix, from, func(pk, value []byte) (bool, error) {
		rec, err := parseRecord(value)
		if err != nil {
			return false, fmt.Errorf("%s: %w", t.Name, err)
		}
		return fn(pk, rec)
	})
}
