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
	picks  []eventPick
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
		row, err := EventRow(&v.View, fields, append([]byte(nil), value...))
		if err != nil {
			return false, err
		}
		e, err := b.reader.read(binary.BigEndian.Uint64(fields), row)
		if err != nil {
			return false, err
		}
		size += len(row)
		b.events = append(b.events, e)
		b.Last = e.sequence
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return b, nil
}

// eventPick says how a caller sees an event.
type eventPick struct {
	seen   bool
	hidden linkSet
}

// appendTo appends the pick to the key of a text: one byte, and the set where it has more
// than a few links.
func (p *eventPick) appendTo(key []byte) []byte {
	const unseen, many = 0xff, 0xfe
	switch {
	case !p.seen:
		return append(key, unseen)
	case p.hidden[0] < many && p.hidden[1]|p.hidden[2]|p.hidden[3] == 0:
		return append(key, byte(p.hidden[0]))
	}
	key = append(key, many)
	for _, word := range p.hidden {
		key = binary.BigEndian.AppendUint64(key, word)
	}
	return key
}

// Text returns the events after a sequence number that the caller asked for and may
// see, as lines of an event stream, or nil. The result is shared and must not be
// changed.
func (b *EventBatch) Text(caller *Caller, types EventSet, after uint64) ([]byte, error) {
	types &= caller.readableEvents()
	v := b.reader.v
	v.Caller = caller
	choice, picks := b.choice[:0], b.picks[:0]
	any := false
	for i := range b.events {
		e := &b.events[i]
		var pick eventPick
		if e.sequence > after && types&e.kind != 0 {
			seen, err := b.reader.canView(e)
			if err != nil {
				return nil, err
			}
			if seen {
				any = true
				pick.seen = true
				if pick.hidden, err = b.reader.hidden(e); err != nil {
					return nil, err
				}
			}
		}
		choice, picks = pick.appendTo(choice), append(picks, pick)
	}
	b.choice, b.picks = choice, picks
	if !any {
		return nil, nil
	}
	text, made := b.texts[string(choice)]
	if !made {
		for i := range picks {
			if picks[i].seen {
				text = b.events[i].appendText(text, &picks[i].hidden)
			}
		}
		b.texts[string(choice)] = text
	}
	return text, nil
}

// appendText appends an event in the form of an event stream.
func (e *storedEvent) appendText(b []byte, hidden *linkSet) []byte {
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
