package actors

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

type alarmsIn struct {
	Kind    string
	At      time.Time
	From, N int
}

// setAlarms sets many timers of a workspace.
var setAlarms = tracker.NewCommand[alarmsIn, tracker.None]("SetAlarms", "", tracker.Needs{}, func(tx *tracker.Tx, in *alarmsIn) (tracker.Reply, error) {
	for n := in.From; n < in.From+in.N; n++ {
		if err := tx.SetTimer(in.Kind, fmt.Sprintf("bell %06d", n), in.At); err != nil {
			return tracker.Reply{}, err
		}
	}
	return tracker.Reply{}, nil
}, tracker.RunsWithoutWorkspace)

// toll returns a timer's operation that counts its runs and clears the timer.
func toll(runs *atomic.Int64) *tracker.Op {
	return tracker.NewCommand[tracker.TimerIn, tracker.None]("Toll", "", tracker.Needs{}, func(tx *tracker.Tx, in *tracker.TimerIn) (tracker.Reply, error) {
		runs.Add(1)
		return tracker.Reply{}, tx.ClearTimer(in.Kind, in.Subject)
	}, tracker.RunsWithoutWorkspace)
}

// TestScheduler_BacklogOfANeighbor has a workspace with thousands of due timers beside one
// with a single timer, which is due behind all of them. The clock is the bubble's: what
// passes on it are the scheduler's own pauses.
func TestScheduler_BacklogOfANeighbor(t *testing.T) {
	t.Parallel()
	for _, backlog := range []int{100, 2000, maxTasks + 3000} {
		t.Run(fmt.Sprint(backlog), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && backlog > maxTasks {
				t.Skip("a backlog of this size takes seconds; make full has it")
			}
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				var runs atomic.Int64
				b.withTimers(map[string]*tracker.Op{"toll": toll(&runs), "alarm": ring(nil)})
				spaces := neighbors(2)
				start := time.Now()
				due := start.Add(time.Minute)
				for n := 0; n < backlog; n += 500 {
					if _, err := b.do(spaces[0], setAlarms, &alarmsIn{Kind: "toll", At: due, From: n, N: min(500, backlog-n)}); err != nil {
						t.Fatal(err)
					}
				}
				b.alarm(spaces[1], "alarm", due.Add(time.Millisecond))
				pass(time.Minute + 500*time.Millisecond)
				if got := b.rung(spaces[1]); got == "" || got > at(due.Add(300*time.Millisecond)) {
					t.Errorf("the neighbor's alarm rang at %q, and was due at %s", got, at(due))
				}
				pass(time.Minute)
				synctest.Wait()
				if n := runs.Load(); n != int64(backlog) {
					t.Errorf("%d runs of %d timers", n, backlog)
				}
				if rows := b.engine.Stats().TimerRows; rows > 10*uint64(backlog)+1000 {
					t.Errorf("%d entries read for %d timers", rows, backlog)
				}
			})
		})
	}
}

// A timer that its own operation moves to a time that comes soon runs again, also if that was
// seen while it ran. That of a prompt operation doesn't wait for another pass.
func TestScheduler_MovedWhileItRuns(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, least time.Duration, options []tracker.Option) (soon int64) {
		b := setup(t)
		var runs atomic.Int64
		again := tracker.NewCommand[tracker.TimerIn, tracker.None]("Again", "", tracker.Needs{}, func(tx *tracker.Tx, in *tracker.TimerIn) (tracker.Reply, error) {
			if n := runs.Add(1); n < 50 {
				return tracker.Reply{}, tx.SetTimer(in.Kind, in.Subject, tx.Now().Add(least+time.Duration(n%3)*time.Millisecond))
			}
			return tracker.Reply{}, tx.ClearTimer(in.Kind, in.Subject)
		}, append(options, tracker.RunsWithoutWorkspace)...)
		b.withTimers(map[string]*tracker.Op{"again": again})
		b.alarm(workspaceNumber(1), "again", time.Now())
		pass(timersPace + 150*time.Millisecond)
		synctest.Wait()
		soon = runs.Load()
		pass(30 * time.Second)
		synctest.Wait()
		if n, timers := runs.Load(), b.engine.Stats().Timers; n != 50 || timers != 50 {
			t.Errorf("%d runs of %d timers, want 50", n, timers)
		}
		return soon
	}
	for _, of := range []struct {
		name        string
		moved       time.Duration // at least
		options     []tracker.Option
		least, most int64
	}{
		{"usual", 0, nil, 1, 10},
		{"prompt", time.Millisecond, []tracker.Option{tracker.Prompt}, 50, 50},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if soon := run(t, of.moved, of.options); soon < of.least || soon > of.most {
					t.Errorf("%d runs in the first moments, want %d to %d", soon, of.least, of.most)
				}
			})
		})
	}
}

// Of the timers that run at once a workspace has a part, however many it has due.
func TestTurns_Shares(t *testing.T) {
	t.Parallel()
	c := newTurns(16)
	spaces := neighbors(3)
	add := func(space, n int) {
		for i := range n {
			c.add(&task{name: timerName{workspace: spaces[space], kind: "k", subject: fmt.Sprint(i)}})
		}
	}
	running := map[int]int{}
	take := func() (taken []*task) {
		for t := c.next(); t != nil; t = c.next() {
			for i, id := range spaces {
				if t.name.workspace == id {
					running[i]++
				}
			}
			taken = append(taken, t)
		}
		return taken
	}
	add(0, 100)
	first := take()
	if len(first) != 8 {
		t.Errorf("one workspace alone runs %d of 16", len(first))
	}
	add(1, 100)
	add(2, 1)
	take()
	if running[1] < 3 || running[2] != 1 || c.running >= 16 {
		t.Errorf("beside it others run %v", running)
	}
	for _, one := range first {
		c.ended(one)
	}
	running = map[int]int{}
	take()
	if running[0] == 0 || running[1] == 0 {
		t.Errorf("afterwards run %v", running)
	}
}
