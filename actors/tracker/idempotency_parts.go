package tracker

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// The answer to a creation of many issues has the data of many events in it. It is stored
// as references to all of them and the bytes between them.

// replyPart is a part of a reply's body that is also part of an event.
type replyPart struct {
	at    int // position in the body
	event eventPart
}

// begins reports whether a text begins with the event's part.
func (e *eventNote) begins(text []byte) bool {
	n := int(e.part.length)
	return n > 0 && len(text) >= n && xxhash.Sum64(text[:n]) == e.hash
}

// answerPart is a part of a stored answer: bytes of its own, and the part of an event that
// follows them.
type answerPart struct {
	own   uint32
	event eventPart
}

const answerPartLen = 4 + eventPartLen

// cutParts returns the parts of a body, and the bytes that are in none of the events.
func cutParts(body []byte, from []replyPart) (parts []answerPart, own []byte) {
	at := 0
	for _, p := range from {
		own = append(own, body[at:p.at]...)
		parts = append(parts, answerPart{uint32(p.at - at), p.event})
		at = p.at + int(p.event.length)
	}
	return parts, append(own, body[at:]...)
}

func appendParts(b []byte, parts []answerPart) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(parts)))
	for _, p := range parts {
		b = p.event.append(binary.BigEndian.AppendUint32(b, p.own))
	}
	return b
}

// parseParts decodes the parts at the front of b, and returns them with the rest.
func parseParts(b []byte) (parts []answerPart, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%w: answer without parts", storage.ErrFormat)
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if b = b[4:]; uint64(len(b)) < n*answerPartLen {
		return nil, nil, fmt.Errorf("%w: answer of %d parts in %d bytes", storage.ErrFormat, n, len(b))
	}
	var own uint64
	for range n {
		p := answerPart{own: binary.BigEndian.Uint32(b)}
		p.event, b = cutEventPart(b[4:])
		own += uint64(p.own)
		parts = append(parts, p)
	}
	if own > uint64(len(b)) {
		return nil, nil, fmt.Errorf("%w: answer of %d bytes, where its parts have %d", storage.ErrFormat, len(b), own)
	}
	return parts, b, nil
}

// join puts a body together again from its parts and the bytes between them.
func (v *View) join(parts []answerPart, own []byte) (body []byte, err error) {
	for _, p := range parts {
		body = append(body, own[:p.own]...)
		own = own[p.own:]
		if body, err = v.appendEventPart(body, p.event); err != nil {
			return nil, err
		}
	}
	return append(body, own...), nil
}
