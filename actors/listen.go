package actors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

const (
	// feedEvents and feedBytes limit the part of the log that a round reads at a time.
	// A listener that doesn't read holds one part in memory, often shared with others, and
	// larger where a single event is.
	feedEvents = 256
	feedBytes  = 128 << 10
	// feedRound limits the time for which a round reads for listeners at different
	// positions of the log; the others wait for the next round.
	feedRound = 50 * time.Millisecond
	// feedBuilt limits the texts that a round encodes, in bytes: it keeps them until it ends, for
	// further listeners that see the same. The others wait for the next round.
	feedBuilt = 4 << 20
	// doubtMost is the time for which a stream stays open while its credential can't be
	// checked. Nothing is sent meanwhile.
	doubtMost = 10 * time.Second
	// remoteFresh is the time for which another node's answer about a credential is
	// used, and the pause after a question that had no answer.
	remoteFresh = time.Second
	// heldBackMost is the time for which a stream stays open while there is no memory for
	// its next part: as long as a client may take nothing.
	heldBackMost = 15 * time.Second
)

// eventStream is a stream of events to one listener.
type eventStream struct {
	engine   *Engine
	req      tracker.Request
	op       *tracker.Op
	types    tracker.EventSet
	home     storage.ID // home of the credential; zero for none
	listener tracker.Listener

	// busy is set while the last part is being sent.
	busy atomic.Bool
	left atomic.Bool

	// Guarded by the stripe's mutex.
	feed  *feed
	index int // index in the feed's listeners

	// Owned by the feed's round.
	after   uint64    // the position: events up to it were sent
	looked  int       // the last round that read the log for this listener
	named   uint64    // the last id that was sent
	greeted bool      // the greeting was sent
	sent    time.Time // time of the last part
	doubted time.Time // time since which its credential can't be checked; zero if it can
	held    time.Time // time since which there is no memory for its next part; zero if there is
}

// Listen begins a stream of events for an admitted request: it finds the position where
// the stream starts, and returns an error if there are too many streams.
func (e *Engine) Listen(req *tracker.Request, op *tracker.Op, in any) (tracker.Stream, error) {
	work := &e.shardOf(req.Workspace).work
	if !work.enter() {
		return nil, errClosing()
	}
	defer work.leave()
	asked, ok := in.(*tracker.ListEventsIn)
	if !ok {
		return nil, fmt.Errorf("operation %s does not stream", op.Name)
	}
	if _, err := e.do(req, tracker.StartEvents, asked); err != nil {
		return nil, err
	}
	if err := e.admitListener(req.Workspace); err != nil {
		return nil, err
	}
	l := &eventStream{engine: e, req: tracker.Request{ID: req.ID, Workspace: req.Workspace, Credential: req.Credential}, op: op}
	l.after, l.types = asked.Started()
	l.named = l.after
	if c, err := tracker.ParseCredential(req.Credential); err == nil {
		l.home = c.Home
	}
	return l, nil
}

// admitListener counts one more stream of a workspace, or refuses it.
func (e *Engine) admitListener(workspace storage.ID) error {
	own, open := e.cfg.Limits.WorkspaceListening, e.feeds.listenersOf(workspace)
	free := int64(e.cfg.Limits.Listening) - e.feeds.listeners.Add(1)
	if free >= 0 && open < fairShare(own, free+1) {
		return nil
	}
	e.feeds.listeners.Add(-1)
	e.stats.refused[refusedListeners].Add(1)
	if open >= own {
		return tracker.NotApplied("Too many event streams of the workspace are open (--workspace-streams).")
	}
	return tracker.NotApplied("Too many event streams are open on this node.")
}

