package actors

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// indexTurns bounds the queries of long-running workflows, which make the search index. They
// give way to requests: few run at a time, and each place stays taken after a query for as long
// as it took. A load that makes issues faster than that indexes them would fill the memory with
// what is in no index yet. So there are more places, without rests, the more of that there is.
//
// Places go to those that came first. Every other one goes to a segment of a workspace in which a search
// went through many issues that no segment has, if there is one, and without a rest: each search goes
// through these issues until it is made. The others have places in between, however much a workspace is
// searched.
type indexTurns struct {
	few     int // places where the index keeps up
	tails   tails
	stopped context.Context

	mu      sync.Mutex
	taken   int
	ahead   bool            // the last place was given to one that others waited longer for
	waiting []*indexWaiting // at most lastingTimers of each kind and shard
}

// tails is a *tracker.Tails.
type tails interface {
	// Crowding is how many times the memory for what is in no index yet is used up.
	Crowding() int
	// TakeAwaited reports whether a search has gone through many issues of a workspace's tail since it
	// was asked for the last time.
	TakeAwaited(workspace storage.ID) bool
}

var _ tails = (*tracker.Tails)(nil)

// indexWaiting is a query that waits for a place.
type indexWaiting struct {
	workspace storage.ID
	segment   bool          // it makes a segment of the tail
	awaited   bool          // it has a place because searches need it
	begins    chan struct{} // closed when it has a place
}

const (
	// maxIndexTurns is the largest number of queries at a time.
	maxIndexTurns = 8
	// indexCrowding is how many times the memory must be used up for each place more.
	indexCrowding = 3
	// longestIndexRest bounds the rest after a query.
	longestIndexRest = 250 * time.Millisecond
)

func newIndexTurns(stopped context.Context, few int, tails tails) *indexTurns {
	return &indexTurns{few: few, tails: tails, stopped: stopped}
}

// more is the number of places beyond few.
func (t *indexTurns) more() int {
	return min(t.tails.Crowding()/indexCrowding, max(0, maxIndexTurns-t.few))
}

// begin waits for a place for a query of a workspace; nil if the engine is closing. segment says that the
// query makes a segment of the tail.
func (t *indexTurns) begin(workspace storage.ID, segment bool) *indexWaiting {
	w := &indexWaiting{workspace: workspace, segment: segment, begins: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.give()
	t.mu.Unlock()
	select {
	case <-w.begins:
		return w
	case <-t.stopped.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else {
		t.free()
	}
	return nil
}

// end gives the place back after a query that took so long, and a rest.
func (t *indexTurns) end(w *indexWaiting, took time.Duration) {
	if w.awaited || t.more() > 0 {
		t.endRest()
		return
	}
	time.AfterFunc(min(took, longestIndexRest), t.endRest)
}

func (t *indexTurns) endRest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free()
}

// free gives a place back. The mutex must be held.
func (t *indexTurns) free() {
	t.taken--
	t.give()
}

// give gives free places to queries that wait. The mutex must be held.
func (t *indexTurns) give() {
	for len(t.waiting) > 0 && t.taken < t.few+t.more() {
		next := 0
		if !t.ahead || len(t.waiting) == 1 {
			next = max(0, slices.IndexFunc(t.waiting, func(w *indexWaiting) bool {
				w.awaited = w.segment && t.tails.TakeAwaited(w.workspace)
				return w.awaited
			}))
		}
		w := t.waiting[next]
		t.waiting = slices.Delete(t.waiting, next, next+1)
		t.ahead = next > 0
		t.taken++
		close(w.begins)
	}
}
