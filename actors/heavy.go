package actors

import (
	"container/list"
	"runtime"
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// heavyTurns gives out the turns of heavy queries, or of others from a snapshot. Without turns all
// that come share the processors: each then takes as long as all of them together, and the slowest
// much longer.
//
// The queries of a workspace run in the order in which they came. A free turn goes to the workspace
// that has the fewest, and of several to the one whose turn ended longest ago. So a workspace has
// all turns only while no other one waits, and its backlog doesn't delay the others. Those that
// wait are no more than the connections are.
type heavyTurns struct {
	most int // queries that run at once

	mu      sync.Mutex // guards the rest; nothing waits while it is held
	running int
	paused  int
	of      map[storage.ID]*heavyQueue // of the workspaces with queries that run or wait
	order   list.List                  // of *heavyQueue: those with queries that wait
}

// heavyQueue has the heavy queries of a workspace.
type heavyQueue struct {
	workspace storage.ID
	running   int
	waiting   list.List     // of chan struct{}, which is closed when its query has a turn
	place     *list.Element // in heavyTurns.order, if a query waits
}

const (
	// heavySlice is the time after which a heavy query lets another workspace go first: as long
	// as the scheduler of Go lets a goroutine run.
	heavySlice = 10 * time.Millisecond
	// heavyPauses limits the queries that have begun and wait for their next turn, as a multiple
	// of the turns: each keeps what it has read.
	heavyPauses = 4
)

func newHeavyTurns(most int) *heavyTurns {
	return &heavyTurns{most: most, of: map[storage.ID]*heavyQueue{}}
}

// take waits for a turn for a query of a workspace; false if there was none by the deadline. With
// first the query goes before the others of its workspace that wait.
func (t *heavyTurns) take(workspace storage.ID, first bool, deadline time.Time) bool {
	t.mu.Lock()
	q := t.of[workspace]
	if q == nil {
		q = &heavyQueue{workspace: workspace}
		t.of[workspace] = q
	}
	if t.running < t.most { // no query waits
		t.start(q)
		t.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	var place *list.Element
	if first {
		place = q.waiting.PushFront(turn)
	} else {
		place = q.waiting.PushBack(turn)
	}
	if q.place == nil {
		q.place = t.order.PushBack(q)
	}
	t.mu.Unlock()

	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-turn:
		return true
	case <-timer.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn: // it was given meanwhile
		return true
	default:
	}
	q.waiting.Remove(place)
	t.tidy(q)
	return false
}

// start counts a query that runs.
func (t *heavyTurns) start(q *heavyQueue) {
	q.running++
	t.running++
}

// tidy forgets a workspace that has no more queries.
func (t *heavyTurns) tidy(q *heavyQueue) {
	if q.waiting.Len() > 0 {
		return
	}
	if q.place != nil {
		t.order.Remove(q.place)
		q.place = nil
	}
	if q.running == 0 {
		delete(t.of, q.workspace)
	}
}

// end gives a turn of a workspace to the query that is next.
func (t *heavyTurns) end(workspace storage.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass(t.of[workspace])
}

func (t *heavyTurns) pass(q *heavyQueue) {
	q.running--
	t.running--
	if q.place != nil {
		t.order.MoveToBack(q.place)
	}
	t.tidy(q)
	next := t.next()
	if next == nil {
		return
	}
	turn := next.waiting.Remove(next.waiting.Front()).(chan struct{}) //nolint:forcetypeassert // the list has nothing else
	t.start(next)
	t.tidy(next)
	close(turn)
}

// next returns the workspace that a free turn goes to; nil if no query waits. No more workspaces
// are looked at than have turns, and one.
func (t *heavyTurns) next() *heavyQueue {
	var least *heavyQueue
	for e := t.order.Front(); e != nil && (least == nil || least.running > 0); e = e.Next() {
		q := e.Value.(*heavyQueue) //nolint:forcetypeassert // the list has nothing else
		if least == nil || q.running < least.running {
			least = q
		}
	}
	return least
}

// pause lets a waiting workspace that has fewer turns than this one go first, if there is one, and
// waits for another turn. It returns false if there was none by the deadline: then the query has no
// turn.
func (t *heavyTurns) pause(workspace storage.ID, deadline time.Time) bool {
	t.mu.Lock()
	q, next := t.of[workspace], t.next()
	if next == nil || next.running >= q.running || t.paused >= heavyPauses*t.most {
		t.mu.Unlock()
		return true
	}
	t.paused++
	t.pass(q)
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.paused--
		t.mu.Unlock()
	}()
	return t.take(workspace, true, deadline)
}

