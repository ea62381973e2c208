package actors

import (
	"slices"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// timerName names a timer of a shard.
type timerName struct {
	workspace     storage.ID
	kind, subject string
}

// task is a timer that is due: it waits for its turn, it runs, or it has run and is still
// set, and waits for its next try.
type task struct {
	name    timerName
	due     time.Time
	state   taskState
	moved   time.Time // to which the timer was moved while its task ran, and at which it is due; or zero
	tries   int
	again   time.Time // of the next try, of one that rests
	resting int       // its place in restingTasks
}

type taskState uint8

const (
	taskQueued taskState = iota
	taskRunning
	taskResting
)

// timer returns the task's timer as it was read.
func (t *task) timer() tracker.DueTimer {
	return tracker.DueTimer{Workspace: t.name.workspace, Kind: t.name.kind, Subject: t.name.subject, Due: t.due}
}

// turns gives out tasks of one class: one of each workspace after another, the longest
// overdue first within a workspace. A workspace that has many due timers doesn't delay the
// others.
type turns struct {
	most    int // that run at once
	running int
	queues  map[storage.ID]*turnQueue
	order   []storage.ID // workspaces with queued tasks; the first one has the next turn
}

// turnQueue has the tasks of a workspace.
type turnQueue struct {
	queued  []*task
	running int
}

func newTurns(most int) *turns { return &turns{most: most, queues: map[storage.ID]*turnQueue{}} }

func (c *turns) add(t *task) {
	id := t.name.workspace
	q := c.queues[id]
	if q == nil {
		q = &turnQueue{}
		c.queues[id] = q
	}
	if len(q.queued) == 0 {
		c.order = append(c.order, id)
	}
	t.state = taskQueued
	q.queued = append(q.queued, t)
}

// next takes the task whose turn it is, or returns nil. It counts as running. A workspace
// may run as many as it leaves free for others, and one at least.
func (c *turns) next() *task {
	free := c.most - c.running
	if free <= 0 {
		return nil
	}
	for i, id := range c.order {
		q := c.queues[id]
		if q.running > 0 && q.running >= free {
			continue
		}
		t := q.queued[0]
		q.queued[0] = nil
		q.queued = q.queued[1:]
		if i == 0 {
			c.order = c.order[1:]
		} else {
			c.order = slices.Delete(c.order, i, i+1)
		}
		if len(q.queued) > 0 {
			c.order = append(c.order, id)
		}
		q.running++
		c.running++
		t.state = taskRunning
		return t
	}
	return nil
}

// ended takes a task off the running ones.
func (c *turns) ended(t *task) {
	q := c.queues[t.name.workspace]
	q.running--
	c.running--
	if q.running == 0 && len(q.queued) == 0 {
		delete(c.queues, t.name.workspace)
	}
}

// restingTasks is a heap of tasks by the time of their next try (container/heap).
type restingTasks []*task

func (r restingTasks) Len() int           { return len(r) }
func (r restingTasks) Less(i, j int) bool { return r[i].again.Before(r[j].again) }
func (r restingTasks) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].resting, r[j].resting = i, j
}

// Push implements heap.Interface.
func (r *restingTasks) Push(x any) {
	t := x.(*task)
	t.resting = len(*r)
	*r = append(*r, t)
}

// Pop implements heap.Interface.
func (r *restingTasks) Pop() any {
	last := len(*r) - 1
	t := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	return t
}
