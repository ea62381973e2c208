package actors

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

// Work in steps, each in the batch after the one before, goes on at once while the time stands still because the
// clock of the owner before was ahead.
func TestScheduler_AtOnceThoughTheClockIsBehind(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{8 * time.Second, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var offset atomic.Int64
				b := setup(t, func(c *Config) {
					c.Clock = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
				})
				const steps = 50
				var runs atomic.Int64
				step := func(tx *tracker.Tx, in *tracker.TimerIn) (tracker.Reply, error) {
					if runs.Add(1) <= steps {
						return tracker.Reply{}, tx.SetTimerAtOnce(in.Kind, in.Subject)
					}
					return tracker.Reply{}, tx.ClearTimer(in.Kind, in.Subject)
				}
				op := tracker.NewCommand[tracker.TimerIn, tracker.None]("Step", "", tracker.Needs{}, step, tracker.Prompt, tracker.RunsWithoutWorkspace)
				b.withTimers(map[string]*tracker.Op{"step": op})
				ids := tracker.NewCommand[tracker.None, tracker.None]("MakeID", "", tracker.Needs{}, func(tx *tracker.Tx, _ *tracker.None) (tracker.Reply, error) {
					_, err := tx.NewID()
					return tracker.Reply{}, err
				}, tracker.RunsWithoutWorkspace)
				offset.Store(int64(ahead))
				if _, err := b.do(workspaceNumber(1), ids, &tracker.None{}); err != nil {
					t.Fatal(err)
				}
				offset.Store(0)
				if _, err := b.do(workspaceNumber(1), op, &tracker.TimerIn{Kind: "step", Subject: "a"}); err != nil {
					t.Fatal(err)
				}
				pass(timersPace + 50*time.Millisecond)
				synctest.Wait()
				if n := runs.Load(); n != steps+1 {
					t.Errorf("%d of %d steps are done", n, steps+1)
				}
			})
		})
	}
}
