package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// Some commands write more than fits into one batch: deletions of records that any
// number of others depend on. Such a command works batch by batch and answers Reply.More
// until nothing is left. The record itself is deleted last, so that after a crash
// between two batches the command can be repeated and no reference dangles meanwhile. A
// command that counts what it does keeps its count for its idempotency key: see Reply.soFar.

// A batch gets this many records, or fewer if they have grown it by this many bytes. The
// last record, the end of the command and the events are added to these and must still fit
// into maxCommandBytes.
const (
	maxBudgetRecords = 500
	maxBudgetBytes   = 4 << 20
)

// workBudget is the number of records that a command may still write in this batch. Steps
// of one command share it.
type workBudget struct {
	tx    *Tx
	start int // size of the batch when the command began
	left  int // records
}

func (tx *Tx) newWorkBudget() *workBudget {
	return &workBudget{tx: tx, start: tx.Writer().Size(), left: maxBudgetRecords}
}

// spent reports whether the batch is full; if it is not, spent counts one more record.
func (p *workBudget) spent() bool {
	if p.left == 0 || p.tx.Writer().Size()-p.start > maxBudgetBytes {
		return true
	}
	p.left--
	return false
}

// rowKeys lists the keys of a table or index that begin with prefix, without the
// prefix, and at most limit of them.
func (v *View) rowKeys(table storage.TableID, prefix []byte, limit int) ([][]byte, error) {
	return v.rowKeysFrom(table, prefix, nil, limit)
}

// rowKeysFrom is like rowKeys, from the first key not before from (behind the prefix).
func (v *View) rowKeysFrom(table storage.TableID, prefix, from []byte, limit int) (keys [][]byte, err error) {
	err = v.Rows(table, prefix, from, func(fields, _ []byte) (bool, error) {
		keys = append(keys, bytes.Clone(fields[len(prefix):]))
		return len(keys) < limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}
