package tracker

import (
	"errors"
	"time"

	"switchyard/storage"
)

// View is the context of a query: one workspace to read, the caller and the time.
type View struct {
	storage.View
	Caller *Caller
	Buf    []byte // a buffer that the answer's body may be built in
	now    time.Time
	// lane is the session of a caller with a lane token, as read when the operation
	// began.
	lane     *storage.Row[sessionRecord]
	operator *AgentSettings
	tails    *Tails
	claimers ClaimersWaiting
	final    bool // the operation must not wait any more
	turnless bool // the query has to wait for a turn before it takes a snapshot
	// charge counts the memory of the answer; nil: nobody counts it. charged is the size of Buf when it was
	// called last.
	charge  func(body []byte) error
	charged int
	filters listFilters
}

// NewView returns the view of a query. now is the time on the owner's clock.
func NewView(v storage.View, caller *Caller, now time.Time, buf []byte) *View {
	return &View{View: v, Caller: caller, Buf: buf, now: now}
}

// Renew makes v the view of another query. The caller renews storage's part; the
// previous query must have ended.
func (v *View) Renew(caller *Caller, now time.Time, buf []byte) {
	v.Caller, v.Buf, v.now, v.lane, v.final, v.turnless, v.filters = caller, buf, now, nil, false, false, listFilters{}
	v.charge, v.charged = nil, 0
}

// ChargeWith sets the function that counts the memory of the answer, also while the answer is being built.
func (v *View) ChargeWith(charge func(body []byte) error) { v.charge = charge }

// chargeBuf counts the memory of the answer as far as it is built. It does nothing unless the buffer has grown.
func (v *View) chargeBuf() error {
	if v.charge == nil || cap(v.Buf) <= v.charged {
		return nil
	}
	v.charged = cap(v.Buf)
	return v.charge(v.Buf)
}

// Configure sets the operator's settings; nil means the defaults.
func (v *View) Configure(s *AgentSettings) { v.operator = s }

// Remember sets the node's memory for tails of search indexes.
func (v *View) Remember(t *Tails) { v.tails = t }

// Finally tells the operation not to wait any more.
func (v *View) Finally() { v.final = true }

// ErrTurn is the error of a query without a turn that needs a snapshot, or makes a large answer. It has answered
// nothing, and the engine runs it again with a turn.
var ErrTurn = errors.New("the query needs a turn")

// WithoutTurn has a query end with ErrTurn if it needs more than single look-ups, or makes a large answer. Most
// queries of single look-ups do neither, and take no turn for that reason.
func (v *View) WithoutTurn() { v.turnless = true }

// largeRecord is the size in bytes from which a record makes a large answer.
const largeRecord = 64 << 10

// awaitTurn returns ErrTurn for a large record if the query has no turn. The collector of garbage holds goroutines
// up that allocate much. Without turns, hundreds of requests would have their answers by then that are not counted yet.
func (v *View) awaitTurn(rec storage.Record) error {
	if v.turnless && len(rec) > largeRecord {
		return ErrTurn
	}
	return nil
}

// ofOneMoment runs read with a view whose look-ups all read the same snapshot.
func (v *View) ofOneMoment(read func() error) (err error) {
	if v.turnless {
		return ErrTurn
	}
	release := v.Settle()
	defer func() {
		if failed := release(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	return read()
}

// Now returns the time of the operation, in UTC and whole milliseconds. In a command it
// is never earlier than a time that the workspace has already recorded.
func (v *View) Now() time.Time { return v.now }

// Timestamp is a time in the form that clients see: RFC 3339 in UTC with milliseconds.
// Timestamps compare as strings in the order of time (Decision 2).
type Timestamp string

const timestampLayout = "2006-01-02T15:04:05.000Z"

// At returns the timestamp of a time.
func At(t time.Time) Timestamp { return Timestamp(t.UTC().Format(timestampLayout)) }

// Time parses the timestamp; it returns the zero time if the text is not valid.
func (t Timestamp) Time() time.Time {
	at, err := time.Parse(timestampLayout, string(t))
	if err != nil {
		return time.Time{}
	}
	return at
}