// pagesAtOnce is how many queries from a snapshot run at a time, for each processor, beside heavy ones.
// They may wait for the disk.
const pagesAtOnce = 4

// turnsOf returns the turns of which a query takes one; nil for none. Snapshots are made and closed one
// after another, by all that came before. Without turns, of a thousand requests for pages all would have
// built theirs before the first one could close its snapshot and have its memory counted. One event
// wakes as many that wait for a page of the log. A query of single look-ups that turns out to need a
// snapshot, or to have a large answer, takes its turn then (tracker.ErrTurn).
func (e *Engine) turnsOf(req *tracker.Request, op *tracker.Op) *heavyTurns {
	switch {
	case op.Heavy:
		return e.heavy
	case op.FromSnapshot && req.Charge != nil:
		return e.pages
	}
	return nil
}

// heavyRun is a query that has a turn.
type heavyRun struct {
	engine    *Engine
	turns     *heavyTurns
	req       *tracker.Request
	workspace storage.ID
	holds     bool      // a turn
	since     time.Time // has it had the turn
}

// takeTurn waits until a query may run. The caller ends it.
func (e *Engine) takeTurn(turns *heavyTurns, req *tracker.Request, workspace storage.ID, first bool) (*heavyRun, error) {
	began := time.Now()
	holds := turns.take(workspace, first, req.Deadline)
	now := time.Now()
	req.Spent.Queue += now.Sub(began)
	if !holds {
		e.stats.refused[refusedLate].Add(1)
		return nil, tracker.NotApplied("The request timed out before it began.")
	}
	return &heavyRun{engine: e, turns: turns, req: req, workspace: workspace, holds: true, since: now}, nil
}

// TakeTurn waits for a turn to use a processor for longer, outside of an operation: for a message to the
// tools of a session. A request that goes on comes before others of its workspace that wait. The caller
// ends the turn, and runs no operation meanwhile: that may wait.
//
// These turns are their own, so that the searches of a workspace don't delay its agents.
func (e *Engine) TakeTurn(req *tracker.Request, goesOn bool) (end func(), err error) {
	r, err := e.takeTurn(e.others, req, req.Workspace, goesOn)
	if err != nil {
		return nil, err
	}
	return r.end, nil
}

// watch has goOn called while the query reads. A query that is not heavy is nil.
func (r *heavyRun) watch(v *tracker.View) {
	if r != nil {
		v.Watch(r.goOn)
	}
}

// goOn is called while a heavy query reads. It ends a query whose time is up, and after each slice
// of time it lets another workspace go first.
func (r *heavyRun) goOn() error {
	now := time.Now()
	if !now.Before(r.req.Deadline) {
		return r.late()
	}
	if now.Sub(r.since) < heavySlice {
		return nil
	}
	r.holds = r.turns.pause(r.workspace, r.req.Deadline)
	r.since = time.Now()
	r.req.Spent.Queue += r.since.Sub(now)
	if !r.holds {
		return r.late()
	}
	return nil
}

func (r *heavyRun) late() error {
	r.engine.stats.refused[refusedLate].Add(1)
	return tracker.NotApplied("The request timed out before its answer was complete.")
}

// end gives the turn back. The query that waits for it would run next on this processor, before
// requests that came earlier and have less to do: Go runs a goroutine first that was just woken. So
// requests that wait for the processor go before.
func (r *heavyRun) end() {
	if r != nil && r.holds {
		runtime.Gosched()
		r.turns.end(r.workspace)
	}
}
