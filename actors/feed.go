package actors

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// feeds notifies followers of the event logs of workspaces: requests that wait for an
// event, and listeners to streams. A committed batch costs its workspace two atomic
// operations while there are no followers, and a lock in addition if there are some;
// everything else runs on other goroutines.
type feeds struct {
	listeners atomic.Int64
	turns     chan struct{} // taken by rounds that read the log, see feedTurns
	stripes   [64]feedStripe
}

// feedStripe holds the feeds of some workspaces.
type feedStripe struct {
	followers atomic.Int64

	mu    sync.Mutex // never held while waiting
	feeds map[storage.ID]*feed
}

const (
	// feedPause is the least time between two rounds of a feed, so that events in quick
	// succession are sent together. A single event is sent at once.
	feedPause = 25 * time.Millisecond
	// feedShare is the length of the pause after a round, in lengths of that round, so
	// that many listeners take a limited part of the node's time: a tenth of one
	// processor. Events that are not yet sent stay in the log.
	feedShare = 9
	// feedTurns is how many rounds read the log at a time, for each processor: each may hold
	// feedBuilt and a part of the log.
	feedTurns = 4
	// feedRate limits the bytes per second that the streams of a workspace are sent:
	// the system's time to send them is not measured by a round.
	feedRate = 100 << 20
	// feedTick is the interval at which the listeners of a feed are checked without
	// events, and feedAlive the time of silence after which a listener gets a sign of
	// life.
	feedTick  = 5 * time.Second
	feedAlive = 15 * time.Second
)

// feed is the event log of one workspace that has followers on this node, which serves
// the workspace. Its rounds run one after another, each on a goroutine of its own;
// between rounds there is none. The stripe's mutex guards it.
type feed struct {
	engine    *Engine
	stripe    *feedStripe
	workspace storage.ID

	polls     int // waiting requests
	listeners []*eventStream
	scheduled bool // a round will begin
	running   bool
	again     bool // there was a change after the round began
	next      time.Time
	tick      *time.Timer // nil without listeners

	// Owned by the round.
	rounds int
	sent   int  // bytes sent in this round
	built  int  // bytes of the texts that were encoded in this round
	doubt  bool // set if a listener's credential could not be checked in this round
	full   bool // set if there was no memory for a part in this round
	remote map[string]*remoteCaller
}

func (f *feeds) stripe(workspace storage.ID) *feedStripe {
	return &f.stripes[binary.LittleEndian.Uint16(workspace[14:])%uint16(len(f.stripes))]
}

// notify notes that there may be new events in a workspace, or that rights to see them
// have changed. It never blocks.
func (e *Engine) notify(workspace storage.ID) {
	// A new follower counts itself before it reads the log, so it misses no event.
	e.waits.stripe(workspace).wakes.Add(1)
	s := e.feeds.stripe(workspace)
	if s.followers.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[workspace]; f != nil {
		f.schedule()
	}
}

// listenersOf returns the number of a workspace's streams.
func (f *feeds) listenersOf(workspace storage.ID) int {
	s := f.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[workspace]; f != nil {
		return len(f.listeners)
	}
	return 0
}

// follow returns the feed of a workspace for one more follower. The stripe is locked.
func (e *Engine) follow(s *feedStripe, workspace storage.ID) *feed {
	s.followers.Add(1)
	f := s.feeds[workspace]
	if f == nil {
		f = &feed{engine: e, stripe: s, workspace: workspace, remote: map[string]*remoteCaller{}}
		if s.feeds == nil {
			s.feeds = map[storage.ID]*feed{}
		}
		s.feeds[workspace] = f
	}
	return f
}

// followPoll adds a request that waits for events of a workspace.
func (e *Engine) followPoll(workspace storage.ID) {
	s := e.feeds.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.follow(s, workspace).polls++
}

// unfollowPoll removes such a request.
func (e *Engine) unfollowPoll(workspace storage.ID) {
	s := e.feeds.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers.Add(-1)
	f := s.feeds[workspace]
	f.polls--
	f.endIfLast()
}

// endIfLast drops a feed without followers. The stripe is locked.
func (f *feed) endIfLast() {
	if f.polls > 0 || len(f.listeners) > 0 || f.stripe.feeds[f.workspace] != f {
		return
	}
	if f.tick != nil {
		f.tick.Stop()
		f.tick = nil
	}
	if !f.running && !f.scheduled {
		delete(f.stripe.feeds, f.workspace)
	}
}

// schedule starts a round, now or when the pause after the previous one is over. The stripe
// is locked.
func (f *feed) schedule() {
	switch {
	case f.running:
		f.again = true
	case !f.scheduled:
		f.scheduled = true
		if wait := time.Until(f.next); wait > 0 {
			time.AfterFunc(wait, f.run)
		} else {
			go f.run()
		}
	}
}

func (f *feed) run() {
	s := f.stripe
	s.mu.Lock()
	f.scheduled, f.running, f.again = false, true, false
	polls := f.polls
	listeners := append([]*eventStream(nil), f.listeners...)
	s.mu.Unlock()

	began := time.Now()
	f.sent, f.built, f.doubt, f.full = 0, 0, false, false
	more := f.round(polls > 0, listeners)
	now := time.Now()

	s.mu.Lock()
	defer s.mu.Unlock()
	f.running = false
	wait := min(feedShare*now.Sub(began), time.Second)
	f.next = now.Add(max(feedPause, wait, time.Duration(f.sent)*time.Second/feedRate))
	f.endIfLast()
	if f.polls == 0 && len(f.listeners) == 0 {
		return
	}
	if f.again || more {
		f.schedule()
	}
	switch tick := f.soon(); {
	case len(f.listeners) == 0:
	case f.tick == nil:
		f.tick = time.AfterFunc(tick, f.ticked)
	case f.doubt || f.full:
		f.tick.Reset(tick)
	}
}

// soon returns the time until the listeners are checked again without events.
func (f *feed) soon() time.Duration {
	if f.doubt || f.full {
		return remoteFresh
	}
	return feedTick
}

func (f *feed) ticked() {
	f.stripe.mu.Lock()
	defer f.stripe.mu.Unlock()
	if f.tick != nil {
		f.tick.Reset(feedTick)
		f.schedule()
	}
}

// round wakes the waiting requests, and sends the listeners new events. more is set if
// there are more to send.
func (f *feed) round(polls bool, listeners []*eventStream) (more bool) {
	e := f.engine
	if !e.background.enter() {
		endAll(listeners)
		return false
	}
	defer e.background.leave()
	if polls {
		e.waits.wake(f.workspace, []tracker.Wake{{Topics: [4]tracker.Topic{tracker.EventTopic}}})
	}
	if len(listeners) == 0 {
		return false
	}
	more, err := f.serve(listeners)
	if err != nil {
		e.log.Error("send events", "workspace", f.workspace.String(), "error", err)
		endAll(listeners) // they continue from their position, elsewhere or later
	}
	return more
}

// endFeeds ends the streams of a shard's workspaces, which another node serves from now
// on.
func (e *Engine) endFeeds(shard *shard) {
	for i := range e.feeds.stripes {
		s := &e.feeds.stripes[i]
		if s.followers.Load() == 0 {
			continue
		}
		var all []*eventStream
		s.mu.Lock()
		for workspace, f := range s.feeds {
			if e.shardOf(workspace) == shard {
				all = append(all, f.listeners...)
			}
		}
		s.mu.Unlock()
		endAll(all)
	}
}

func endAll(listeners []*eventStream) {
	for _, l := range listeners {
		l.listener.End()
	}
}
