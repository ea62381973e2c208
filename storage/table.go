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
	// Key.DescID of their id alone.
	Key func(k Key, t *T) Key
	// Head returns the facts for the header. Nil means none.
	Head func(t *T) (Flags, ID)
	// Held are flags that do not follow from the value: Head returns none of them, an Update keeps
	// them, and SetHeld changes them.
	Held    Flags
	Indexes []Index[T]
	// Dirty is added to the batch's DirtyFlags by every change.
	Dirty DirtyFlags
	// Changed is called after every change, with nil for a record that was not there before, or
	// is not there any more. Nil means that nobody has to know.
	Changed func(w Writer, old, new *T) error
}

// changed calls Changed.
func (t *Table[T]) changed(w Writer, old, new *T) error {
	if t.Changed == nil {
		return nil
	}
	return t.Changed(w, old, new)
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
	// stored is the length of the record; 0: not known.
	stored int
}

func (t *Table[T]) collect(e *Entries, v *T) {
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
	e.begin(tx.prefix, pk)
	if old != nil {
		t.collect(e, old)
	}
	removed := len(e.spans)
	if new != nil {
		t.collect(e, new)
	}
	gone, added := e.spans[:removed], e.spans[removed:]
	// A record may give one entry repeatedly (a label named twice).
	for i, g := range gone {
		if e.has(added, g) || e.has(gone[:i], g) {
			continue
		}
		if err := tx.open().Delete(e.at(g), nil); err != nil {
			return fmt.Errorf("%s: delete an index entry: %w", t.Name, err)
		}
		if key := e.at(g); tx.counts(TableID(key[prefixLen])) {
			tx.count(key, -len(key)-len(e.value(g)))
		}
	}
	for i, a := range added {
		if e.has(gone, a) || e.has(added[:i], a) {
			continue
		}
		if err := tx.open().Set(e.at(a), e.value(a), nil); err != nil {
			return fmt.Errorf("%s: write an index entry: %w", t.Name, err)
		}
		if key := e.at(a); tx.counts(TableID(key[prefixLen])) {
			tx.count(key, len(key)+len(e.value(a)))
		}
	}
	return nil
}

// header returns the header of a record.
func (t *Table[T]) header(v *T, version uint64, held Flags) Header {
	h := Header{Version: version}
	if t.Head != nil {
		h.Flags, h.Team = t.Head(v)
	}
	h.Flags |= held
	return h
}

// write writes a record in place of old, which is nil for a new one.
func (t *Table[T]) write(tx *Tx, pk []byte, v *T, h Header, old *Row[T]) ([]byte, error) {
	body, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("%s: encode a record: %w", t.Name, err)
	}
	if old != nil {
		if err := t.uncount(tx, pk, old); err != nil {
			return nil, err
		}
	}
	tx.value = append(AppendHeader(tx.value[:0], h), body...)
	key := tx.fullKey(t.ID, pk)
	if err := tx.open().Set(key, tx.value, nil); err != nil {
		return nil, fmt.Errorf("%s: write a record: %w", t.Name, err)
	}
	if tx.counts(t.ID) {
		tx.count(key, len(key)+len(tx.value))
	}
	if old != nil {
		old.stored = len(tx.value) // for another change of the same row
	}
	tx.dirty |= t.Dirty
	return body, nil
}

// uncount takes a record out of the count.
func (t *Table[T]) uncount(tx *Tx, pk []byte, old *Row[T]) error {
	if !tx.counts(t.ID) {
		return nil
	}
	key, size := tx.fullKey(t.ID, pk), old.stored
	if size == 0 {
		var err error
		var found bool
		if size, found, err = tx.stored(key); err != nil || !found {
			return err
		}
	}
	tx.count(key, -len(key)-size)
	return nil
}

// Insert writes a record that is not there yet and returns its JSON.
func (t *Table[T]) Insert(w Writer, v *T) ([]byte, error) {
	tx := w.Writer()
	tx.pk = t.Key(tx.pk[:0], v)
	return t.insert(w, v, t.header(v, 1, 0))
}

// insert writes a new record under the Tx's pk.
func (t *Table[T]) insert(w Writer, v *T, h Header) ([]byte, error) {
	tx := w.Writer()
	if err := t.reindex(tx, tx.pk, nil, v); err != nil {
		return nil, err
	}
	body, err := t.write(tx, tx.pk, v, h, nil)
	if err != nil {
		return nil, err
	}
	return body, t.changed(w, nil, v)
}

// Update writes the new value of a record read earlier in this Tx and returns
// its JSON. A primary key that changes is an error.
func (t *Table[T]) Update(w Writer, old *Row[T], v *T) ([]byte, error) {
	return t.update(w, old, v, t.header(v, old.Version+1, old.Flags&t.Held))
}

