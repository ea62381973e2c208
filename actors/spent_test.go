package actors

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/storage"
)

// TestSpent_OfCommands holds a batch back for two seconds: its command spends them in the
// commit, and one that came meanwhile in the queue.
func TestSpent_OfCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.local.setFate(func(n int, _ storage.Shard) fate {
			if n == 1 {
				return waits
			}
			return applies
		})
		first, second, unmeasured := request(workspaceNumber(1)), request(workspaceNumber(1)), request(workspaceNumber(1))
		first.Spent.On, second.Spent.On = true, true
		var all sync.WaitGroup
		send := func() {
			all.Go(func() {
				if _, err := b.engine.Do(first, countUp, &countIn{}); err != nil {
					t.Error(err)
				}
			})
			b.local.waitHeld(1)
		}
		send()
		all.Go(func() {
			if _, err := b.engine.Do(second, countUp, &countIn{}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		pass(2 * time.Second)
		b.local.release()
		all.Wait()
		if got := first.Spent; got.Commit < 2*time.Second || got.Queue != 0 {
			t.Errorf("the first spent %+v", got)
		}
		if got := second.Spent; got.Queue < 2*time.Second || got.Commit >= 2*time.Second {
			t.Errorf("the second spent %+v", got)
		}
		if _, err := b.engine.Do(unmeasured, countUp, &countIn{}); err != nil || unmeasured.Spent.Queue+unmeasured.Spent.Engine+unmeasured.Spent.Commit != 0 {
			t.Errorf("%v, spent %+v", err, unmeasured.Spent)
		}
	})
}
