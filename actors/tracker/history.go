package tracker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// The history of an issue has one row for each change. Its key is the issue and the id
// of the change's event, newest first; it holds the actor, the time, and the old and
// new value of each changed field (Decision 42). Unlike events the rows stay as long as
// the issue.
//
// A row is historyFormat, the time in milliseconds (8 bytes), and strings with their
// lengths in front: the type and id of the actor, then name, old and new value of each
// field, the values as JSON.
const historyFormat = 1

// maxHistoryFields limits the fields of one change. The id of an entry is that of its
// event with the field's index in the last byte.
const maxHistoryFields = 256

// historyEntry is one field of a change.
type historyEntry struct{ field, from, to []byte }

// keepHistory writes a change of an issue to its history, and returns the id for the
// change's event.
func (tx *Tx) keepHistory(issue storage.ID, changes []Change) (storage.ID, error) {
	id, err := tx.NewID()
	if err != nil {
		return id, err
	}
	b := tx.buffer.past[:0]
	b = binary.BigEndian.AppendUint64(append(b, historyFormat), uint64(tx.now.UnixMilli()))
	b = appendSized(appendSized(b, string(tx.Caller.Type)), tx.Caller.ID)
	if err := encodeChanges(changes); err != nil {
		return id, fmt.Errorf("encode a change: %w", err)
	}
	for _, c := range changes {
		b = appendSized(appendSized(appendSized(b, c.Field), *c.From.(*json.RawMessage)), *c.To.(*json.RawMessage))
	}
	var key [2 * len(id)]byte
	err = tx.Writer().AddValue(historyTable, storage.Key(key[:0]).ID(issue).DescID(id), b)
	if tx.buffer.past = b; cap(b) > maxScratch {
		tx.buffer.past = nil
	}
	return id, err
}

func appendSized[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// forgetHistory removes the history of an issue, in one step of any length.
func (tx *Tx) forgetHistory(issue storage.ID) error {
	// Most deleted issues have none, and a range deletion of no rows costs reads.
	there, err := tx.Has(historyTable, issue[:])
	if err == nil && there {
		err = tx.Writer().DeleteRows(historyTable, issue[:])
	}
	if err != nil {
		return fmt.Errorf("remove an issue's history: %w", err)
	}
	return nil
}

var errHistory = fmt.Errorf("%w: history", storage.ErrFormat)

// historyRow is a decoded change of an issue; its strings alias the row.
type historyRow struct {
	id      storage.ID
	at      Timestamp
	actor   []byte
	kind    []byte // type of the actor
	entries []historyEntry
}

// parse decodes a row. key is the part behind the issue's id.
func (r *historyRow) parse(key, value []byte) error {
	if len(key) != len(r.id) || len(value) < 9 || value[0] != historyFormat {
		return errHistory
	}
	for i, c := range key {
		r.id[i] = ^c
	}
	r.at = At(time.UnixMilli(int64(binary.BigEndian.Uint64(value[1:]))))
	rest := sizedTexts{b: value[9:]}
	r.kind, r.actor = rest.next(), rest.next()
	r.entries = r.entries[:0]
	for len(rest.b) > 0 && !rest.broken {
		r.entries = append(r.entries, historyEntry{rest.next(), rest.next(), rest.next()})
	}
	if rest.broken || len(r.entries) == 0 || len(r.entries) > maxHistoryFields {
		return errHistory
	}
	return nil
}

// entryID returns the id of an entry. Entries of one change differ in the last byte.
func (r *historyRow) entryID(n int) storage.ID {
	id := r.id
	id[15] = byte(n)
	return id
}

// sizedTexts decodes strings that appendSized wrote.
type sizedTexts struct {
	b      []byte
	broken bool
}

func (t *sizedTexts) next() []byte {
	n, size := binary.Uvarint(t.b)
	if t.broken || size <= 0 || n > uint64(len(t.b)-size) {
		t.broken = true
		return nil
	}
	text := t.b[size : size+int(n)]
	t.b = t.b[size+int(n):]
	return text
}

// checkHistory checks that a change can be decoded and that its issue exists.
func checkHistory(v *storage.View, fields, value []byte) error {
	var issue storage.ID
	if len(fields) < len(issue) {
		return errHistory
	}
	copy(issue[:], fields)
	var row historyRow
	if err := row.parse(fields[len(issue):], value); err != nil {
		return err
	}
	for _, e := range row.entries {
		if !json.Valid(e.from) || !json.Valid(e.to) {
			return fmt.Errorf("the values of %s are no JSON", e.field)
		}
	}
	there, err := v.Has(issueTable, issueKey(issue))
	if err == nil && !there {
		err = errors.New("there is no such issue")
	}
	return err
}
