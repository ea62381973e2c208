package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Reader is what table look-ups need: a View, or a Tx, which reads its own
// writes.
type Reader interface{ Reader() *View }

// Writer is what table changes need: a Tx.
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
}

// NewView reads a workspace of a shard through db: the database, a snapshot, or
// an open indexed batch.
func NewView(db pebble.Reader, shard Shard, workspace ID) View {
	return View{db: db, prefix: rangePrefix(shard, workspace)}
}

// Reader returns v itself.
func (v *View) Reader() *View { return v }

// Shard of the workspace.
func (v *View) Shard() Shard { return Shard(binary.BigEndian.Uint16(v.prefix[:])) }

// Workspace whose rows are read.
func (v *View) Workspace() (id ID) { copy(id[:], v.prefix[2:]); return id }

// tableKey starts a key of the table in the view's scratch space; it is valid
// until the next look-up.
func (v *View) tableKey(table TableID) Key {
	v.key = append(append(v.key[:0], v.prefix[:]...), byte(table))
	return v.key
}

// get looks up a full key and hands the value to fn while it is valid; false
// when there is none.
func (v *View) get(key []byte, fn func(value []byte) error) (bool, error) {
	value, closer, err := v.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read a key: %w", err)
	}
	err = fn(value)
	return true, errors.Join(err, closer.Close())
}

// Value reads a plain row (one that is not a Table's record) into buf; nil when
// there is none.
func (v *View) Value(table TableID, fields []byte, buf []byte) ([]byte, error) {
	found, err := v.get(append(v.tableKey(table), fields...), func(value []byte) error {
		buf = append(buf[:0], value...)
		return nil
	})
	if !found || err != nil {
		return nil, err
	}
	return buf, nil
}

// Number reads a plain row that holds a counter; 0 when there is none.
func (v *View) Number(table TableID, fields []byte) (uint64, error) {
	var n uint64
	_, err := v.get(append(v.tableKey(table), fields...), func(value []byte) error {
		if len(value) != 8 {
			return fmt.Errorf("%w: counter of %d bytes", ErrFormat, len(value))
		}
		n = binary.BigEndian.Uint64(value)
		return nil
	})
	return n, err
}

// iterate opens an iterator over the keys of table that begin with fields.
func (v *View) iterate(table TableID, fields []byte) (*pebble.Iterator, int, error) {
	lower := make([]byte, 0, 2*(prefixLen+1+len(fields)))
	lower = append(append(append(lower, v.prefix[:]...), byte(table)), fields...)
	it, err := v.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: successor(lower)})
	if err != nil {
		return nil, 0, fmt.Errorf("open an iterator: %w", err)
	}
	return it, prefixLen + 1, nil
}

// Rows walks the plain rows of table whose fields begin with prefix, in key
// order, from the first one not before from (fields behind the prefix; nil: all).
// Key and value are valid until fn returns. fn returns false to stop.
func (v *View) Rows(table TableID, prefix, from []byte, fn func(fields, value []byte) (bool, error)) error {
	it, skip, err := v.iterate(table, prefix)
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }()
	ok := false
	if len(from) > 0 {
		lower := append(append(v.tableKey(table), prefix...), from...)
		ok = it.SeekGE(bytes.Clone(lower))
	} else {
		ok = it.First()
	}
	for ; ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		more, err := fn(it.Key()[skip:], value)
		if err != nil || !more {
			return err
		}
	}
	return it.Error()
}
