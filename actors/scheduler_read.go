package actors

import (
	"container/heap"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Due timers are read in the order of their time, in passes from the beginning to the first
// that is not due. A pass takes in as many timers as there is room for, of each workspace no
// more than would be left free for others, and steps over the rest. Skipped timers
// are read from there on when room comes, so that a long backlog is read about once.
// A change of any timer asks for another pass, which finds what other workspaces have
// due behind the backlog. Passes take a tenth of the time at most.

const (
	// maxTasks bounds the tasks of a shard.
	maxTasks = 8192
	// timersRead is the number of timers read at a time, between which others are started.
	timersRead = 1024
	// timersPace is the least time between two passes, so that frequent commands with
	// timers don't cause as many passes.
	timersPace = 20 * time.Millisecond
	// rowPause is how much longer the time to the next pass is for each timer read.
	rowPause = 10 * time.Microsecond
)

// timerReader is where a scheduler stands in the due timers. It is owned by the loop's
// goroutine.
type timerReader struct {
	stale  bool      // timers may have changed since the last pass began
	next   time.Time // when the first timer that was not due will be; zero: none is set
	resume time.Time // no pass begins before, by the clock of the process

	reading bool   // a pass goes on
	from    []byte // where it does; nil: at the beginning
	rows    int    // it has read
	// skipped is the position of the first timer that the pass stepped over; nil: none.
	skipped []byte
	// low is the number of tasks at which there is room for those stepped over.
	low int
}

// read goes on with a pass, begins one, or makes up for what was stepped over. It returns
// the time until the next time.
func (c *scheduler) read(v *storage.View, now time.Time, wanted func(*tracker.DueTimer) bool) (time.Duration, error) {
	r := &c.reader
	if !r.reading && r.skipped != nil && len(c.tasks) <= r.low {
		if err := c.refill(v, now, wanted); err != nil {
			return 0, err
		}
	}
	if !r.reading && (r.stale || !r.next.IsZero() && !r.next.After(now)) && !time.Now().Before(r.resume) {
		r.reading, r.stale, r.from, r.rows, r.skipped = true, false, nil, 0, nil
	}
	if r.reading {
		last, end, next, err := c.readDue(v, r.from, now, wanted, &r.skipped)
		if err != nil {
			r.reading = false
			return 0, err
		}
		r.from = last
		if !end {
			return 0, nil
		}
		r.reading, r.next = false, next
		r.resume = time.Now().Add(timersPace + time.Duration(r.rows)*rowPause)
		r.low = len(c.tasks) / 2
	}
	sleep := timersLook
	if r.stale {
		sleep = 0
	}
	if !r.next.IsZero() {
		sleep = min(sleep, r.next.Sub(now))
	}
	return max(sleep, min(time.Until(r.resume), timersLook)), nil
}

// refill takes in what the last pass stepped over, from there on.
func (c *scheduler) refill(v *storage.View, now time.Time, wanted func(*tracker.DueTimer) bool) error {
	r := &c.reader
	before := len(c.tasks)
	var skipped []byte
	last, end, _, err := c.readDue(v, r.skipped, now, wanted, &skipped)
	if err != nil {
		return err
	}
	if skipped == nil && !end {
		skipped = last
	}
	r.skipped, r.low = skipped, len(c.tasks)/2
	if len(c.tasks) == before {
		r.skipped, r.stale = nil, true // a pass finds what there is further on
	}
	return nil
}

// readDue reads a number of timers from a position on, and queues those for which there is
// room. It notes the first one that it stepped over in skipped, unless that is set.
// last is where to go on, end is set when all due timers were read, and next is the time
// of the first one that is not due.
func (c *scheduler) readDue(v *storage.View, from []byte, now time.Time, wanted func(*tracker.DueTimer) bool, skipped *[]byte) (last []byte, end bool, next time.Time, err error) {
	e := c.shard.engine
	rows := 0
	end = true
	next, err = tracker.ReadDue(v, from, now, func(d tracker.DueTimer) bool {
		if rows == timersRead {
			last, end = d.Position(), false
			return false
		}
		rows++
		c.reader.rows++
		e.stats.timerRows.Add(1)
		if wanted(&d) && !c.queue(&d) && *skipped == nil {
			*skipped = d.Position()
		}
		return true
	})
	return last, end, next, err
}

// queue makes a task of a timer unless there is one. It reports false if there is no room.
func (c *scheduler) queue(d *tracker.DueTimer) bool {
	name := timerName{d.Workspace, d.Kind, d.Subject}
	if t := c.tasks[name]; t != nil {
		if !t.due.Equal(d.Due) {
			c.moved(t, d.Due)
		}
		return true
	}
	held, free := c.held[d.Workspace], maxTasks-len(c.tasks)
	if free <= 0 || held > 0 && held >= free {
		return false
	}
	t := &task{name: name, due: d.Due}
	c.tasks[name] = t
	c.held[d.Workspace]++
	c.turnsOf(d.Kind).add(t)
	return true
}

// moved notes that the timer of a task was moved, and is due again.
func (c *scheduler) moved(t *task, due time.Time) {
	switch t.state {
	case taskRunning:
		t.moved = due
		return
	case taskResting:
		heap.Remove(&c.resting, t.resting)
		c.turnsOf(t.name.kind).add(t)
	}
	t.due, t.tries = due, 0
}
