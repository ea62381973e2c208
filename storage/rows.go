package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// RowOp is the kind of a change of rows.
type RowOp byte

// The kinds. Never change one: blocks of rows pass between versions of the program.
const (
	RowSet         RowOp = 1
	RowDelete      RowOp = 2
	RowDeleteRange RowOp = 3
)

// RowChange is a change of a workspace's rows, without the workspace's prefix: keys begin with the
// table's id.
type RowChange struct {
	Op  RowOp
	Key []byte
	// Value is the row of a RowSet, and the end of a RowDeleteRange, which is not deleted; an empty
	// end is that of the workspace. A RowDelete has none.
	Value []byte
}

// Table returns the table, index or plain row that the change begins in.
func (c *RowChange) Table() TableID { return TableID(c.Key[0]) }

// ErrRows is the error of ReadRows for bytes that are not a block of rows.
var ErrRows = errors.New("storage: not a block of rows")

// AppendRow appends a change to a block, which carries rows from one cluster to another: the kind
// (1 byte), the length of the key (uvarint), the key, and for all but deletions of one row the
// length of the value (uvarint) and the value.
func AppendRow(b []byte, c *RowChange) []byte {
	b = binary.AppendUvarint(append(b, byte(c.Op)), uint64(len(c.Key)))
	b = append(b, c.Key...)
	if c.Op != RowDelete {
		b = binary.AppendUvarint(b, uint64(len(c.Value)))
		b = append(b, c.Value...)
	}
	return b
}

// ReadRows calls fn with the changes in a block, in order. What fn is given aliases the block. The
// error is ErrRows or that of fn.
func ReadRows(block []byte, fn func(*RowChange) error) error {
	var c RowChange
	for rest := block; len(rest) > 0; {
		at := len(block) - len(rest)
		c = RowChange{Op: RowOp(rest[0])}
		rest = rest[1:]
		ok := c.Op == RowSet || c.Op == RowDelete || c.Op == RowDeleteRange
		if ok {
			c.Key, rest, ok = cutField(rest)
		}
		if ok && c.Op != RowDelete {
			c.Value, rest, ok = cutField(rest)
		}
		if !ok || len(c.Key) == 0 {
			return fmt.Errorf("%w: at byte %d", ErrRows, at)
		}
		if err := fn(&c); err != nil {
			return err
		}
	}
	return nil
}

func cutField(b []byte) (field, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// TakeRow makes a change of the workspace's rows as it was made elsewhere: entries of indexes within
// the workspace are rows of their own, nothing is counted, and shard-wide indexes are left alone.
func (tx *Tx) TakeRow(c *RowChange) (err error) {
	key := append(tx.prefix[:prefixLen:prefixLen], c.Key...)
	switch c.Op {
	case RowSet:
		err = tx.open().Set(key, c.Value, nil)
	case RowDelete:
		err = tx.open().Delete(key, nil)
	case RowDeleteRange:
		_, end := WorkspaceRange(tx.Shard(), tx.Workspace())
		if len(c.Value) > 0 {
			end = append(tx.prefix[:prefixLen:prefixLen], c.Value...)
		}
		err = tx.open().DeleteRange(key, end, nil)
	default:
		err = fmt.Errorf("%w: kind %d", ErrRows, c.Op)
	}
	if err != nil {
		return fmt.Errorf("take a row: %w", err)
	}
	return nil
}

// AddShardWide writes the entries of a record in the table's shard-wide indexes, for a record whose
// row was taken with TakeRow.
func (t *Table[T]) AddShardWide(w Writer, v *T) error {
	tx := w.Writer()
	tx.pk = t.Key(tx.pk[:0], v)
	e := &tx.entries
	e.begin(tx.prefix, tx.pk)
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if !ix.ShardWide {
			continue
		}
		e.index, e.unique, e.wide = ix.ID, ix.Unique, true
		ix.Entries(e, v)
	}
	var err error
	e.each(func(key, value []byte) { err = errors.Join(err, tx.open().Set(key, value, nil)) })
	if err != nil {
		return fmt.Errorf("%s: write an index entry: %w", t.Name, err)
	}
	tx.dirty |= t.Dirty
	return nil
}

// Within returns the ids of the rows within a workspace: of its tables and their indexes that are not
// shard-wide, and of its plain rows. Those of some tables are left out.
func (s *Schema) Within(without ...TableID) (ids [256]bool) {
	for _, t := range s.Tables {
		info := t.describe()
		if slices.Contains(without, info.id) {
			continue
		}
		ids[info.id] = true
		for _, ix := range info.indexes {
			ids[ix.id] = !ix.wide
		}
	}
	for i := range s.Rows {
		ids[s.Rows[i].ID] = !slices.Contains(without, s.Rows[i].ID)
	}
	return ids
}
