package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// RowCopy reads the rows of a workspace at one moment, as blocks for Tx.TakeRow: all of them, or
// those that have changed. It is used by one goroutine, and must be closed.
type RowCopy struct {
	snapshot *pebble.Snapshot
	prefix   [prefixLen]byte
	skip     func(TableID) bool

	ranges []keyRange // to be read; the first one is being read if it is set
	it     *pebble.Iterator
	keys   []string // to be read after the ranges, in order
}

type keyRange struct {
	start, end string
	erased     bool // rows of the range were deleted as a range
}

// NewRowCopy reads from a snapshot, which it closes. It leaves out the rows under the ids that skip
// reports. With changes it reads only the rows that they name.
func NewRowCopy(snapshot *pebble.Snapshot, shard Shard, workspace ID, skip func(TableID) bool, changes *RowChanges) *RowCopy {
	c := &RowCopy{snapshot: snapshot, prefix: rangePrefix(shard, workspace), skip: skip}
	if changes == nil {
		start, end := WorkspaceRange(shard, workspace)
		c.ranges = []keyRange{{start: string(start), end: string(end)}}
		return c
	}
	c.ranges = changes.ranges
	c.keys = make([]string, 0, len(changes.keys))
	for key := range changes.keys {
		c.keys = append(c.keys, key)
	}
	slices.Sort(c.keys)
	return c
}

// Has reports whether the workspace has a row with the id of a table and no key.
func (c *RowCopy) Has(table TableID) (bool, error) {
	_, closer, err := c.snapshot.Get(append(c.prefix[:prefixLen:prefixLen], byte(table)))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = closer.Close()
	}
	if err != nil {
		return false, fmt.Errorf("look for a row: %w", err)
	}
	return true, nil
}

// Next appends rows to b, up to about so many bytes, and at least one. It returns io.EOF when there
// are no more.
func (c *RowCopy) Next(b []byte, size int) ([]byte, error) {
	begun := len(b)
	for len(b)-begun < size {
		var err error
		switch {
		case len(c.ranges) > 0:
			b, err = c.nextInRange(b)
		case len(c.keys) > 0:
			b, err = c.look(b, []byte(c.keys[0]))
			c.keys = c.keys[1:]
		case len(b) == begun:
			return b, io.EOF
		default:
			return b, nil
		}
		if err != nil {
			return b, fmt.Errorf("copy the rows of a workspace: %w", err)
		}
	}
	return b, nil
}

// nextInRange appends a row of the first range, or its deletion before them.
func (c *RowCopy) nextInRange(b []byte) ([]byte, error) {
	r := &c.ranges[0]
	if c.it == nil {
		it, err := c.snapshot.NewIter(&pebble.IterOptions{LowerBound: []byte(r.start), UpperBound: []byte(r.end)})
		if err != nil {
			return b, err
		}
		c.it = it
		it.First()
		if r.erased {
			end, _ := bytes.CutPrefix([]byte(r.end), c.prefix[:])
			if len(end) == len(r.end) {
				end = nil // it is the end of the workspace
			}
			return AppendRow(b, &RowChange{Op: RowDeleteRange, Key: []byte(r.start)[prefixLen:], Value: end}), nil
		}
	}
	if !c.it.Valid() {
		err := errors.Join(c.it.Error(), c.it.Close())
		c.it, c.ranges = nil, c.ranges[1:]
		return b, err
	}
	key := c.it.Key()[prefixLen:]
	if c.skip(TableID(key[0])) {
		c.it.SeekGE(successor(c.it.Key()[:prefixLen+1]))
		return b, nil
	}
	value, err := c.it.ValueAndErr()
	if err != nil {
		return b, err
	}
	b = AppendRow(b, &RowChange{Op: RowSet, Key: key, Value: value})
	c.it.Next()
	return b, nil
}

// look appends a row by its key, or its deletion.
func (c *RowCopy) look(b, key []byte) ([]byte, error) {
	change := RowChange{Op: RowSet, Key: key[prefixLen:]}
	if c.skip(change.Table()) {
		return b, nil
	}
	value, closer, err := c.snapshot.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		change.Op = RowDelete
		return AppendRow(b, &change), nil
	}
	if err != nil {
		return b, err
	}
	change.Value = value
	return AppendRow(b, &change), closer.Close()
}

// Close closes the snapshot.
func (c *RowCopy) Close() error {
	var err error
	if c.it != nil {
		err = c.it.Close()
	}
	if err = errors.Join(err, c.snapshot.Close()); err != nil {
		return fmt.Errorf("close the copy of a workspace: %w", err)
	}
	return nil
}

// RowChanges are the keys of a workspace that a number of batches change.
type RowChanges struct {
	start, end []byte // of the workspace
	ranges     []keyRange
	keys       map[string]struct{}
	bytes      int
}

// maxRowChanges bounds the keys of RowChanges in bytes.
const maxRowChanges = 64 << 20

// ErrTooManyChanges is the error of RowChanges.Add beyond maxRowChanges.
var ErrTooManyChanges = errors.New("storage: too many rows have changed")

// NewRowChanges begins with no changes.
func NewRowChanges(shard Shard, workspace ID) *RowChanges {
	c := &RowChanges{keys: map[string]struct{}{}}
	c.start, c.end = WorkspaceRange(shard, workspace)
	return c
}

// Add adds the keys in the representation of a Pebble batch. It keeps no part of it.
func (c *RowChanges) Add(repr []byte) error {
	var batch pebble.Batch
	if err := batch.SetRepr(repr); err != nil {
		return fmt.Errorf("read a batch: %w", err)
	}
	for r := batch.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		switch {
		case err != nil:
			return fmt.Errorf("read a batch: %w", err)
		case !ok:
			return nil
		case kind == pebble.InternalKeyKindRangeDelete:
			// A range that begins before the workspace, or ends behind it, is of no workspace.
			if bytes.Compare(key, c.start) >= 0 && bytes.Compare(value, c.end) <= 0 {
				c.ranges = append(c.ranges, keyRange{start: string(key), end: string(value), erased: true})
				c.bytes += len(key) + len(value) + changeOverhead
			}
		case bytes.Compare(key, c.start) >= 0 && bytes.Compare(key, c.end) < 0:
			if _, known := c.keys[string(key)]; !known {
				c.keys[string(key)] = struct{}{}
				c.bytes += len(key) + changeOverhead
			}
		}
		if c.bytes > maxRowChanges {
			return ErrTooManyChanges
		}
	}
}

// changeOverhead is about the memory of a change beside its keys.
const changeOverhead = 48
