package tracker

import (
	"encoding/binary"
	"time"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// Waiter is the input of a Patient operation.
type Waiter interface {
	// WaitFor is how long the answer may wait for something to happen; 0: not at all.
	WaitFor() time.Duration
}

// Waiting is a request that waits without anyone's goroutine: see Engine.Begin.
type Waiting interface {
	// Arm has wake called once when the request is to be resumed, from any goroutine,
	// which must not be held up. It is called after Begin, and after each Resume that
	// says the request waits on.
	Arm(wake func())
	// Resume goes on with the request; waits tells that it has no answer yet.
	Resume() (reply Reply, waits bool, err error)
	// Leave gives the request up. It may be called at any time when Resume isn't
	// running, also after the answer.
	Leave()
}

// Listener is who a stream of events is sent to. It is called by one goroutine at a
// time.
type Listener interface {
	// Send sends a part of the stream, which stays as it is, and does not wait for
	// that: when done is false the part is on its way, and ready is called when it was
	// sent. Nothing is to be sent before.
	Send(text []byte, ready func()) (done bool)
	// End ends the stream. It may be called at any time, more than once, and from any
	// goroutine.
	End()
}

// Stream is a stream of events that is about to begin.
type Stream interface {
	// Start begins it.
	Start(Listener)
	// Leave ends it: the listener is gone, or Start will not be called. It may be
	// called more than once, and from any goroutine.
	Leave()
}

// MaxWait is the longest an operation waits.
const MaxWait = 30 * time.Second

// Topic is something that callers wait for.
type Topic [16]byte

// Wait says what an operation waits for, and until when.
type Wait struct {
	Topic Topic
	Until time.Time
	// Pass: there is something for whoever waits for it, but not for this caller.
	Pass bool
}

// Wake says what a batch did that somebody may be waiting for.
type Wake struct {
	// Topics are those it concerns; the zero Topic is none.
	Topics [4]Topic
	// One: only one of all who wait can have it, the one who waits longest.
	One bool
}

// EventTopic is waited for by those who read the event log: whatever changes, they
// have something to look at.
var EventTopic = Topic{'e', 'v', 'e', 'n', 't', 's'}

// sessionTopic is waited for by those who watch a session.
func sessionTopic(id storage.ID) Topic { return Topic(id) }

// claimTopic is waited for by those who would claim a session of an agent and
// provider; empty: of any. Should two be the same, somebody looks in vain.
func claimTopic(agent, provider string) Topic {
	h := xxhash.New()
	_, _ = h.WriteString(agent)
	_, _ = h.Write([]byte{0})
	_, _ = h.WriteString(provider)
	var t Topic
	copy(t[:], "claim\x00\x00\x00")
	binary.BigEndian.PutUint64(t[8:], h.Sum64())
	return t
}

// wakeWatchers has those who watch a session look again.
func (tx *Tx) wakeWatchers(id storage.ID) {
	tx.ledger.wakes = append(tx.ledger.wakes, Wake{Topics: [4]Topic{sessionTopic(id)}})
}

// wakeClaimer has one of those who would claim such a session look again.
func (tx *Tx) wakeClaimer(agent, provider string) {
	tx.ledger.wakes = append(tx.ledger.wakes, Wake{One: true, Topics: [4]Topic{
		claimTopic(agent, provider), claimTopic(agent, ""), claimTopic("", provider), claimTopic("", ""),
	}})
}
