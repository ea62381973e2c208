package actors

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// withTimers replaces the engine's kinds of timers by those of the test.
func (b *testEngine) withTimers(ops map[string]*tracker.Op) {
	for s := range storage.Shard(testShards + 1) {
		b.local.lose(b.engine, s) // so that no scheduler reads the table
	}
	synctest.Wait()
	b.engine.timerOps = ops
	b.local.gain(b.t, b.engine)
}

func (b *testEngine) alarm(workspace storage.ID, kind string, at time.Time) {
	b.t.Helper()
	if _, err := b.do(workspace, setAlarm, &alarmIn{kind, at}); err != nil {
		b.t.Fatal(err)
	}
}

// rung returns when the alarm of a workspace rang.
func (b *testEngine) rung(workspace storage.ID) string {
	b.t.Helper()
	body, err := b.do(workspace, readRung, &tracker.None{})
	if err != nil {
		b.t.Fatal(err)
	}
	return body
}

// at formats a time like ring does.
func at(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func TestScheduler_FiresOnTimeAndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.withTimers(map[string]*tracker.Op{"alarm": ring(nil)})
		start := time.Now()
		for n := range 50 {
			b.alarm(workspaceNumber(n), "alarm", start.Add(time.Duration(n)*time.Minute))
		}
		// These are moved to earlier, and to later.
		b.alarm(workspaceNumber(40), "alarm", start.Add(5*time.Minute))
		b.alarm(workspaceNumber(2), "alarm", start.Add(30*time.Minute))
		pass(2 * time.Hour)
		synctest.Wait()
		for n := range 50 {
			want := start.Add(time.Duration(n) * time.Minute)
			switch n {
			case 40:
				want = start.Add(5 * time.Minute)
			case 2:
				want = start.Add(30 * time.Minute)
			}
			got := b.rung(workspaceNumber(n))
			if strings.Contains(got, " ") || got < at(want) || got > at(want.Add(100*time.Millisecond)) {
				t.Errorf("workspace %d rang at %q, want %s", n, got, at(want))
			}
		}
		if n := b.engine.Stats().Timers; n != 50 {
			t.Errorf("%d operations run for 50 timers", n)
		}
	})
}

func TestScheduler_FiresAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ops := map[string]*tracker.Op{"alarm": ring(nil)}
		b.withTimers(ops)
		b.alarm(workspaceNumber(1), "alarm", time.Now().Add(time.Hour))
		b.alarm(workspaceNumber(2), "alarm", time.Now().Add(3*time.Hour))
		due := time.Now().Add(3 * time.Hour)
		if err := b.engine.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Hour)
		b.start()
		b.withTimers(ops)
		started := time.Now()
		pass(2 * time.Hour)
		synctest.Wait()
		if got := b.rung(workspaceNumber(1)); got != at(started) {
			t.Errorf("overdue: rang at %q, want %s", got, at(started))
		}
		if got := b.rung(workspaceNumber(2)); got != at(due) {
			t.Errorf("rang at %q, want %s", got, at(due))
		}
	})
}

func TestScheduler_TriesAgainWhatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		var tries atomic.Int64
		b.withTimers(map[string]*tracker.Op{
			"alarm":  ring(func() error { return failTimes(&tries, 4) }),
			"silent": tracker.NewCommand[tracker.TimerIn, tracker.None]("Silent", "", tracker.Needs{}, silent, tracker.RunsWithoutWorkspace),
		})
		start := time.Now()
		b.alarm(workspaceNumber(1), "alarm", start.Add(time.Second))
		// A timer that stays set after a success, and one of an unknown kind, must
		// neither run all the time nor delay others.
		b.alarm(workspaceNumber(2), "silent", start)
		b.alarm(workspaceNumber(3), "unheard of", start)
		pass(time.Minute)
		synctest.Wait()
		// 1 s, and 1, 2, 4 and 8 s after each failure.
		got, want := b.rung(workspaceNumber(1)), start.Add(16*time.Second)
		if got < at(want) || got > at(want.Add(time.Second)) {
			t.Errorf("rang at %q, want about %s", got, at(want))
		}
		if n := tries.Load(); n != 5 {
			t.Errorf("%d tries", n)
		}
		if n := b.engine.Stats().Timers; n > 5+2*7 {
			t.Errorf("%d runs in a minute", n)
		}
		if !strings.Contains(b.log.String(), "unheard of") {
			t.Error("the failure was not logged")
		}
	})
}

func silent(*tracker.Tx, *tracker.TimerIn) (tracker.Reply, error) { return tracker.Reply{}, nil }

func failTimes(tries *atomic.Int64, times int64) error {
	if n := tries.Add(1); n <= times {
		return fmt.Errorf("try %d", n)
	}
	return nil
}

// Many failing timers must not delay the others.
func TestScheduler_FailuresDontStarveOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		broken := ring(func() error { return errors.New("always") })
		b.withTimers(map[string]*tracker.Op{"alarm": ring(nil), "broken": broken})
		start := time.Now()
		for n := range 4 * testShards * 64 {
			b.alarm(workspaceNumber(n), "broken", start)
		}
		due := start.Add(10 * time.Second)
		b.alarm(workspaceNumber(1), "alarm", due)
		pass(20 * time.Second)
		synctest.Wait()
		if got := b.rung(workspaceNumber(1)); got < at(due) || got > at(due.Add(2*time.Second)) {
			t.Errorf("rang at %q, want %s", got, at(due))
		}
	})
}

func TestScheduler_StopsWithTheOwnership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.withTimers(map[string]*tracker.Op{"alarm": ring(nil)})
		ws := workspaceNumber(1)
		b.alarm(ws, "alarm", time.Now().Add(time.Minute))
		b.local.lose(b.engine, storage.ShardOf(ws, testShards))
		pass(time.Hour)
		synctest.Wait()
		if n := b.engine.Stats().Timers; n != 0 {
			t.Errorf("%d timers run without owning the shard", n)
		}
		b.local.gain(t, b.engine)
		now := time.Now()
		synctest.Wait()
		if got := b.rung(ws); got != at(now) {
			t.Errorf("rang at %q, want %s", got, at(now))
		}
	})
}

func TestScheduler_RunsFewAtATimeAndNoneTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		b := setup(t, func(c *Config) { c.Limits.Timers = most })
		leave := make(chan struct{})
		var inside atomic.Int64
		b.withTimers(map[string]*tracker.Op{"alarm": ring(func() error {
			inside.Add(1)
			<-leave
			return nil
		})})
		var same []storage.ID // workspaces of one shard
		for n := 0; len(same) < 2*most; n++ {
			if id := workspaceNumber(n); storage.ShardOf(id, testShards) == 1 {
				same = append(same, id)
			}
		}
		start := time.Now()
		b.alarm(same[0], "alarm", start.Add(time.Second))
		pass(2 * time.Second)
		b.engine.shards[1].wake() // it looks again while the timer runs
		pass(time.Second)
		if n := inside.Load(); n != 1 {
			t.Errorf("one timer is being run %d times", n)
		}
		for _, id := range same[1:] {
			b.alarm(id, "alarm", start.Add(time.Second))
		}
		pass(time.Second)
		if n := inside.Load(); n != most {
			t.Errorf("%d operations run at once, want %d", n, most)
		}
		close(leave)
		pass(time.Second)
		synctest.Wait()
		for _, id := range same {
			if got := b.rung(id); got == "" || strings.Contains(got, " ") {
				t.Errorf("rang at %q", got)
			}
		}
		if n := inside.Load(); n != 2*most {
			t.Errorf("%d operations run for %d timers", n, 2*most)
		}
	})
}
