package tracker

import (
	"fmt"
	"strconv"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Change is one field of an event's change, with its old and new value. From and To are
// encoded as JSON; a json.RawMessage is used as it is.
type Change struct {
	Field    string
	From, To any
}

// encodeChanges replaces every value by its JSON, for changes that are encoded more
// than once.
func encodeChanges(changes []Change) error {
	encoded := make([]json.RawMessage, 2*len(changes))
	for i := range changes {
		c := &changes[i]
		for j, value := range []*any{&c.From, &c.To} {
			text, err := valueJSON(*value)
			if err != nil {
				return err
			}
			encoded[2*i+j] = text
			*value = &encoded[2*i+j] // a pointer, since an interface would copy the slice
		}
	}
	return nil
}

// valueJSON encodes a value of a Change.
func valueJSON(value any) (json.RawMessage, error) {
	switch v := value.(type) {
	case json.RawMessage:
		return v, nil
	case *json.RawMessage:
		return *v, nil
	}
	return json.MarshalWithOption(value, json.DisableHTMLEscape())
}

// Event is an entry of a workspace's event log, as clients get it.
type Event struct {
	ID             string            `json:"id"`
	Type           string            `json:"type"`
	OrganizationID WorkspaceID       `json:"organizationId"`
	Sequence       uint64            `json:"sequence"`
	CreatedAt      Timestamp         `json:"createdAt"`
	Actor          EventActor        `json:"actor"`
	Data           json.RawMessage   `json:"data"`
	Changes        map[string]FromTo `json:"changes,omitempty"`
}

// EventActor is the actor that made a change.
type EventActor struct {
	ID   string    `json:"id"`
	Type ActorType `json:"type"`
}

// FromTo is a field's value before and after a change.
type FromTo struct {
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// Emit appends an event to the workspace's log, in the batch of the change (Decision
// 44). data is the whole resource after the change, as JSON. header is that of the
// resource's record: its flags and team decide who may see the event.
func (tx *Tx) Emit(kind *eventKind, header storage.Header, data json.RawMessage, changes []Change) error {
	id, err := tx.NewID()
	if err != nil {
		return err
	}
	return tx.emit(id, kind, header, data, changes)
}

// emit is like Emit, with an id made before.
func (tx *Tx) emit(id storage.ID, kind *eventKind, header storage.Header, data json.RawMessage, changes []Change) error {
	sequence, err := tx.Next(eventSequence, storage.ID{})
	if err != nil {
		return err
	}
	l := tx.buffer
	var at int
	l.event = storage.AppendHeader(l.event[:0], storage.Header{Flags: header.Flags, Version: eventWhole, Team: header.Team})
	if l.event, at, err = tx.appendEvent(l.event, id, kind.name, sequence, data, changes); err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return tx.append(kind, sequence, at, data)
}

// append appends the encoded event to the log. data is that of the whole event, at its offset there.
func (tx *Tx) append(kind *eventKind, sequence uint64, at int, data json.RawMessage) error {
	l := tx.buffer
	err := tx.Writer().AddValue(eventTable, storage.Key(nil).U64(sequence), l.event)
	if cap(l.event) > maxScratch {
		l.event = nil
	}
	if err != nil {
		return fmt.Errorf("append an event: %w", err)
	}
	l.hasEvents = true
	l.noteEvent(sequence, at, data)
	if err := tx.enqueue(kind.name, sequence); err != nil {
		return err
	}
	return tx.setSweep(sweepEvents, tx.now.Add(eventLife))
}

// appendEvent encodes an event, and returns the offset of its data.
func (tx *Tx) appendEvent(b []byte, id storage.ID, eventType string, sequence uint64, data json.RawMessage, changes []Change) (_ []byte, at int, err error) {
	b = id.AppendText(append(b, `{"id":"`...))
	b = append(append(b, `","type":"`...), eventType...) // one of our constants: nothing to escape
	b = tx.Workspace().AppendText(append(b, `","organizationId":"`...))
	b = strconv.AppendUint(append(b, `","sequence":`...), sequence, 10)
	b = append(append(b, `,"createdAt":"`...), At(tx.now)...)
	actor, err := json.MarshalWithOption(tx.Caller.ID, json.DisableHTMLEscape())
	if err != nil {
		return nil, 0, err
	}
	b = append(append(b, `","actor":{"id":`...), actor...)
	b = append(append(b, `,"type":"`...), tx.Caller.Type...)
	b = append(b, `"},"data":`...)
	at = len(b)
	b = append(b, data...)
	if len(changes) > 0 {
		if b, err = appendChanges(append(b, `,"changes":`...), changes); err != nil {
			return nil, 0, err
		}
	}
	return append(b, '}'), at, nil
}

// eventMoment is the time of an event.
type eventMoment struct {
	CreatedAt Timestamp `json:"createdAt"`
}

func appendChanges(b []byte, changes []Change) ([]byte, error) {
	for i, c := range changes {
		from, err := valueJSON(c.From)
		if err != nil {
			return nil, err
		}
		to, err := valueJSON(c.To)
		if err != nil {
			return nil, err
		}
		open := `,"`
		if i == 0 {
			open = `{"`
		}
		b = append(append(append(b, open...), c.Field...), `":{"from":`...)
		b = append(append(append(b, from...), `,"to":`...), to...)
		b = append(b, '}')
	}
	return append(b, '}'), nil
}

// eventTime returns the time of a stored event without decoding the rest.
func eventTime(stored []byte) (Timestamp, error) {
	rec, err := storage.ParseRecord(stored)
	if err != nil {
		return "", fmt.Errorf("read an event: %w", err)
	}
	var e eventMoment
	if err := json.Unmarshal(rec.JSON(), &e); err != nil {
		return "", fmt.Errorf("read an event: %w", err)
	}
	return e.CreatedAt, nil
}
