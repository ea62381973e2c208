package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// DirtyFlags says which kinds of rows a batch changes, for caches derived from them. The owner of the
// tables defines the bits.
type DirtyFlags uint8

// Tx reads and writes one workspace in an open indexed batch, so that a command sees the writes of
// earlier commands in the same batch. It is owned by the workspace's goroutine.
//
// All workspaces take the memory of their batches from one pool. A Tx has a batch from Begin or
// its first write until Reset, and reads the committed state otherwise.
type Tx struct {
	View
	db      *pebble.DB
	base    View          // the committed state
	batch   *pebble.Batch // nil while there is none
	dirty   DirtyFlags
	entries Entries // scratch for index diffs
	value   []byte  // scratch for encoded records
	pk      []byte  // scratch for primary keys
	oldPK   []byte

	meter   *Meter // nil: nothing is counted
	counted Bytes  // since Recount
	below   []byte // rows from this key on are not counted; nil: all are
}

// NewTx makes a Tx over the state of a workspace.
func NewTx(db *pebble.DB, shard Shard, workspace ID) *Tx {
	return &Tx{View: NewView(db, shard, workspace), db: db, base: NewView(db, shard, workspace)}
}

// Begin opens a batch if there is none. Copies of View that were made before don't see what is
// written into it.
func (tx *Tx) Begin() {
	if tx.batch == nil {
		tx.batch = tx.db.NewIndexedBatch()
		tx.View.db = tx.batch
	}
}

// open returns the open batch.
func (tx *Tx) open() *pebble.Batch {
	tx.Begin()
	return tx.batch
}

// Committed is the workspace without the open batch. Reading it costs less, since
// the batch isn't looked through.
func (tx *Tx) Committed() *View { return &tx.base }

// Writer returns tx itself.
func (tx *Tx) Writer() *Tx { return tx }

// Mark is a point in an open batch to go back to.
type Mark struct {
	size  int
	count uint32
	dirty DirtyFlags
}

// Mark returns the position of the batch before a command.
func (tx *Tx) Mark() Mark {
	b := tx.open()
	return Mark{size: b.Len(), count: b.Count(), dirty: tx.dirty}
}

// Wrote reports whether anything was written since the mark.
func (tx *Tx) Wrote(m Mark) bool { return tx.open().Len() != m.size }

// Written is the number of bytes written since the mark.
func (tx *Tx) Written(m Mark) int { return tx.open().Len() - m.size }

// Rollback undoes the writes since the mark. No look-up of this Tx may be under way. It builds the
// batch again up to the mark: rollbacks are rare, so they carry the cost.
func (tx *Tx) Rollback(m Mark) error {
	tx.dirty = m.dirty
	if !tx.Wrote(m) {
		return nil
	}
	kept := bytes.Clone(tx.batch.Repr()[:m.size])
	binary.LittleEndian.PutUint32(kept[8:12], m.count) // the header counts the operations
	tx.batch.Reset()
	var before pebble.Batch
	if err := before.SetRepr(kept); err != nil {
		return fmt.Errorf("roll back a command: %w", err)
	}
	if err := tx.batch.Apply(&before, nil); err != nil {
		return fmt.Errorf("roll back a command: %w", err)
	}
	return nil
}

// Empty reports whether the batch holds no writes.
func (tx *Tx) Empty() bool { return tx.batch == nil || tx.batch.Empty() }

// Ops is the number of keys written and Size their bytes, with keys and values.
func (tx *Tx) Ops() int {
	if tx.batch == nil {
		return 0
	}
	return int(tx.batch.Count())
}

// Size is the batch's length in bytes; 0 while there is none.
func (tx *Tx) Size() int {
	if tx.batch == nil {
		return 0
	}
	return tx.batch.Len()
}

// MarkDirty adds to Dirty, for plain rows without a table.
func (tx *Tx) MarkDirty(t DirtyFlags) { tx.dirty |= t }

// Dirty says which kinds of rows the batch changes.
func (tx *Tx) Dirty() DirtyFlags { return tx.dirty }

// Repr is the batch as it is replicated. It aliases the batch: valid until Reset.
func (tx *Tx) Repr() []byte { return tx.open().Repr() }

