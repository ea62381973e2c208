package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Reader is the interface for look-ups: a View, or a Tx, which reads its own writes.
type Reader interface{ Reader() *View }

// Writer is the interface for changes: a Tx.
type Writer interface {
	Reader
	Writer() *Tx
}

// View reads one workspace. It holds no snapshot: a single look-up is atomic by
// itself, and a query that must see one moment is given a View over a Pebble
// snapshot. It is used by one goroutine at a time.
type View struct {
	db     pebble.Reader
	prefix [prefixLen]byte
	key    []byte // scratch for look-ups
	// records is asked before db.
	records RecordMoment
	// segments is asked before db for rows of segments.
	segments SegmentMoment
	// watch is called after every watchedRows rows of a walk, or as much other work; nil for most
	// views. walked counts the rows.
	watch  func() error
	walked int
}

const (
	// watchedRows is the number of rows after which a watched view calls its function. With look-ups
	// for each row that is about a millisecond.
	watchedRows = 256
	// watchedBytes is the size of a value that counts as one more row, since it is to be decoded.
	watchedBytes = 4096
)

// NewView reads a workspace of a shard through db: the database, a snapshot, or
// an open indexed batch.
func NewView(db pebble.Reader, shard Shard, workspace ID) View {
	return View{db: db, prefix: rangePrefix(shard, workspace)}
}

// Renew makes v read a workspace of a shard through db, as NewView does, and
// keeps its scratch space.
func (v *View) Renew(db pebble.Reader, shard Shard, workspace ID) {
	v.db, v.prefix, v.records, v.segments, v.watch = db, rangePrefix(shard, workspace), RecordMoment{}, SegmentMoment{}, nil
}

// Watch has v call a function every now and then while it walks over rows or works with them, for
// queries that may take long. An error of the function ends the walk and is its error.
func (v *View) Watch(fn func() error) { v.watch, v.walked = fn, 0 }

// Work counts work with what was read that takes as long as to read so many rows. The caller ends with
// its error.
func (v *View) Work(rows int) error {
	if v.watch == nil {
		return nil
	}
	if v.walked += rows; v.walked < watchedRows {
		return nil
	}
	v.walked = 0
	return v.watch()
}

// step counts a row of a walk by the size of its value.
func (v *View) step(size int) error { return v.Work(1 + size/watchedBytes) }

// Recall has v, which reads the state instance or a snapshot of it that was taken after the moment, look for records in
// a cache first.
func (v *View) Recall(m RecordMoment) { v.records = m }

// RecallSegments has v, which reads the state instance or a snapshot of it that was taken after the moment, look for
// rows of segments in a cache first.
func (v *View) RecallSegments(m SegmentMoment) { v.segments = m }

// Reader returns v itself.
func (v *View) Reader() *View { return v }

// Settle makes v read one moment, this one, until release is called. A View over a
// snapshot or an open batch does so anyhow. It is for look-ups that turn out to
// need a second one.
func (v *View) Settle() (release func() error) {
	live, moving := v.db.(interface{ NewSnapshot() *pebble.Snapshot })
	if !moving {
		return func() error { return nil }
	}
	before, records := v.db, v.records
	v.records = records.fixed() // before the snapshot
	snapshot := live.NewSnapshot()
	v.db = snapshot
	return func() error {
		v.db, v.records = before, records
		if err := snapshot.Close(); err != nil {
			return fmt.Errorf("close a snapshot: %w", err)
		}
		return nil
	}
}

// Shard of the workspace.
func (v *View) Shard() Shard { return Shard(binary.BigEndian.Uint16(v.prefix[:])) }

// Workspace whose rows are read.
func (v *View) Workspace() (id ID) { copy(id[:], v.prefix[2:]); return id }

// fullKey builds a key in the view's scratch space; it is valid until the next
// look-up.
func (v *View) fullKey(table TableID, fields []byte) Key {
	v.key = append(append(append(v.key[:0], v.prefix[:]...), byte(table)), fields...)
	return v.key
}

// get looks up a key. The value is valid until closer is closed; closer is nil
// when there is none.
func (v *View) get(table TableID, fields []byte) (value []byte, closer io.Closer, err error) {
	value, closer, err = v.db.Get(v.fullKey(table, fields))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read a key: %w", err)
	}
	return value, closer, nil
}

// Value reads a plain row (not a Table's record) into buf. It returns nil if and only if the row
// does not exist.
func (v *View) Value(table TableID, fields []byte, buf []byte) ([]byte, error) {
	return v.AdmittedValue(table, fields, buf, nil)
}

