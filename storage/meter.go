package storage

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Counting says in which sums the rows under an id are.
type Counting uint8

const (
	// Uncounted rows are in no sum: they are small and bounded, or derived from rows
	// that count.
	Uncounted Counting = iota
	// Counted rows are in the sum of all bytes.
	Counted
	// CountedApart rows are in that sum, and in one of their own.
	CountedApart
)

// Bytes is the size of a workspace's counted rows: their keys and values. All rows of a workspace
// count, except plain rows that are not declared as counted.
type Bytes struct {
	All   int64 // of all counted rows
	Apart int64 // of those among them that are CountedApart
	// Rows are the numbers of rows under the ids of Schema.RowCounts.
	Rows [MaxRowCounts]int64
}

// MaxRowCounts limits the ids of Schema.RowCounts.
const MaxRowCounts = 4

// Meter says which rows of a workspace are counted: records of tables, their
// entries in indexes of the workspace, and the plain rows that say so.
type Meter struct {
	of [256]Counting
	// place is the place of an id in Schema.RowCounts, plus 1; 0 for other ids.
	place [256]uint8
}

// NewMeter makes the meter of the schemas.
func NewMeter(schemas ...*Schema) *Meter {
	m := &Meter{}
	for _, s := range schemas {
		for _, t := range s.Tables {
			info := t.describe()
			m.of[info.id] = Counted
			for _, ix := range info.indexes {
				if !ix.wide { // those lie outside the workspace's range
					m.of[ix.id] = Counted
				}
			}
		}
		for i := range s.Rows {
			m.of[s.Rows[i].ID] = s.Rows[i].Counting
		}
		for i, id := range s.RowCounts {
			m.place[id] = uint8(i + 1)
		}
	}
	return m
}

// add counts n bytes of a row of an id; n is below zero for a row that is removed.
func (m *Meter) add(b *Bytes, id TableID, n int64) {
	if place := m.place[id]; place > 0 {
		if n > 0 {
			b.Rows[place-1]++
		} else {
			b.Rows[place-1]--
		}
	}
	switch m.of[id] {
	case CountedApart:
		b.Apart += n
		b.All += n
	case Counted:
		b.All += n
	}
}

// Measure makes the Tx count the bytes that it writes from now on.
func (tx *Tx) Measure(m *Meter) { tx.meter = m }

// Recount begins a new count.
func (tx *Tx) Recount() { tx.counted = Bytes{} }

// Counted is by how many bytes the workspace grew since Recount; below zero it
// shrank.
func (tx *Tx) Counted() Bytes { return tx.counted }

// CountBelow has only rows before key be counted: a state that was written without
// a count is counted in steps, and key is how far that has come. A nil key
// counts all.
func (tx *Tx) CountBelow(key []byte) { tx.below = bytes.Clone(key) }

// CountingBelow is the key that CountBelow set.
func (tx *Tx) CountingBelow() []byte { return tx.below }

// counts reports whether rows under an id are counted.
func (tx *Tx) counts(id TableID) bool { return tx.meter != nil && tx.meter.of[id] != Uncounted }

// count adds n bytes for a row.
func (tx *Tx) count(key []byte, n int) {
	if tx.below == nil || bytes.Compare(key, tx.below) < 0 {
		tx.meter.add(&tx.counted, TableID(key[prefixLen]), int64(n))
	}
}

// stored is the length of the value under a full key; found is false when there is
// no such row. A row may lie in a file of its own kind, so this can cost a read.
func (tx *Tx) stored(key []byte) (size int, found bool, err error) {
	value, closer, err := tx.View.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("measure a row: %w", err)
	}
	return len(value), true, closer.Close()
}

// uncount takes the rows from start to end out of the count.
func (tx *Tx) uncount(start, end []byte) error {
	return tx.walk(start, end, func(key []byte, size int) bool {
		tx.count(key, -len(key)-size)
		return true
	})
}

// walk calls fn with every row from start to end, until it returns false. It reads
// keys and the lengths of values, not the values.
func (tx *Tx) walk(start, end []byte, fn func(key []byte, size int) bool) error {
	it, err := tx.View.db.NewIter(&pebble.IterOptions{LowerBound: bytes.Clone(start), UpperBound: end})
	if err != nil {
		return fmt.Errorf("measure rows: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if lazy := it.LazyValue(); !fn(it.Key(), lazy.Len()) {
			break
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return fmt.Errorf("measure rows: %w", err)
	}
	return nil
}

// CountOn counts the next rows below CountBelow, at most limit of them, and moves that bound. It
// reports whether rows are left.
func (tx *Tx) CountOn(limit int) (more bool, err error) {
	start, end := WorkspaceRange(tx.Shard(), tx.Workspace())
	if bytes.Compare(tx.below, start) > 0 {
		start = tx.below
	}
	tx.below = nil // the rows met are counted
	var next []byte
	rows := 0
	err = tx.walk(start, end, func(key []byte, size int) bool {
		if rows++; rows > limit {
			next = bytes.Clone(key)
			return false
		}
		tx.count(key, len(key)+size)
		return true
	})
	tx.below = next
	return next != nil, err
}
