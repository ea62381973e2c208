package tracker

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"switchyard/storage"
)

// EventBatch is a part of the event log for its listeners. It is read once, and encoded
// once for all listeners that may see the same events.
type EventBatch struct {
	// After is the sequence number before the batch, Last that of its last event.
	After, Last uint64
	// More is set if the log has events after the batch.
	More bool

	reader *eventReader
	events []storedEvent
	choice []byte // scratch of Text
	texts  map[string][]byte
}

// ReadEvents reads the events after a sequence number: at most most events and about
// bytes, but at least one. The view must be a snapshot, and must not be used for
// anything else until the batch is dropped.
func ReadEvents(v *View, after uint64, most, bytes int) (*EventBatch, error) {
	b := &EventBatch{After: after, Last: after, reader: v.eventReader(), texts: map[string][]byte{}}
	size := 0
	err := v.Rows(eventTable, nil, storage.Key(nil).U64(after+1), func(fields, value []byte) (bool, error) {
		if len(fields) != 8 {
			return false, errEvent
		}
		if b.More = len(b.events) == most || size >= bytes; b.More {
			return false, nil
		}
		e, err := b.reader.read(binary.BigEndian.Uint64(fields), append([]byte(nil), value...))
		if err != nil {
			return false, err
		}
		size += len(value)
		b.events = append(b.events, e)
		b.Last = e.sequence
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return b, nil
}

// unseen marks an event in EventBatch.choice that is left out.
const unseen = 0xff

// Text returns the events after a sequence number that the caller asked for and may
// see, as lines of an event stream, or nil. The result is shared and must not be
// changed.
func (b *EventBatch) Text(caller *Caller, types EventSet, after uint64) ([]byte, error) {
	types &= caller.readableEvents()
	v := b.reader.v
	v.Caller = caller
	choice := b.choice[:0]
	any := false
	for i := range b.events {
		e := &b.events[i]
		pick := uint8(unseen)
		if e.sequence > after && types&e.kind != 0 {
			seen, err := b.reader.sees(e)
			if err != nil {
				return nil, err
			}
			if seen {
				any = true
				if pick, err = b.reader.hidden(e); err != nil {
					return nil, err
				}
			}
		}
		choice = append(choice, pick)
	}
	b.choice = choice
	if !any {
		return nil, nil
	}
	text, made := b.texts[string(choice)]
	if !made {
		for i, pick := range choice {
			if pick != unseen {
				text = b.events[i].appendText(text, pick)
			}
		}
		b.texts[string(choice)] = text
	}
	return text, nil
}

// appendText appends an event in the form of an event stream.
func (e *storedEvent) appendText(b []byte, hidden uint8) []byte {
	b = strconv.AppendUint(append(b, "id: "...), e.sequence, 10)
	b = append(append(b, "\nevent: "...), e.name...)
	b = append(b, "\ndata: "...)
	start := len(b)
	b = e.appendBody(b, hidden)
	for i := start; i < len(b); i++ {
		// Line breaks occur between values of JSON that a provider has sent.
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
	return append(b, "\n\n"...)
}
