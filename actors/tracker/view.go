package tracker

import (
	"time"

	"switchyard/storage"
)

// View is what a query is given: one workspace to read, and who asks when.
type View struct {
	storage.View
	Caller *Caller
	Buf    []byte // space for the answer's body
	now    time.Time
	// lane is the session of a caller with a lane token, as it was when the operation
	// began.
	lane     *storage.Row[sessionRecord]
	operator *AgentSettings
	final    bool // the operation may not wait any more
}

// NewView makes a query's view. now is the owner's clock.
func NewView(v storage.View, caller *Caller, now time.Time, buf []byte) *View {
	return &View{View: v, Caller: caller, Buf: buf, now: now}
}

// Renew makes v the view of another query; storage's part is renewed by itself.
// The query before must have ended.
func (v *View) Renew(caller *Caller, now time.Time, buf []byte) {
	v.Caller, v.Buf, v.now, v.lane, v.final = caller, buf, now, nil, false
}

// Configure gives the view the operator's settings; nil are the defaults.
func (v *View) Configure(s *AgentSettings) { v.operator = s }

// Finally says that the operation may not wait.
func (v *View) Finally() { v.final = true }

// Now is the moment of the operation, in UTC and whole milliseconds. Within a
// command it never runs behind what the workspace has seen before.
func (v *View) Now() time.Time { return v.now }

// Timestamp is a moment as clients see it: RFC 3339 in UTC with milliseconds.
// Its texts compare like the moments (Decision 2).
type Timestamp string

const timestampLayout = "2006-01-02T15:04:05.000Z"

// At gives a moment's timestamp.
func At(t time.Time) Timestamp { return Timestamp(t.UTC().Format(timestampLayout)) }

// Time reads the timestamp back; the zero time when it is none.
func (t Timestamp) Time() time.Time {
	at, err := time.Parse(timestampLayout, string(t))
	if err != nil {
		return time.Time{}
	}
	return at
}