// Put writes new in place of old, which is nil for a record that is not there yet. It
// sets new's header, so that new is the row as a Get would return it, and returns its
// JSON. ReferredBy of a record that is not there yet is kept; that of an existing one becomes
// 0, as by each other write.
func (t *Table[T]) Put(w Writer, old, new *Row[T]) (body []byte, err error) {
	tx := w.Writer()
	if old == nil {
		by := new.ReferredBy
		new.Header = t.header(&new.Value, 1, 0)
		new.ReferredBy = by
		tx.pk = t.Key(tx.pk[:0], &new.Value)
		body, err = t.insert(w, &new.Value, new.Header)
	} else {
		new.Header = t.header(&new.Value, old.Version+1, old.Flags&t.Held)
		body, err = t.update(w, old, &new.Value, new.Header)
	}
	new.stored = len(tx.value)
	return body, err
}

func (t *Table[T]) update(w Writer, old *Row[T], v *T, h Header) ([]byte, error) {
	tx := w.Writer()
	tx.pk = t.Key(tx.pk[:0], v)
	tx.oldPK = t.Key(tx.oldPK[:0], &old.Value)
	if !bytes.Equal(tx.pk, tx.oldPK) {
		return nil, fmt.Errorf("%s: an update changes the primary key %x to %x", t.Name, tx.oldPK, tx.pk)
	}
	if err := t.reindex(tx, tx.pk, &old.Value, v); err != nil {
		return nil, err
	}
	body, err := t.write(tx, tx.pk, v, h, old)
	if err != nil {
		return nil, err
	}
	return body, t.changed(w, &old.Value, v)
}

// SetHeld puts the held flags of a record read earlier in this Tx to those given, in the
// record and in row. Its value and version stay as they are.
func (t *Table[T]) SetHeld(w Writer, row *Row[T], held Flags) error {
	tx := w.Writer()
	tx.pk = t.Key(tx.pk[:0], &row.Value)
	row.Header = t.header(&row.Value, row.Version, held&t.Held)
	_, err := t.write(tx, tx.pk, &row.Value, row.Header, row)
	return err
}

// Delete removes a record read earlier in this Tx.
func (t *Table[T]) Delete(w Writer, old *Row[T]) error {
	tx := w.Writer()
	tx.pk = t.Key(tx.pk[:0], &old.Value)
	if err := t.reindex(tx, tx.pk, &old.Value, nil); err != nil {
		return err
	}
	if err := t.uncount(tx, tx.pk, old); err != nil {
		return err
	}
	if err := tx.open().Delete(tx.fullKey(t.ID, tx.pk), nil); err != nil {
		return fmt.Errorf("%s: delete a record: %w", t.Name, err)
	}
	tx.dirty |= t.Dirty
	return t.changed(w, &old.Value, nil)
}

// Record hands the stored form to fn while it is valid; false when there is
// none under that primary key.
func (t *Table[T]) Record(r Reader, pk []byte, fn func(Record) error) (found bool, err error) {
	v := r.Reader()
	var miss missed
	kept := v.records.keeps(t.ID)
	if kept {
		var r *keptRecord
		if r, miss = v.records.find(v.fullKey(t.ID, pk)); r != nil {
			return true, fn(r.value)
		}
	}
	value, closer, err := v.get(t.ID, pk)
	if err != nil {
		return false, fmt.Errorf("%s: %w", t.Name, err)
	}
	if closer == nil {
		return false, nil
	}
	defer func() { // also when fn panics
		if e := closer.Close(); err == nil && e != nil {
			err = fmt.Errorf("%s: %w", t.Name, e)
		}
	}()
	rec, err := ParseRecord(value)
	if err != nil {
		return true, fmt.Errorf("%s: %w", t.Name, err)
	}
	if kept {
		v.records.keep(v.key, rec, miss)
	}
	if err := fn(rec); err != nil {
		return true, err
	}
	return true, v.step(len(rec))
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
	row := &Row[T]{Header: rec.Header(), stored: len(rec)}
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

// Scan walks records in the order of their primary keys: those that begin with prefix, from behind
// after (a primary key; nil means from the start). fn returns false to stop; the record is valid
// until fn returns.
func (t *Table[T]) Scan(r Reader, prefix, after []byte, fn func(pk []byte, rec Record) (bool, error)) error {
	v := r.Reader()
	it, skip, err := v.iterate(t.ID, prefix)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	defer func() { _ = it.Close() }()
	var ok bool
	if len(after) > 0 {
		ok = it.SeekGE(append(v.fullKey(t.ID, after), 0))
	} else {
		ok = it.First()
	}
	for ; ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("%s: read a record: %w", t.Name, err)
		}
		rec, err := ParseRecord(value)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		more, err := fn(it.Key()[skip:], rec)
		if err != nil || !more {
			return err
		}
		if err := v.step(len(rec)); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("%s: walk the records: %w", t.Name, err)
	}
	return nil
}
