package tracker

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// Waiter is the input of a long-poll operation.
type Waiter interface {
	// WaitFor returns the time that the answer may wait for a change; 0 for not at all.
	WaitFor() time.Duration
}

// Waiting is a request that waits without a goroutine: see Engine.Begin.
type Waiting interface {
	// Arm makes the engine call wake once when the request is to be resumed. wake may
	// be called from any goroutine and must not block it. Arm is called after Begin,
	// and after each Resume that returns waits.
	Arm(wake func())
	// Resume continues the request; waits is set if it still has no answer.
	Resume() (reply Reply, waits bool, err error)
	// Leave abandons the request. It may be called at any time except during Resume,
	// also after the answer.
	Leave()
}

// Listener receives a stream of events. One goroutine at a time calls it.
type Listener interface {
	// Reserve takes memory for a part of so many bytes, which Send is called with next.
	// false: there is none now, and the part must be sent later.
	Reserve(size int) bool
	// Send sends a part of the stream without blocking; text must not change
	// afterwards. If done is false, text is still being sent, and ready is called when
	// it has been; no other part may be sent before.
	Send(text []byte, ready func()) (done bool)
	// End ends the stream. It may be called at any time, from any goroutine, and more
	// than once.
	End()
}

// Stream is a stream of events that has not begun yet.
type Stream interface {
	// Start begins the stream.
	Start(Listener)
	// Leave ends the stream: the listener has gone, or Start will not be called. It may
	// be called more than once, and from any goroutine.
	Leave()
}

// Lines are the lines of an answer that is a stream, see Op.Lines. They are used by one
// goroutine.
type Lines interface {
	// Next returns the next lines, which are valid until the following call; io.EOF after
	// the last.
	Next() ([]byte, error)
	// Close ends the stream. It is called once.
	Close()
}

// EndingLines are lines that may have to end early, to make room for others.
type EndingLines interface {
	Lines
	// OnEnd sets the function that ends them. It is called at most once, by any goroutine, and may be
	// called after Close.
	OnEnd(end func())
}

// MaxWait is the longest time that an operation waits.
const MaxWait = 30 * time.Second

// Topic identifies a kind of change that requests wait for.
type Topic [16]byte

// Wait is the topic that an operation waits for, and until when.
type Wait struct {
	Topic Topic
	Until time.Time
	// Pass is set if there is work for another waiting caller but not for this one.
	Pass bool
}

// Wake is a change in a batch that requests may be waiting for.
type Wake struct {
	// Topics are the topics of the change; the zero Topic stands for none. The first is the narrowest.
	Topics [4]Topic
	// One is set if only one waiting request can succeed. The longest waiting one is
	// woken.
	One bool
	// Each is set if any of the waiting claims may succeed from now on, or of those in the groups
	// that Topics has then. The longest waiting claim of each topic is woken, and the next one
	// behind each claim that succeeds.
	Each bool
}

// EventTopic is the topic of readers of the event log. Every event concerns it.
var EventTopic = Topic{'e', 'v', 'e', 'n', 't', 's'}

// sessionTopic is the topic of requests that watch a session.
func sessionTopic(id storage.ID) Topic { return Topic(id) }

// claimTopic is the topic of requests to claim a session of an agent and provider;
// empty strings stand for any. If two topics have the same hash, a request is woken in
// vain.
func claimTopic(agent, provider string) Topic {
	h := xxhash.New()
	_, _ = h.WriteString(agent)
	var t Topic
	binary.BigEndian.PutUint64(t[:8], h.Sum64())
	t[0] = claims
	_, _ = h.Write([]byte{0})
	_, _ = h.WriteString(provider)
	binary.BigEndian.PutUint64(t[8:], h.Sum64())
	return t
}

// claims is the first byte of the topics of claims. The ids of sessions, whose first bytes
// are a time, begin with others.
const claims = 'c'

// Group returns the topic that stands for all claims of a claim's agent; ok is false for
// other topics.
func (t Topic) Group() (group Topic, ok bool) {
	if t[0] != claims {
		return group, false
	}
	copy(group[:8], t[:8])
	return group, true
}

// claimTopics are the topics of the claims that could get a session of an agent and
// provider.
func claimTopics(agent, provider string) [4]Topic {
	return [4]Topic{claimTopic(agent, provider), claimTopic(agent, ""), claimTopic("", provider), claimTopic("", "")}
}

// wakeWatchers wakes the requests that watch a session.
func (tx *Tx) wakeWatchers(id storage.ID) {
	tx.buffer.wakes = append(tx.buffer.wakes, Wake{Topics: [4]Topic{sessionTopic(id)}})
}

// wakeClaimers wakes claims of every agent and provider: their callers may see more from now on.
func (tx *Tx) wakeClaimers() { tx.wakeEach([4]Topic{}) }

// wakeClaimersOf wakes claims of an agent, for every provider.
func (tx *Tx) wakeClaimersOf(agent string) {
	own, _ := claimTopic(agent, "").Group()
	anyone, _ := claimTopic("", "").Group()
	tx.wakeEach([4]Topic{own, anyone})
}

func (tx *Tx) wakeEach(groups [4]Topic) {
	if why := (Wake{Each: true, Topics: groups}); !slices.Contains(tx.buffer.wakes, why) {
		tx.buffer.wakes = append(tx.buffer.wakes, why)
	}
}

// wakeClaimer wakes one of the requests that could claim such a session.
func (tx *Tx) wakeClaimer(agent, provider string) {
	tx.buffer.wakes = append(tx.buffer.wakes, Wake{One: true, Topics: claimTopics(agent, provider)})
}
