package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// Some commands write more than fits into one batch: deletions of what any number
// of records hang on. They do it portion by portion, answering Reply.More until
// nothing is left, and what they are about goes last: whoever meets a crash between
// two portions repeats the command, and nothing dangles meanwhile.

// A portion is this many records, or fewer when they have grown the batch by this
// many bytes. What the last record and the end of the command add on top, and their
// events, must still fit into what a command may write.
const (
	maxPortion      = 500
	maxPortionBytes = 4 << 20
)

// portion is what a command may still write in this batch. Steps of one command
// share it.
type portion struct {
	tx    *Tx
	start int // size of the batch when the command began
	left  int // records
}

func (tx *Tx) newPortion() *portion {
	return &portion{tx: tx, start: tx.Writer().Size(), left: maxPortion}
}

// spent tells whether the batch is full; else it counts one more record.
func (p *portion) spent() bool {
	if p.left == 0 || p.tx.Writer().Size()-p.start > maxPortionBytes {
		return true
	}
	p.left--
	return false
}

// rowKeys lists what is behind prefix in the keys of a table or index, at most
// limit of them.
func (v *View) rowKeys(table storage.TableID, prefix []byte, limit int) (keys [][]byte, err error) {
	err = v.Rows(table, prefix, nil, func(fields, _ []byte) (bool, error) {
		keys = append(keys, bytes.Clone(fields[len(prefix):]))
		return len(keys) < limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}
