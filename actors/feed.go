package actors

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// feeds tells those who follow the event logs of workspaces that there is something
// new: requests that wait for an event, and listeners to streams. A batch that was
// committed costs its workspace two atomic operations while nobody follows, and a
// lock besides while somebody does; all that is told is told on other goroutines.
type feeds struct {
	listeners atomic.Int64
	stripes   [64]feedStripe
}

// feedStripe keeps the feeds of some workspaces.
type feedStripe struct {
	followers atomic.Int64

	mu    sync.Mutex // never held while waiting for anything
	feeds map[storage.ID]*feed
}

const (
	// feedPause is the least time between two rounds of a feed: events that come one
	// upon the other are told together. One that comes alone is told at once.
	feedPause = 25 * time.Millisecond
	// feedShare is how many times as long as a round took the next one waits, so that
	// many listeners take a bounded part of the node's time from those who write: a tenth
	// of one processor. What they have not been told yet lies in the log.
	feedShare = 9
	// feedRate is how many bytes a second the streams of a workspace are sent at most:
	// what the system does to send them is in no round's time.
	feedRate = 100 << 20
	// feedTick is how often the listeners of a feed are looked after when nothing
	// happens, and feedAlive after what time of silence one is told that its stream is
	// still there.
	feedTick  = 5 * time.Second
	feedAlive = 15 * time.Second
)

// feed is the event log of one workspace as somebody follows it here, where the
// workspace is served. Its rounds come one after another, each on a goroutine of its
// own; there is none between them. The stripe's mutex guards it.
type feed struct {
	engine    *Engine
	stripe    *feedStripe
	workspace storage.ID

	polls     int // requests that wait
	listeners []*listening
	scheduled bool // a round is going to begin
	running   bool
	again     bool // something happened since the round began
	next      time.Time
	tick      *time.Timer // nil without listeners

	// Owned by the round.
	rounds int
	sent   int  // bytes, in this round
	doubt  bool // this round could not tell whether a listener's credential is good
	remote map[string]*remoteCaller
}

func (f *feeds) stripe(workspace storage.ID) *feedStripe {
	return &f.stripes[binary.LittleEndian.Uint16(workspace[14:])%uint16(len(f.stripes))]
}

// tell says that there may be new events in a workspace, or that who may see them
// has changed. It never blocks.
func (e *Engine) tell(workspace storage.ID) {
	// Whoever joins counts itself first and looks at the news then.
	e.waits.stripe(workspace).news.Add(1)
	s := e.feeds.stripe(workspace)
	if s.followers.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[workspace]; f != nil {
		f.poke()
	}
}

// listenersOf counts the streams of a workspace.
func (f *feeds) listenersOf(workspace storage.ID) int {
	s := f.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[workspace]; f != nil {
		return len(f.listeners)
	}
	return 0
}

// follow gives the feed of a workspace for one more follower. The stripe is locked.
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

// followPoll counts a request that waits for events of a workspace.
func (e *Engine) followPoll(workspace storage.ID) {
	s := e.feeds.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.follow(s, workspace).polls++
}

// unfollowPoll counts one off again.
func (e *Engine) unfollowPoll(workspace storage.ID) {
	s := e.feeds.stripe(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers.Add(-1)
	f := s.feeds[workspace]
	f.polls--
	f.endIfLast()
}

// endIfLast forgets a feed that nobody follows any more. The stripe is locked.
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

// poke has a round begin: now, if the one before was long enough ago. The stripe is
// locked.
func (f *feed) poke() {
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
	listeners := append([]*listening(nil), f.listeners...)
	s.mu.Unlock()

	began := time.Now()
	f.sent, f.doubt = 0, false
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
		f.poke()
	}
	switch tick := f.soon(); {
	case len(f.listeners) == 0:
	case f.tick == nil:
		f.tick = time.AfterFunc(tick, f.ticked)
	case f.doubt:
		f.tick.Reset(tick)
	}
}

// soon is when to look again at the listeners, if nothing happens before.
func (f *feed) soon() time.Duration {
	if f.doubt {
		return remoteFresh
	}
	return feedTick
}

func (f *feed) ticked() {
	f.stripe.mu.Lock()
	defer f.stripe.mu.Unlock()
	if f.tick != nil {
		f.tick.Reset(feedTick)
		f.poke()
	}
}

// round wakes the requests that wait, and sends the listeners what they have not been
// told. more says that there is more to send already.
func (f *feed) round(polls bool, listeners []*listening) (more bool) {
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
		e.log.Error("tell of events", "workspace", f.workspace.String(), "error", err)
		endAll(listeners) // they go on where they were, elsewhere or later
	}
	return more
}

// endFeeds ends the streams of a shard's workspaces, which are served elsewhere from
// now on.
func (e *Engine) endFeeds(shard *shard) {
	for i := range e.feeds.stripes {
		s := &e.feeds.stripes[i]
		if s.followers.Load() == 0 {
			continue
		}
		var all []*listening
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

func endAll(listeners []*listening) {
	for _, l := range listeners {
		l.listener.End()
	}
}
