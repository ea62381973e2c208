package actors

import (
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
// in its own batch, so it takes effect once however often it is run.
type scheduler struct {
	shard  *shard
	ctx    context.Context
	cancel context.CancelFunc
	wakeup chan struct{}
	ended  chan result // with room for all workers, so that they never block

	// Owned by the loop's goroutine.
	tasks   map[timerName]*task
	running int
	lasting map[string]int // number of running timers of each lasting kind, which running does not count
}

type timerName struct {
	workspace     storage.ID
	kind, subject string
}

// task is a timer that is running, or has run and is still set.
type task struct {
	name    timerName
	due     time.Time
	running bool
	tries   int
	again   time.Time // time of the next try
}

type result struct {
	task *task
	err  error
}

const (
	// timersRead is the number of due timers read at a time in addition to the known
	// ones.
	timersRead = 64
	// timersPace is the least time between two looks, so that frequent commands with
	// timers don't cause as many looks.
	timersPace = 20 * time.Millisecond
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
		tasks:  map[timerName]*task{}, lasting: map[string]int{},
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
		// A change within this time waits for its end.
		pace := time.Now().Add(timersPace)
		sleep, err := c.look()
		if err != nil {
			c.shard.engine.log.Error("read timers", "shard", int(c.shard.number), "error", err)
			sleep = retryFirst
		}
		timer.Reset(sleep)
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
			continue
		case <-c.wakeup:
		case r := <-c.ended:
			c.done(r)
		}
		timer.Reset(time.Until(pace))
		for waiting := true; waiting; {
			select {
			case <-c.ctx.Done():
				return
			case r := <-c.ended:
				c.done(r)
			case <-timer.C:
				waiting = false
			}
		}
	}
}

// look starts due timers and returns the time until the next look.
func (c *scheduler) look() (time.Duration, error) {
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
	short := e.cfg.Shortage()
	due, next, err := tracker.ListDue(&v, now, len(c.tasks)+timersRead, func(workspace storage.ID, kind string) bool {
		if modes.Forbids(workspace) && !tracker.RunsReadOnly(kind) {
			return false
		}
		op := e.timerOps[kind]
		return short == storage.Ample || op != nil && hasSpace(short, op, false) // otherwise it would fail
	})
	if err != nil {
		return 0, err
	}
	sleep := timersLook
	if short != storage.Ample {
		sleep = retryFirst
	}
	if len(due) == 0 && len(c.tasks) == 0 && next.IsZero() {
		return sleep, nil
	}
	set := make(map[timerName]struct{}, len(due))
	if !next.IsZero() {
		sleep = min(sleep, next.Sub(now))
	}
	for _, d := range due {
		name := timerName{d.Workspace, d.Kind, d.Subject}
		set[name] = struct{}{}
		t := c.tasks[name]
		switch {
		case t == nil:
			t = &task{name: name, due: d.Due}
			c.tasks[name] = t
		case t.running:
			continue
		case !t.due.Equal(d.Due): // it was moved, and is due again
			t.due, t.tries, t.again = d.Due, 0, time.Time{}
		}
		switch {
		case t.again.After(now):
			sleep = min(sleep, t.again.Sub(now))
		case c.free(t.name.kind): // otherwise the end of another one wakes the loop
			c.start(t)
		}
	}
	for name, t := range c.tasks {
		if _, still := set[name]; !still && !t.running {
			delete(c.tasks, name)
		}
	}
	return max(sleep, timersPace), nil
}

// isLasting reports whether the operation of a kind of timer may take long.
func (c *scheduler) isLasting(kind string) bool {
	op := c.shard.engine.timerOps[kind]
	return op != nil && op.LongRunning
}

// free reports whether another timer of a kind may run.
func (c *scheduler) free(kind string) bool {
	if c.isLasting(kind) {
		return c.lasting[kind] < lastingTimers
	}
	return c.running < c.shard.engine.cfg.Limits.Timers
}

// count changes the number of running timers.
func (c *scheduler) count(kind string, by int) {
	if c.isLasting(kind) {
		c.lasting[kind] += by
	} else {
		c.running += by
	}
}

// start runs a timer's operation on a goroutine of its own.
func (c *scheduler) start(t *task) {
	e := c.shard.engine
	if !e.background.enter() {
		return
	}
	t.running = true
	t.tries++
	c.count(t.name.kind, 1)
	go func() {
		defer e.background.leave()
		c.ended <- result{t, e.fire(t.name)}
	}()
}

// fire runs the operation of a timer.
func (e *Engine) fire(name timerName) error {
	e.stats.timers.Add(1)
	op := e.timerOps[name.kind]
	if op == nil {
		return errors.New("no operation is declared for this kind of timer")
	}
	_, err := e.do(tracker.ServiceRequest("timer-"+name.kind, name.workspace), op, &tracker.TimerIn{Kind: name.kind, Subject: name.subject})
	if err != nil {
		return fmt.Errorf("%s: %w", op.Name, err)
	}
	return nil
}

// done handles the result of a run. If the timer is still set at the next look, it is
// run again after a pause.
func (c *scheduler) done(r result) {
	t := r.task
	c.count(t.name.kind, -1)
	t.running = false
	wait := retryMost
	if doublings := t.tries - 1; doublings < 16 {
		wait = min(wait, retryFirst<<doublings)
	}
	t.again = c.shard.engine.cfg.Clock().Add(wait)
	if r.err != nil && c.ctx.Err() == nil {
		c.shard.engine.stats.timersFailed.Add(1)
		c.shard.engine.log.Warn("timer failed", "kind", t.name.kind, "subject", t.name.subject, "workspace", t.name.workspace.String(), "tries", t.tries, "error", r.err)
	}
}
