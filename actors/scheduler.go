package actors

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// scheduler runs the timers of one shard while this node owns it. Timers are rows, so
// the scheduler has no state that a restart or another owner would lack: it reads the
// due timers and runs the operation of each. The operation removes or moves its timer
// in its own batch, so it takes effect once however often it is run. Due timers are read in
// passes (scheduler_read.go), and run in turns of their workspaces (scheduler_queue.go).
type scheduler struct {
	shard  *shard
	ctx    context.Context
	cancel context.CancelFunc
	wakeup chan struct{}
	ended  chan result // with room for all workers, so that they never block

	// Owned by the loop's goroutine.
	tasks   map[timerName]*task
	held    map[storage.ID]int // tasks of a workspace
	resting restingTasks
	normal  *turns
	lasting map[string]*turns // of each kind whose operation may take long, which don't count for normal
	reader  timerReader
}

type result struct {
	task *task
	err  error
}

const (
	// A timer whose operation fails is run again after retryFirst, then after twice the
	// time at each failure, up to retryMost.
	retryFirst = time.Second
	retryMost  = 5 * time.Minute
	// lastingTimers is the number of timers of each lasting kind that a shard runs at
	// once. They don't count for Limits.Timers, so that they don't delay others.
	lastingTimers = 4
	// timersLook is the longest time that the loop sleeps: the wall clock, which
	// decides what is due, may be set, or run on while the machine is suspended.
	timersLook = time.Minute
)

// startScheduler starts a shard's timers; it returns nil if the engine is closed.
func startScheduler(s *shard) *scheduler {
	e := s.engine
	if !e.background.enter() {
		return nil
	}
	c := &scheduler{
		shard:  s,
		wakeup: make(chan struct{}, 1),
		ended:  make(chan result, e.cfg.Limits.Timers+lastingTimers*len(e.timerOps)),
		tasks:  map[timerName]*task{}, held: map[storage.ID]int{},
		normal: newTurns(e.cfg.Limits.Timers), lasting: map[string]*turns{},
		reader: timerReader{stale: true},
	}
	c.ctx, c.cancel = context.WithCancel(e.stopped)
	go c.loop()
	return c
}

// stop makes the loop end; it doesn't wait for it.
func (c *scheduler) stop() { c.cancel() }

// wake makes the scheduler of an owned shard look again.
func (s *shard) wake() {
	s.mu.RLock()
	timers := s.timers
	s.mu.RUnlock()
	if timers == nil {
		return
	}
	select {
	case timers.wakeup <- struct{}{}:
	default: // the loop is about to look
	}
}

func (c *scheduler) loop() {
	defer c.shard.engine.background.leave()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		sleep, err := c.startDue()
		if err != nil {
			c.shard.engine.log.Error("read timers", "shard", int(c.shard.number), "error", err)
			sleep, c.reader.stale = retryFirst, true
		}
		timer.Reset(sleep)
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		case <-c.wakeup:
			c.reader.stale = true
		case r := <-c.ended:
			c.done(r)
		}
	}
}

// startDue reads due timers, starts those whose turn it is, and returns the time until the
// next look.
func (c *scheduler) startDue() (time.Duration, error) {
	e := c.shard.engine
	modes, err := c.shard.readOnly()
	if err != nil {
		return 0, err
	}
	if modes.Service() && c.shard.number != storage.DirectoryShard {
		return timersLook, nil // the end of the mode wakes the loop
	}
	v := storage.NewView(e.state, c.shard.number, storage.SystemID)
	now := e.cfg.Clock()
	for len(c.resting) > 0 && !c.resting[0].again.After(now) {
		t := heap.Pop(&c.resting).(*task)
		c.turnsOf(t.name.kind).add(t)
	}
	short := e.shortage(c.shard.number)
	wanted := func(t *tracker.DueTimer) bool {
		if modes.Forbids(t.Workspace) && !tracker.RunsReadOnly(t.Kind) {
			return false
		}
		op := e.timerOps[t.Kind]
		return short == storage.Ample || op != nil && hasSpace(short, op, false) // otherwise it would fail
	}
	sleep, err := c.read(&v, now, wanted)
	if err != nil {
		return 0, err
	}
	if short != storage.Ample { // some kinds were left out
		sleep, c.reader.stale = min(sleep, retryFirst), true
	}
	if err := c.startAll(&v, wanted); err != nil {
		return 0, err
	}
	if len(c.resting) > 0 {
		sleep = min(sleep, c.resting[0].again.Sub(now))
	}
	return max(sleep, 0), nil
}

