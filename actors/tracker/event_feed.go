package tracker

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"switchyard/storage"
)

// EventBatch is a part of the log for those who listen to it: read once, and encoded
// once for all who see the same of it.
type EventBatch struct {
	// After and Last are the sequence numbers in front of the batch and of its end.
	After, Last uint64
	// More says that there are events behind the batch.
	More bool

	reader *eventReader
	events []loggedAt
	choice []byte // scratch
	texts  map[string][]byte
}

// ReadEvents reads the events behind a sequence number: so many, or so many bytes,
// but one at least. The view must be of one moment, and used for nothing else while
// the batch is.
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

// unseen marks in a choice an event that is left out.
const unseen = 0xff

// Text gives the events behind a sequence number that a caller wants and may see, as
// lines of an event stream; nil when there are none. It is shared, and must not be
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

// appendText appends an event as a stream has it.
func (e *loggedAt) appendText(b []byte, hidden uint8) []byte {
	b = strconv.AppendUint(append(b, "id: "...), e.sequence, 10)
	b = append(append(b, "\nevent: "...), e.name...)
	b = append(b, "\ndata: "...)
	start := len(b)
	b = e.appendBody(b, hidden)
	for i := start; i < len(b); i++ {
		// In JSON they stand between values alone, in what a provider has sent, say.
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
	return append(b, "\n\n"...)
}
