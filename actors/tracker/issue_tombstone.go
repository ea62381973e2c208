package tracker

import (
	"encoding/binary"
	"fmt"

	"switchyard/storage"
)

// The events of a deleted issue stay. An issue is often restricted right after its
// creation, so its state at an event does not decide who may see the event later: a row
// of tombstoneTable keeps the issue's last state as long as its events. The row has the
// flags of the issue's record, its team, and the sequence number of the event of its
// deletion, which is the last to be swept.
const tombstoneLen = 1 + 16 + 8

// writeTombstone stores the last state of an issue that is being erased. It is called after
// the event of the deletion was emitted.
func (tx *Tx) writeTombstone(row *storage.Row[Issue]) error {
	sequence, err := tx.Counter(eventSequence, storage.ID{})
	if err != nil {
		return err
	}
	id := row.Value.id()
	var value [tombstoneLen]byte
	value[0] = byte(row.Flags)
	team := row.Value.team()
	copy(value[1:], team[:])
	binary.BigEndian.PutUint64(value[17:], sequence)
	if err := tx.Writer().SetValue(tombstoneTable, id[:], value[:]); err != nil {
		return fmt.Errorf("note an erased issue: %w", err)
	}
	return nil
}

// readTombstone sets in p the last state of a deleted issue, if it is known.
func (v *View) readTombstone(p *issueState) error {
	value, err := v.Value(tombstoneTable, p.id[:], nil)
	if err != nil || value == nil {
		return err
	}
	if len(value) != tombstoneLen {
		return fmt.Errorf("%w: erased issue of %d bytes", storage.ErrFormat, len(value))
	}
	p.gone = true
	p.restricted = storage.Flags(value[0])&issueRestricted != 0
	copy(p.team[:], value[1:])
	return nil
}

// deletedIssueIn returns the issue of an event about a deletion, or the zero ID for other
// events.
func deletedIssueIn(event []byte) (id storage.ID, err error) {
	if string(eventTypeIn(event)) != eventIssueDeleted.name {
		return id, nil
	}
	at, end := eventDataIn(event)
	if at < 0 {
		return id, errEvent
	}
	id, ok := storage.ParseID(firstText(event[at:end], "id"))
	if !ok {
		return id, errEvent
	}
	return id, nil
}

// checkTombstone checks that the issue of a row does not exist, and that the row has the
// event of its deletion, with which it will be swept.
func checkTombstone(v *storage.View, fields, value []byte) error {
	if len(fields) != 16 || len(value) != tombstoneLen {
		return fmt.Errorf("%w: erased issue", storage.ErrFormat)
	}
	there, err := v.Has(issueTable, issueKey(storage.ID(fields)))
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("the issue is there")
	}
	stored, err := v.Value(eventTable, value[17:], nil)
	if err != nil {
		return err
	}
	if stored == nil {
		return fmt.Errorf("would never be swept: there is no event %d", binary.BigEndian.Uint64(value[17:]))
	}
	rec, err := storage.ParseRecord(stored)
	if err != nil {
		return err
	}
	if id, err := deletedIssueIn(rec.JSON()); err != nil || id != storage.ID(fields) {
		return fmt.Errorf("event %d is not that of its deletion", binary.BigEndian.Uint64(value[17:]))
	}
	return nil
}
