package actors

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

func TestCommand_IsRefusedWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	b := setup(t, func(c *Config) { c.Full = full.Load })
	ws := workspaceNumber(1)
	b.mustCount(ws, 1)

	full.Store(true)
	_, err := b.count(ws)
	var told *tracker.Error
	if !errors.As(err, &told) || outcome(err) != "not_applied" || told.RetryAfter < time.Second {
		t.Errorf("a change on a full disk: %v", err)
	}
	if n, err := b.do(ws, readCount, &tracker.None{}); err != nil || n != "1" {
		t.Errorf("read %s, %v", n, err)
	}
	if n := b.engine.Stats().Refused["disk_full"]; n != 1 {
		t.Errorf("%d refusals counted", n)
	}

	full.Store(false)
	b.mustCount(ws, 2)
}

func TestScheduler_WaitsForSpace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		b := setup(t, func(c *Config) { c.Full = full.Load })
		b.withTimers(map[string]*tracker.Op{"alarm": ring(nil)})
		ws := workspaceNumber(1)
		b.alarm(ws, "alarm", time.Now().Add(time.Minute))
		full.Store(true)
		pass(time.Hour)
		synctest.Wait()
		if rung := b.rung(ws); rung != "" {
			t.Errorf("rang at %s on a full disk", rung)
		}
		full.Store(false)
		free := time.Now()
		pass(time.Minute)
		synctest.Wait()
		if rung := b.rung(ws); rung < at(free) || rung > at(free.Add(2*time.Second)) {
			t.Errorf("rang at %s, the disk had space from %s", rung, at(free))
		}
		if s := b.engine.Stats(); s.TimersFailed != 0 {
			t.Errorf("%d timers failed", s.TimersFailed)
		}
	})
}