// Release gives the batch's memory back if nothing was written.
func (tx *Tx) Release() {
	if tx.Empty() {
		_ = tx.Close() // an indexed batch that was not committed has nothing to fail at
	}
}

// Reset drops the batch and gives its memory back.
func (tx *Tx) Reset() {
	_ = tx.Close() // as in Release
	tx.dirty = 0
	tx.entries.trim()
	if cap(tx.value) > maxScratch {
		tx.value = nil
	}
}

// Close drops the batch and gives its memory back, if there is one.
func (tx *Tx) Close() error {
	if tx.batch == nil {
		return nil
	}
	err := tx.batch.Close()
	tx.batch, tx.View.db = nil, tx.db
	return err
}

// SetValue writes a plain row and replaces an existing one. If rows of the table are counted, that
// costs a look-up; AddValue needs none.
func (tx *Tx) SetValue(table TableID, fields, value []byte) error {
	if tx.counts(table) {
		key := tx.fullKey(table, fields)
		size, found, err := tx.stored(key)
		if err != nil {
			return err
		}
		if found {
			tx.count(key, -len(key)-size)
		}
	}
	return tx.AddValue(table, fields, value)
}

// AddValue writes a plain row that is not there yet.
func (tx *Tx) AddValue(table TableID, fields, value []byte) error {
	key := tx.fullKey(table, fields)
	if err := tx.open().Set(key, value, nil); err != nil {
		return fmt.Errorf("write a row: %w", err)
	}
	if tx.counts(table) {
		tx.count(key, len(key)+len(value))
	}
	return nil
}

// ReplaceValue writes a plain row in place of one whose value has size bytes.
func (tx *Tx) ReplaceValue(table TableID, fields, value []byte, size int) error {
	if err := tx.AddValue(table, fields, value); err != nil {
		return err
	}
	if key := tx.fullKey(table, fields); tx.counts(table) {
		tx.count(key, -len(key)-size)
	}
	return nil
}

// SetNumber writes a counter.
func (tx *Tx) SetNumber(table TableID, fields []byte, n uint64) error {
	tx.value = binary.BigEndian.AppendUint64(tx.value[:0], n)
	return tx.SetValue(table, fields, tx.value)
}

// DeleteValue removes a plain row, if it is there. Where rows of the table are
// counted that costs a look-up; RemoveValue does without.
func (tx *Tx) DeleteValue(table TableID, fields []byte) error {
	if tx.counts(table) {
		size, found, err := tx.stored(tx.fullKey(table, fields))
		if err != nil || !found {
			return err
		}
		return tx.RemoveValue(table, fields, size)
	}
	return tx.RemoveValue(table, fields, 0)
}

// RemoveValue removes a plain row that is there and whose value has size bytes.
func (tx *Tx) RemoveValue(table TableID, fields []byte, size int) error {
	key := tx.fullKey(table, fields)
	if err := tx.open().Delete(key, nil); err != nil {
		return fmt.Errorf("delete a row: %w", err)
	}
	if tx.counts(table) {
		tx.count(key, -len(key)-size)
	}
	return nil
}

// DeleteRows removes the plain rows of table whose fields begin with prefix, in
// one operation however many there are. It leaves a tombstone that reads of the
// range step over until a compaction drops it: for ranges that may be large and
// are not written again. Where they are counted it steps through their keys.
func (tx *Tx) DeleteRows(table TableID, prefix []byte) error {
	start := tx.fullKey(table, prefix)
	if tx.counts(table) {
		if err := tx.uncount(start, successor(start)); err != nil {
			return err
		}
	}
	if err := tx.open().DeleteRange(start, successor(start), nil); err != nil {
		return fmt.Errorf("delete a range of rows: %w", err)
	}
	return nil
}

// DeleteWorkspace deletes every row of the workspace. Rows of shard-wide indexes lie outside its
// range: delete their records first. It sets every dirty flag and resets the byte count.
func (tx *Tx) DeleteWorkspace() error {
	start, end := WorkspaceRange(tx.Shard(), tx.Workspace())
	if err := tx.open().DeleteRange(start, end, nil); err != nil {
		return fmt.Errorf("delete a workspace's range: %w", err)
	}
	tx.dirty = ^DirtyFlags(0)
	tx.counted, tx.below = Bytes{}, nil
	return nil
}
