package tracker

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// The answer to a change of an issue or another resource is, except for its end, the
// data of the event that the same command wrote. Such an answer is stored as a
// reference to the event and the bytes that follow. The event outlives the answer by
// weeks, and never changes.

// eventNote is an event of the running command whose data the answer may begin with.
type eventNote struct {
	part eventPart
	hash uint64 // of the part
}

// maxEventNotes is the number of events of a command that are compared with its answer.
const maxEventNotes = 4

// shortestReference is the shortest data for which a reference is worth the second
// look-up.
const shortestReference = 256

// noteEvent remembers an event for the answer of the running command.
func (l *WriteBuffer) noteEvent(sequence uint64, offset int, data []byte) {
	if !l.keyed || len(l.events) == maxEventNotes || len(data) < shortestReference {
		return
	}
	n := len(data) - 1 // without the closing brace: the answer may have more fields
	l.events = append(l.events, eventNote{eventPart{sequence, uint32(offset), uint32(n)}, xxhash.Sum64(data[:n])})
}

// eventPart is the part of an event's row that an answer's body begins with.
type eventPart struct {
	sequence       uint64 // 0 for no event
	offset, length uint32
}

const eventPartLen = 8 + 4 + 4

// shorten returns the part of an event that an answer's body begins with, and the rest
// of the body.
func (l *WriteBuffer) shorten(body []byte) (eventPart, []byte) {
	for _, e := range l.events {
		if n := int(e.part.length); len(body) >= n && xxhash.Sum64(body[:n]) == e.hash {
			return e.part, body[n:]
		}
	}
	return eventPart{}, body
}

func (p eventPart) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, p.sequence)
	b = binary.BigEndian.AppendUint32(b, p.offset)
	return binary.BigEndian.AppendUint32(b, p.length)
}

// cutEventPart decodes a part from the front of b, and returns it with the rest.
func cutEventPart(b []byte) (eventPart, []byte) {
	return eventPart{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}, b[eventPartLen:]
}

// wholeBody returns the body of an answer, byte for byte as it was first sent.
func (v *View) wholeBody(a *answer) ([]byte, error) {
	if len(a.parts) > 0 {
		return v.join(a.parts, a.body)
	}
	if a.event.sequence == 0 {
		return a.body, nil
	}
	body, err := v.appendEventPart(nil, a.event)
	if err != nil {
		return nil, err
	}
	return append(body, a.body...), nil
}

// appendEventPart appends a part of a stored event.
func (v *View) appendEventPart(b []byte, p eventPart) ([]byte, error) {
	key := storage.Key(nil).U64(p.sequence)
	stored, err := v.Value(eventTable, key, nil)
	if err != nil {
		return nil, fmt.Errorf("read the event of an answer: %w", err)
	}
	row, err := EventRow(&v.View, key, stored)
	if err != nil {
		return nil, err
	}
	end := uint64(p.offset) + uint64(p.length)
	if uint64(len(row)) < end {
		return nil, fmt.Errorf("%w: the answer's event %d has %d bytes", storage.ErrFormat, p.sequence, len(row))
	}
	return append(b, row[p.offset:end]...), nil
}