// Start implements tracker.Stream.
func (l *eventStream) Start(listener tracker.Listener) {
	l.listener = listener
	s := l.engine.feeds.stripe(l.req.Workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.left.Load() {
		return
	}
	f := l.engine.follow(s, l.req.Workspace)
	l.feed, l.index = f, len(f.listeners)
	f.listeners = append(f.listeners, l)
	f.schedule() // also checks that the workspace is still served here
}

// Leave implements tracker.Stream.
func (l *eventStream) Leave() {
	if l.left.Swap(true) {
		return
	}
	l.engine.feeds.listeners.Add(-1)
	s := l.engine.feeds.stripe(l.req.Workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := l.feed
	if f == nil {
		return
	}
	s.followers.Add(-1)
	last := len(f.listeners) - 1
	f.listeners[l.index] = f.listeners[last]
	f.listeners[l.index].index = l.index
	f.listeners[last] = nil
	f.listeners = f.listeners[:last]
	f.endIfLast()
}

// ready is called when the last part has been sent.
func (l *eventStream) ready() {
	l.busy.Store(false)
	s := l.feed.stripe
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.left.Load() {
		l.feed.schedule()
	}
}

// reserve reports whether there is memory for a part. If not, the listener stays where it is.
func (l *eventStream) reserve(size int, now time.Time) bool {
	if l.listener.Reserve(size) {
		return true
	}
	if l.held.IsZero() {
		l.held = now
	}
	return false
}

// send sends a part that memory was reserved for.
func (l *eventStream) send(text []byte, now time.Time) {
	l.sent = now
	l.busy.Store(true)
	if l.listener.Send(text, l.ready) {
		l.busy.Store(false)
	}
}

// serve sends new events to the listeners.
func (f *feed) serve(listeners []*eventStream) (more bool, err error) {
	e, now := f.engine, time.Now()
	shard := e.shardOf(f.workspace)
	epoch, err := e.readable(shard.number, now.Add(2*time.Second))
	if err != nil {
		if _, owned := e.replicator.Owner(shard.number); !owned {
			endAll(listeners)
		}
		return true, nil // listeners wait until this is settled
	}
	f.rounds++
	generation := e.generations.of(f.workspace).Load()
	snapshot := e.state.NewSnapshot()
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	at := f.moment(snapshot, epoch, generation)
	// Credentials are looked at after the snapshot was made, so none has ended before an event of it.
	callers := map[string]*tracker.Caller{}
	idle := make([]*eventStream, 0, len(listeners))
	for _, l := range listeners {
		if caller := f.admit(l, at, callers, now); caller != nil && !l.busy.Load() {
			idle = append(idle, l)
		}
	}
	f.forgetRemote(callers)
	idle = heldBackLast(rotate(idle), now)
	e.feeds.turns <- struct{}{} // no round that has a turn waits for another node
	defer func() { <-e.feeds.turns }()
	began := time.Now() // the checks above may have waited for other nodes
	view := tracker.NewView(at.view, nil, e.now(), nil)
	var batch *tracker.EventBatch
	over := false // a text was too much for this round
	for _, l := range idle {
		if f.full && !l.held.IsZero() || !l.greet(now) {
			continue
		}
		if batch == nil || l.after < batch.After || l.after >= batch.Last && batch.More {
			if batch != nil && (over || time.Since(began) > feedRound) {
				return true, nil
			}
			if batch, err = tracker.ReadEvents(view, l.after, feedEvents, feedBytes); err != nil {
				return false, err
			}
		}
		size, made, err := batch.Pick(callers[l.req.Credential], l.types, l.after)
		if err != nil {
			return false, err
		}
		if !made && f.built > 0 && f.built+size > feedBuilt {
			if over = true; time.Since(began) > feedRound {
				return true, nil
			}
			continue
		}
		l.looked = f.rounds
		if size > 0 && !l.reserve(size, now) {
			f.full = true
			continue
		}
		if !made {
			f.built += size
		}
		f.sent += l.notify(batch.Text(), max(l.after, batch.Last), now)
		more = more || batch.More
	}
	return more || over, nil
}

// rotate sorts listeners by their position in the log, so that one part of it serves
// many, and rotates them so that the one that has waited for the most rounds comes
// first: a round may end before it reaches all.
func rotate(idle []*eventStream) []*eventStream {
	slices.SortStableFunc(idle, func(a, b *eventStream) int { return cmp.Compare(a.after, b.after) })
	first := 0
	for i, l := range idle {
		if l.looked < idle[first].looked {
			first = i
		}
	}
	return append(idle[first:], idle[:first]...)
}

// greeting begins a stream: the time to wait before a reconnection, and the id to
// continue from.
const greeting = "retry: 1000\nid: "

// heldBackLast moves the listeners whose parts there was no memory for behind the others,
// and ends those that have been held back for too long.
func heldBackLast(idle []*eventStream, now time.Time) []*eventStream {
	free, held := idle[:0], []*eventStream(nil)
	for _, l := range idle {
		switch {
		case l.held.IsZero():
			free = append(free, l)
		case now.Sub(l.held) < heldBackMost:
			held = append(held, l)
		default:
			l.listener.End()
		}
	}
	return append(free, held...)
}

// greet begins the stream of a listener that is new. The greeting is a part of its own, so that
// the listener shares what follows with others. greet reports whether the listener can be sent
// more now.
func (l *eventStream) greet(now time.Time) bool {
	if l.greeted {
		return true
	}
	text := append(strconv.AppendUint([]byte(greeting), l.named, 10), "\n\n"...)
	if !l.reserve(cap(text), now) {
		return false
	}
	l.greeted = true
	l.send(text, now)
	return !l.busy.Load() && !l.left.Load()
}

// notify sends the part of the log up to a position, which memory was reserved for, or a sign
// of life. It returns the length of the part.
func (l *eventStream) notify(text []byte, after uint64, now time.Time) int {
	switch {
	case text != nil:
		l.send(text, now)
		l.named = after // events after the last one in text were not for this listener
	case now.Sub(l.sent) < feedAlive:
	case l.named == after:
		l.sayAlive([]byte(": alive\n\n"), now)
	default:
		// The sign of life has the present position, so that the listener can continue
		// from there.
		l.named = after
		l.sayAlive(append(strconv.AppendUint([]byte(": alive\nid: "), after, 10), "\n\n"...), now)
	}
	l.after, l.held = after, time.Time{}
	return len(text)
}

func (l *eventStream) sayAlive(text []byte, now time.Time) {
	if l.reserve(cap(text), now) {
		l.send(text, now)
	}
}

// admit returns the rights that a listener has at a moment, or nil if it has none or they
// can't be checked now.
func (f *feed) admit(l *eventStream, at *moment, callers map[string]*tracker.Caller, now time.Time) *tracker.Caller {
	caller, known := callers[l.req.Credential]
	if !known {
		var err error
		caller, err = f.identify(l, at, now)
		if err != nil && outcome(err) == "" {
			l.listener.End() // it gets the reason as error when it connects again
			return nil
		}
		if caller == nil {
			f.doubt = true
			if l.doubted.IsZero() {
				l.doubted = now
			} else if now.Sub(l.doubted) > doubtMost {
				l.listener.End()
			}
			return nil
		}
		callers[l.req.Credential] = caller
	}
	l.doubted = time.Time{}
	return caller
}

// identify does the same as Admit for the stream's request, with the rights of a moment:
// rights and credentials may have ended. It returns neither a caller nor an error if that is
// not known yet.
func (f *feed) identify(l *eventStream, at *moment, now time.Time) (*tracker.Caller, error) {
	e := f.engine
	if l.home != (storage.ID{}) && e.elsewhere(e.shardOf(l.home).number) {
		return f.identifyRemote(l, at, now)
	}
	req := l.req
	req.Deadline = now.Add(2 * time.Second)
	if err := e.Admit(&req, l.op); err != nil {
		return nil, err
	}
	a, err := at.rights(admissionOf(&req), l.op)
	if err != nil {
		return nil, err
	}
	return &a.caller, nil
}
