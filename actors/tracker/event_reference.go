package tracker

import (
	"encoding/binary"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// The event of an issue's creation has the same JSON as the issue, and most of what a
// creation writes are these two. So it is stored once: the event has the issue's id as its
// data, and the issue's record the event's number (storage.Header.ReferredBy). Before the
// record is written again, or deleted, the event gets the issue as it was. Events are read by
// EventRow, which returns both kinds alike.

// Versions of an event's row.
const (
	eventWhole = 1
	// eventByReference has an id in quotes as its data, at the end of the JSON.
	eventByReference = 2
)

// referenceLen is the length of the end of an event's JSON that has an id as its data.
const referenceLen = quotedID + len("}")

// refer makes a new issue's record the one that the event of its creation refers to. It takes
// the event's number, which emitCreation uses.
func (tx *Tx) refer(issue *storage.Row[Issue]) (err error) {
	if tx.buffer.format() >= storage.FormatReferences {
		issue.ReferredBy, err = tx.Next(eventSequence, storage.ID{})
	}
	return err
}

// emitCreation appends the event of an issue's creation. body is the issue as it was stored.
func (tx *Tx) emitCreation(issue *storage.Row[Issue], body json.RawMessage) error {
	if issue.ReferredBy == 0 {
		return tx.Emit(eventIssueCreated, issue.Header, body, nil)
	}
	id, err := tx.NewID()
	if err != nil {
		return err
	}
	kind, l := eventIssueCreated, tx.buffer
	var quoted [quotedID]byte
	reference := append(append(append(quoted[:0], '"'), issue.Value.ID...), '"')
	var at int
	l.event = storage.AppendHeader(l.event[:0], storage.Header{Flags: issue.Flags, Version: eventByReference, Team: issue.Team})
	if l.event, at, err = tx.appendEvent(l.event, id, kind.name, issue.ReferredBy, reference, nil); err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return tx.append(kind, issue.ReferredBy, at, body)
}

// completeEvent completes the event that refers to an issue's record, which is about to change.
func (tx *Tx) completeEvent(issue *storage.Row[Issue]) error {
	if issue.ReferredBy == 0 {
		return nil
	}
	key := storage.Key(nil).U64(issue.ReferredBy)
	stored, err := tx.Value(eventTable, key, nil)
	if err != nil {
		return fmt.Errorf("read the event of an issue's creation: %w", err)
	}
	if stored == nil { // swept
		return nil
	}
	whole, err := EventRow(&tx.View.View, key, stored)
	if err != nil {
		return err
	}
	return tx.Writer().ReplaceValue(eventTable, key, whole, len(stored))
}

// EventRow returns an event's row with all its data, as a record. fields are those of the row's
// key. The result is stored itself where that is whole. An event whose issue can't be found
// is storage.ErrFormat. If the view is no snapshot, the issue may change after stored was read;
// then the event is read again, and the result is nil if it has been swept meanwhile.
func EventRow(v *storage.View, fields, stored []byte) (storage.Record, error) {
	return admittedEventRow(v, fields, stored, nil)
}

// admittedEventRow is like EventRow, and calls admit, unless that is nil, with the size of a row
// before it makes one other than stored. It returns the error of admit.
func admittedEventRow(v *storage.View, fields, stored []byte, admit func(size int) error) (storage.Record, error) {
	row, err := storage.ParseRecord(stored)
	if err != nil {
		return nil, fmt.Errorf("read an event: %w", err)
	}
	if row.Version() != eventByReference {
		return row, nil
	}
	whole, err := resolveEvent(v, fields, row, admit)
	if whole != nil || err != nil {
		return whole, err
	}
	// A change of the issue and its completion of the event are one batch.
	if stored, err = v.AdmittedValue(eventTable, fields, nil, admit); err != nil || stored == nil {
		return nil, err
	}
	if row, err = storage.ParseRecord(stored); err == nil && row.Version() == eventByReference {
		err = fmt.Errorf("%w: event %d refers to an issue that is not there or has changed since", storage.ErrFormat, binary.BigEndian.Uint64(fields))
	}
	return row, err
}

// resolveEvent returns the whole row of an event that is stored by reference; nil if its
// issue is not there or does not say that the event refers to it.
func resolveEvent(v *storage.View, fields []byte, event storage.Record, admit func(size int) error) (whole storage.Record, err error) {
	body := event.JSON()
	if len(fields) != 8 || len(body) < referenceLen {
		return nil, errEvent
	}
	body, reference := body[:len(body)-referenceLen], body[len(body)-referenceLen:]
	id, ok := storage.ParseID(reference[1 : quotedID-1])
	if !ok {
		return nil, errEvent
	}
	_, err = issues.Record(v, issueKey(id), func(rec storage.Record) error {
		if rec.ReferredBy() != binary.BigEndian.Uint64(fields) {
			return nil
		}
		h := event.Header()
		h.Version = eventWhole
		data := rec.JSON()
		if admit != nil {
			if err := admit(len(event) + len(data)); err != nil {
				return err
			}
		}
		whole = storage.AppendHeader(make([]byte, 0, len(event)+len(data)), h)
		whole = append(append(append(whole, body...), data...), '}')
		return nil
	})
	return whole, err
}
