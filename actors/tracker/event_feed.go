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
	texts  map[string][]byte // by choice

	// The choice of the last Pick, the size of its text, and the text if there is one already.
	choice []byte
	picks  []eventPick
	size   int
	text   []byte
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

// Pick chooses the events after a sequence number that the caller asked for and may see. size
// is the memory of their text, in bytes, or 0 if there are none. made is set if the text
// was encoded before, for another listener. Text returns it.
func (b *EventBatch) Pick(caller *Caller, types EventSet, after uint64) (size int, made bool, err error) {
	types &= caller.readableEvents()
	v := b.reader.v
	v.Caller = caller
	b.choice, b.picks, b.size = b.choice[:0], b.picks[:0], 0
	for i := range b.events {
		e := &b.events[i]
		var pick eventPick
		if e.sequence > after && types&e.kind != 0 {
			seen, err := b.reader.canView(e)
			if err != nil {
				return 0, false, err
			}
			if seen {
				b.size += e.textSize()
				pick.seen = true
				if pick.hidden, err = b.reader.hidden(e); err != nil {
					return 0, false, err
				}
			}
		}
		b.choice, b.picks = pick.appendTo(b.choice), append(b.picks, pick)
	}
	if b.text = nil; b.size > 0 {
		b.text = b.texts[string(b.choice)]
	}
	return b.size, b.size == 0 || b.text != nil, nil
}

// Text returns the events of the last Pick as lines of an event stream, or nil if there are
// none. Its capacity is the size that Pick has returned. The result is shared and must not be
// changed.
func (b *EventBatch) Text() []byte {
	if b.size == 0 || b.text != nil {
		return b.text
	}
	b.text = make([]byte, 0, b.size)
	for i := range b.picks {
		if b.picks[i].seen {
			b.text = b.events[i].appendText(b.text, &b.picks[i].hidden)
		}
	}
	b.texts[string(b.choice)] = b.text
	return b.text
}

// The parts of an event in the form of an event stream, in their order.
const (
	textID   = "id: "
	textType = "\nevent: "
	textData = "\ndata: "
	textEnd  = "\n\n"
)

// textSize returns the largest size of the event in the form of an event stream, in bytes:
// without its hidden links it is shorter.
func (e *storedEvent) textSize() int {
	const digits = 20
	return len(textID) + digits + len(textType) + len(e.name) + len(textData) + len(e.body) + len(textEnd)
}

// appendText appends an event in the form of an event stream.
func (e *storedEvent) appendText(b []byte, hidden *linkSet) []byte {
	b = strconv.AppendUint(append(b, textID...), e.sequence, 10)
	b = append(append(b, textType...), e.name...)
	b = append(b, textData...)
	start := len(b)
	b = e.appendBody(b, hidden)
	for i := start; i < len(b); i++ {
		// Line breaks occur between values of JSON that a provider has sent.
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
	return append(b, textEnd...)
}