// turnsOf returns the turns that a kind of timer takes part in.
func (c *scheduler) turnsOf(kind string) *turns {
	op := c.shard.engine.timerOps[kind]
	if op == nil || !op.LongRunning {
		return c.normal
	}
	own := c.lasting[kind]
	if own == nil {
		own = newTurns(lastingTimers)
		c.lasting[kind] = own
	}
	return own
}

// startAll starts the tasks whose turn it is, as many as may run.
func (c *scheduler) startAll(v *storage.View, wanted func(*tracker.DueTimer) bool) error {
	if err := c.startSome(v, c.normal, wanted); err != nil {
		return err
	}
	for _, own := range c.lasting {
		if err := c.startSome(v, own, wanted); err != nil {
			return err
		}
	}
	return nil
}

func (c *scheduler) startSome(v *storage.View, class *turns, wanted func(*tracker.DueTimer) bool) error {
	for t := class.next(); t != nil; t = class.next() {
		timer := t.timer()
		set, err := timer.IsSet(v)
		if err != nil {
			class.ended(t)
			class.add(t)
			return err
		}
		// It may have been moved or cleared since it was read, or may not run any more.
		if !set || !wanted(&timer) || !c.start(t) {
			class.ended(t)
			c.forget(t)
		}
	}
	return nil
}

// start runs a timer's operation on a goroutine of its own; false if the engine is closing.
func (c *scheduler) start(t *task) bool {
	e := c.shard.engine
	if !e.background.enter() {
		return false
	}
	t.tries++
	go func() {
		defer e.background.leave()
		c.ended <- result{t, e.fire(t.name)}
	}()
	return true
}

// forget drops a task.
func (c *scheduler) forget(t *task) {
	delete(c.tasks, t.name)
	id := t.name.workspace
	if c.held[id]--; c.held[id] == 0 {
		delete(c.held, id)
	}
}

// fire runs the operation of a timer.
func (e *Engine) fire(name timerName) error {
	e.stats.timers.Add(1)
	op := e.timerOps[name.kind]
	if op == nil {
		return errors.New("no operation is declared for this kind of timer")
	}
	_, err := e.do(tracker.TimerRequest(name.kind, name.workspace), op, &tracker.TimerIn{Kind: name.kind, Subject: name.subject})
	if err != nil {
		return fmt.Errorf("%s: %w", op.Name, err)
	}
	return nil
}

// done handles the result of a run. A timer that is still set to the same time is run again
// after a pause or, if read-only mode has refused it, which is no failure, after the mode. One
// that a prompt operation has moved, to go on soon, runs again without waiting for a pass: work
// in many steps would take a pass for each.
func (c *scheduler) done(r result) {
	e, t := c.shard.engine, r.task
	c.turnsOf(t.name.kind).ended(t)
	refused := refusedReadOnly(r.err)
	if r.err != nil && !refused && c.ctx.Err() == nil {
		e.stats.timersFailed.Add(1)
		e.log.Warn("timer failed", "kind", t.name.kind, "subject", t.name.subject, "workspace", t.name.workspace.String(), "tries", t.tries, "error", r.err)
	}
	if !t.moved.IsZero() {
		t.due, t.moved, t.tries = t.moved, time.Time{}, 0
		c.turnsOf(t.name.kind).add(t)
		return
	}
	now := e.cfg.Clock()
	timer, v := t.timer(), storage.NewView(e.state, c.shard.number, t.name.workspace)
	due, set, err := timer.SetTo(&v)
	if err == nil && (!set || !due.Equal(t.due)) {
		op := e.timerOps[t.name.kind]
		t.due, t.tries = due, 0
		switch {
		case !set || op == nil || !op.Prompt || due.After(now.Add(timersPace)):
			c.forget(t) // a pass finds it when it is due, if it is set
		case due.After(now):
			c.rest(t, due)
		default:
			c.turnsOf(t.name.kind).add(t)
		}
		return
	}
	if refused && c.waitsForWrites(t) {
		c.forget(t)
		return
	}
	wait := retryMost
	if doublings := t.tries - 1; doublings < 16 {
		wait = min(wait, retryFirst<<doublings)
	}
	c.rest(t, now.Add(wait))
}

// waitsForWrites reports whether a task's timer can't run before a read-only mode has ended. The
// end of the mode begins a pass, which finds the timer.
func (c *scheduler) waitsForWrites(t *task) bool {
	modes, err := c.shard.readOnly()
	return err == nil && modes.Forbids(t.name.workspace) && !tracker.RunsReadOnly(t.name.kind)
}

// rest keeps a task back until a time.
func (c *scheduler) rest(t *task, until time.Time) {
	t.state, t.again = taskResting, until
	heap.Push(&c.resting, t)
}
