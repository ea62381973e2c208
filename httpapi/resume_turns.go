package httpapi

import (
	"container/list"
	"sync"
	"time"
)

// resumeTurns lets few parked requests at a time resume. One event may wake thousands. If all of them
// resumed at once, each would take a reader and a stack, and the requests of other workspaces would wait for
// the processors until the last one has its answer.
//
// The requests of a workspace resume in the order in which they were woken, and the workspaces take turns. A
// workspace has no more turns than it leaves free. A turn lasts until the request has its answer, waits
// again, or begins something for which it may have to wait. If no turn ends for a while, those that have one
// wait for something all the same: they are not counted any longer.
type resumeTurns struct {
	most   int           // requests that resume at once
	stall  time.Duration // without the end of a turn, after which turns are not counted any longer
	resume func(*parked, resumeTurn)

	mu      sync.Mutex // guards the rest; nothing waits while it is held
	running int        // turns of this round
	round   uint64     // moves when the turns are no longer counted
	ended   bool       // a turn has ended since the last look
	looks   bool       // the timer is set, as long as a request waits for its turn
	timer   *time.Timer
	of      map[[16]byte]*resumeQueue // of the workspaces with requests that resume or wait for it
	order   list.List                 // of *resumeQueue: those with requests that wait
}

// resumeQueue has the woken requests of a workspace.
type resumeQueue struct {
	workspace [16]byte
	running   int    // turns
	round     uint64 // in which running was counted
	waiting   list.List
	place     *list.Element // in resumeTurns.order, if a request waits
}

// resumeTurn is the turn of a request. The zero value is that of a request that needs none.
type resumeTurn struct {
	queue *resumeQueue
	round uint64
}

const (
	// resumeAtOnce is how many requests resume at a time, for each processor.
	resumeAtOnce = 4
	// resumeStall is resumeTurns.stall of a server.
	resumeStall = 10 * time.Millisecond
)

func newResumeTurns(most int, resume func(*parked, resumeTurn)) *resumeTurns {
	return &resumeTurns{most: most, stall: resumeStall, resume: resume, of: map[[16]byte]*resumeQueue{}}
}

// add has a woken request resume, at once or when it has its turn.
func (t *resumeTurns) add(p *parked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.of[p.workspace]
	if q == nil {
		q = &resumeQueue{workspace: p.workspace}
		t.of[p.workspace] = q
	}
	if q.place == nil && t.mayStart(q) {
		t.start(q, p)
		return
	}
	q.waiting.PushBack(p)
	if q.place == nil {
		q.place = t.order.PushBack(q)
	}
	if t.looks {
		return
	}
	t.looks, t.ended = true, false
	if t.timer == nil {
		t.timer = time.AfterFunc(t.stall, t.look)
	} else {
		t.timer.Reset(t.stall)
	}
}

// end ends a turn.
func (t *resumeTurns) end(turn resumeTurn) {
	q := turn.queue
	if q == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if turn.round == t.round {
		t.ended = true
		t.running--
		q.running--
		t.startNext()
	}
	t.tidy(q)
}

// look no longer counts the turns there are if none has ended since the last look.
func (t *resumeTurns) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.looks = t.order.Len() > 0; !t.looks {
		return
	}
	if !t.ended {
		t.round++
		t.running = 0
		t.startNext()
	}
	t.ended = false
	t.timer.Reset(t.stall)
}

// runningOf returns the number of a workspace's turns.
func (t *resumeTurns) runningOf(q *resumeQueue) int {
	if q.round != t.round {
		q.round, q.running = t.round, 0
	}
	return q.running
}

// mayStart reports whether a workspace leaves a turn free that it can have.
func (t *resumeTurns) mayStart(q *resumeQueue) bool { return t.runningOf(q) < t.most-t.running }

// start gives a request a turn.
func (t *resumeTurns) start(q *resumeQueue, p *parked) {
	q.running++
	t.running++
	go t.resume(p, resumeTurn{queue: q, round: t.round})
}

// startNext gives the free turns to requests that wait. While one is free, no more workspaces are looked at than
// have turns, and one.
func (t *resumeTurns) startNext() {
	for e := t.order.Front(); e != nil && t.running < t.most; {
		q := e.Value.(*resumeQueue) //nolint:forcetypeassert // the list has nothing else
		if !t.mayStart(q) {
			e = e.Next()
			continue
		}
		t.order.MoveToBack(e)
		t.start(q, q.waiting.Remove(q.waiting.Front()).(*parked)) //nolint:forcetypeassert // the list has nothing else
		t.tidy(q)
		e = t.order.Front()
	}
}

// tidy forgets a workspace that has no more woken requests.
func (t *resumeTurns) tidy(q *resumeQueue) {
	if q.waiting.Len() > 0 {
		return
	}
	if q.place != nil {
		t.order.Remove(q.place)
		q.place = nil
	}
	if t.runningOf(q) == 0 && t.of[q.workspace] == q {
		delete(t.of, q.workspace)
	}
}