// AdmittedValue is like Value, and calls admit with the size of an existing row before it copies
// the row. If admit returns an error, it returns that and copies nothing. admit must not wait.
func (v *View) AdmittedValue(table TableID, fields []byte, buf []byte, admit func(size int) error) ([]byte, error) {
	value, closer, err := v.get(table, fields)
	if err != nil || closer == nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(len(value)); err != nil {
			return nil, errors.Join(err, closer.Close())
		}
	}
	if buf == nil {
		buf = make([]byte, 0, len(value))
	}
	buf = append(buf[:0], value...)
	return buf, closer.Close()
}

// AppendValue appends the value of a plain row (not a Table's record), and reports whether the row exists.
func (v *View) AppendValue(table TableID, fields []byte, buf []byte) (_ []byte, exists bool, err error) {
	value, closer, err := v.get(table, fields)
	if err != nil || closer == nil {
		return buf, false, err
	}
	return append(buf, value...), true, closer.Close()
}

// Number reads a plain row that holds a counter; 0 when there is none.
func (v *View) Number(table TableID, fields []byte) (uint64, error) {
	kept := v.records.keeps(table)
	var miss missed
	if kept {
		var r *keptRecord
		if r, miss = v.records.find(v.fullKey(table, fields)); r != nil {
			return binary.BigEndian.Uint64(r.value), nil
		}
	}
	value, closer, err := v.get(table, fields)
	if err != nil {
		return 0, err
	}
	var n uint64
	if closer != nil {
		if len(value) == 8 {
			n = binary.BigEndian.Uint64(value)
		} else {
			err = fmt.Errorf("%w: counter of %d bytes", ErrFormat, len(value))
		}
		if err := errors.Join(err, closer.Close()); err != nil {
			return n, err
		}
	}
	if kept { // an absent counter is kept as 0
		var number [8]byte
		binary.BigEndian.PutUint64(number[:], n)
		v.records.keep(v.key, number[:], miss)
	}
	return n, nil
}

// iterate opens an iterator over the keys of table that begin with fields.
func (v *View) iterate(table TableID, fields []byte) (*pebble.Iterator, int, error) {
	it, err := v.db.NewIter(v.bounds(table, fields))
	if err != nil {
		return nil, 0, fmt.Errorf("open an iterator: %w", err)
	}
	return it, prefixLen + 1, nil
}

// bounds confines an iterator to the keys of table that begin with fields.
func (v *View) bounds(table TableID, fields []byte) *pebble.IterOptions {
	lower := v.fullKey(table, fields)
	both := make([]byte, 0, 2*len(lower))
	both = append(both, lower...)
	return &pebble.IterOptions{LowerBound: both, UpperBound: appendSuccessor(both[len(both):], lower)}
}

// Rows walks the plain rows of table whose fields begin with prefix, in key
// order, from the first one not before from (fields behind the prefix; nil: all).
// Key and value are valid until fn returns. fn returns false to stop.
func (v *View) Rows(table TableID, prefix, from []byte, fn func(fields, value []byte) (bool, error)) error {
	return v.rows(table, prefix, from, (*pebble.Iterator).Next, fn)
}

// HotRows is Rows, from the first one, for rows that are written again and again,
// such as counters. It seeks from each to the next, which leaps over the versions
// that a row has in memory until it is flushed; Rows steps through them all.
func (v *View) HotRows(table TableID, prefix []byte, fn func(fields, value []byte) (bool, error)) error {
	var behind []byte
	return v.rows(table, prefix, nil, func(it *pebble.Iterator) bool {
		behind = append(append(behind[:0], it.Key()...), 0)
		return it.SeekGE(behind)
	}, fn)
}

func (v *View) rows(table TableID, prefix, from []byte, next func(*pebble.Iterator) bool, fn func(fields, value []byte) (bool, error)) error {
	it, skip, err := v.iterate(table, prefix)
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }()
	var ok bool
	if len(from) > 0 {
		ok = it.SeekGE(append(v.fullKey(table, prefix), from...))
	} else {
		ok = it.First()
	}
	for ; ok; ok = next(it) {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		more, err := fn(it.Key()[skip:], value)
		if err != nil || !more {
			return err
		}
		if err := v.step(len(value)); err != nil {
			return err
		}
	}
	return it.Error()
}

// RowsBack walks the plain rows of table whose fields begin with prefix against
// the key order, from the last one before before (fields behind the prefix; nil:
// all). Otherwise it is like Rows.
func (v *View) RowsBack(table TableID, prefix, before []byte, fn func(fields, value []byte) (bool, error)) error {
	it, skip, err := v.iterate(table, prefix)
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }()
	var ok bool
	if len(before) > 0 {
		ok = it.SeekLT(append(v.fullKey(table, prefix), before...))
	} else {
		ok = it.Last()
	}
	for ; ok; ok = it.Prev() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		more, err := fn(it.Key()[skip:], value)
		if err != nil || !more {
			return err
		}
		if err := v.step(len(value)); err != nil {
			return err
		}
	}
	return it.Error()
}
