package tracker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"switchyard/storage"
)

// ListEventsIn asks for events after some position of the log.
type ListEventsIn struct {
	// After is a sequence number; later events are listed. A page's nextCursor is one,
	// and may be sent under either name.
	After  Opt[int64] `query:"after" rules:"min=0"`
	Cursor string     `query:"cursor" rules:"max=32"`
	Types  string     `query:"types" rules:"max=1024" form:"eventTypes"`
	Limit  int        `query:"limit" rules:"min=1,max=100" default:"50"`
	// Wait is the number of seconds that the answer may wait for an event.
	Wait int `query:"wait" rules:"min=0,max=30"`
	// LastEventID is the position at which a stream continues. It overrides After: a
	// browser that reconnects sends the same address again.
	LastEventID string `header:"Last-Event-ID"`

	start uint64 // events after this one are listed
	begun bool   // start is set
}

// WaitFor returns the time that the answer may wait.
func (in *ListEventsIn) WaitFor() time.Duration { return time.Duration(in.Wait) * time.Second }

// Validate checks what the tags can't express.
func (in *ListEventsIn) Validate(faults *Faults) {
	if _, unknown := parseEventTypes(in.Types); len(unknown) > 0 && !faults.Has("query.types") {
		faults.Add("query.types", unknownTypes(unknown))
	}
	if in.Cursor != "" && !faults.Has("query.cursor") {
		if n, err := strconv.ParseUint(in.Cursor, 10, 63); err != nil { // ParseInt would take a sign, too
			faults.Add("query.cursor", badCursor)
		} else if in.After.Set && uint64(in.After.Value) != n {
			faults.Add("query.cursor", "Differs from after. Send only one of them.")
		}
	}
}

// EventPage is a page of the event log. NextCursor is absent at the end of the log.
type EventPage struct {
	Events     []Event `json:"events"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListEvents reads the event log, oldest first, as far as the caller may see what the
// events concern. With Accept: text/event-stream it is a live stream without an end
// (Decision 44).
var ListEvents = NewQuery[ListEventsIn, EventPage]("ListEvents", "Read or follow the event log", Needs{Read, EventRights}, listEvents, FromSnapshot, MayWait, MayStream)

// maxEventsExamined limits the events that one answer looks through.
const maxEventsExamined = 2000

func listEvents(v *View, in *ListEventsIn) (Reply, error) {
	after, given := in.position()
	if err := in.setStart(v, after, given, "query.after"); err != nil {
		return Reply{}, err
	}
	types, err := v.Caller.wantedEvents(in.asked()) // checked at each look: rights may end
	if err != nil {
		return Reply{}, err
	}
	r := v.eventReader()
	p, err := newPage(v.Buf, pageSpec{name: "events", limit: cmp.Or(in.Limit, 50)})
	if err != nil {
		return Reply{}, err
	}
	p.examine = maxEventsExamined
	err = v.Rows(eventTable, nil, storage.Key(nil).U64(in.start+1), func(fields, value []byte) (bool, error) {
		if len(fields) != 8 {
			return false, errEvent
		}
		if !p.mayLook() {
			return false, nil
		}
		row, err := EventRow(&v.View, fields, value)
		if err != nil {
			return false, err
		}
		e, err := r.read(binary.BigEndian.Uint64(fields), row)
		if err != nil {
			return false, err
		}
		if types&e.kind != 0 {
			seen, err := r.canView(&e)
			if err != nil {
				return false, err
			}
			if seen {
				if !p.hasRoom() {
					return false, nil
				}
				hidden, err := r.hidden(&e)
				if err != nil {
					return false, err
				}
				p.show()
				p.buf = e.appendBody(p.buf, &hidden)
			}
		}
		p.pass(nil)
		in.start = e.sequence
		return true, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list events: %w", err)
	}
	reply := p.replyWith(func(b []byte) []byte { return strconv.AppendUint(b, in.start, 10) })
	if p.count == 0 && !p.more && in.Wait > 0 && !v.final {
		reply.Wait = &Wait{Topic: EventTopic, Until: v.now.Add(in.WaitFor())}
	}
	return reply, nil
}

// position returns the position in the query, or false if there is none.
func (in *ListEventsIn) position() (after uint64, given bool) {
	if in.Cursor != "" {
		n, _ := strconv.ParseUint(in.Cursor, 10, 64)
		return n, true
	}
	return uint64(in.After.Value), in.After.Set
}

// asked returns the types in the query. Validate has refused unknown ones.
func (in *ListEventsIn) asked() EventSet {
	set, _ := parseEventTypes(in.Types)
	return set
}

// setStart sets the position to start from, once for all looks. It refuses a position
// whose next events have been swept, since the answer would silently leave them out.
func (in *ListEventsIn) setStart(v *View, after uint64, given bool, path string) error {
	if in.begun {
		return nil
	}
	if given && after > 0 {
		first, last, err := v.eventSpan()
		if err != nil {
			return err
		}
		if after < last && after+1 < first {
			message := fmt.Sprintf("The events after %d are no longer kept, and the oldest is %d. Send 0 to read all events that are kept.", after, first)
			if first > last {
				message = fmt.Sprintf("The events after %d are no longer kept, and there are none after %d yet.", after, last)
			}
			return BadRequest(Fault{Path: path, Message: message})
		}
	}
	in.start, in.begun = after, true
	return nil
}

// eventSpan returns the sequence numbers of the oldest event that is kept, and of the
// last one ever written. Without any event, first is last+1.
func (v *View) eventSpan() (first, last uint64, err error) {
	var zero storage.ID
	if last, err = v.Number(eventSequence, zero[:]); err != nil {
		return 0, 0, fmt.Errorf("read the event sequence: %w", err)
	}
	first = last + 1
	err = v.Rows(eventTable, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != 8 {
			return false, errEvent
		}
		first = binary.BigEndian.Uint64(fields)
		return false, nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("look for the oldest event: %w", err)
	}
	return first, last, nil
}

// StartEvents finds the position where a stream of ListEvents starts: Last-Event-ID, or
// after, or else the end of the log.
var StartEvents = NewQuery[ListEventsIn, None]("StartEvents", "Find where a stream of events begins", Needs{Read, EventRights}, startEvents, FromSnapshot)

func startEvents(v *View, in *ListEventsIn) (Reply, error) {
	after, given := in.position()
	path := "query.after"
	if in.LastEventID != "" {
		n, err := strconv.ParseUint(in.LastEventID, 10, 63)
		path = "header.Last-Event-ID"
		if err != nil {
			return Reply{}, BadRequest(Fault{Path: path, Message: "Must be the id of an event of the stream: its sequence number."})
		}
		after, given = n, true
	}
	if !given {
		_, last, err := v.eventSpan()
		if err != nil {
			return Reply{}, err
		}
		after = last
	}
	if _, err := v.Caller.wantedEvents(in.asked()); err != nil {
		return Reply{}, err
	}
	return Reply{}, in.setStart(v, after, given, path)
}

// Started returns the results of StartEvents: the position where the stream starts, and
// its types.
func (in *ListEventsIn) Started() (after uint64, types EventSet) { return in.start, in.asked() }
