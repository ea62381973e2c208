package actors

import (
	"context"
	"sync"
	"time"
)

// indexTurns bounds the queries of long-running workflows, which make the search index. They
// give way to requests: few run at a time, and each place stays taken after a query for as long
// as it took. A load that makes issues faster than that indexes them would fill the memory with
// what is in no index yet. So there are more places, without rests, the more of that there is.
type indexTurns struct {
	few      int        // places where the index keeps up
	crowding func() int // how many times the memory for what is in no index yet is used up
	stopped  context.Context

	mu    sync.Mutex
	taken int
	freed chan struct{} // closed and made anew when a place becomes free
}

const (
	// maxIndexTurns is the largest number of queries at a time.
	maxIndexTurns = 8
	// indexCrowding is how many times the memory must be used up for each place more.
	indexCrowding = 3
	// longestIndexRest bounds the rest after a query.
	longestIndexRest = 250 * time.Millisecond
)

func newIndexTurns(stopped context.Context, few int, crowding func() int) *indexTurns {
	return &indexTurns{few: few, crowding: crowding, stopped: stopped, freed: make(chan struct{})}
}

// more is the number of places beyond few.
func (t *indexTurns) more() int { return min(t.crowding()/indexCrowding, max(0, maxIndexTurns-t.few)) }

// begin waits for a place; false if the engine is closing.
func (t *indexTurns) begin() bool {
	for {
		t.mu.Lock()
		if t.taken < t.few+t.more() {
			t.taken++
			t.mu.Unlock()
			return true
		}
		freed := t.freed
		t.mu.Unlock()
		select {
		case <-freed:
		case <-t.stopped.Done():
			return false
		}
	}
}

// end gives the place back after a query that took so long, and a rest.
func (t *indexTurns) end(took time.Duration) {
	if t.more() > 0 {
		t.free()
		return
	}
	time.AfterFunc(min(took, longestIndexRest), t.free)
}

func (t *indexTurns) free() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	close(t.freed)
	t.freed = make(chan struct{})
}
