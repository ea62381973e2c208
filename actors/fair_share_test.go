package actors

import (
	"sync"
	"testing"
	"testing/synctest"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

func TestFairShare(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		own  int
		free int64
		want int
	}{{1024, 4096, 1024}, {1024, 1024, 1024}, {1024, 700, 700}, {1024, 0, leastShare}, {1024, -5, leastShare}, {3, 4096, 3}, {3, 0, 3}} {
		if got := fairShare(row.own, row.free); got != row.want {
			t.Errorf("of %d with %d free: %d, want %d", row.own, row.free, got, row.want)
		}
	}
}

// neighbors are workspaces of one shard.
func neighbors(n int) []storage.ID {
	var same []storage.ID
	for i := 1; len(same) < n; i++ {
		if id := workspaceNumber(i); len(same) == 0 || storage.ShardOf(id, testShards) == storage.ShardOf(same[0], testShards) {
			same = append(same, id)
		}
	}
	return same
}

// TestAdmit_FloodsLeaveRoom has workspaces send as many commands as they are let, while none
// is answered: whatever they do, another workspace's command is taken.
func TestAdmit_FloodsLeaveRoom(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		limits Limits
	}{
		{"shard", Limits{WorkspaceCommands: 100, ShardCommands: 200, Commands: 10_000}},
		{"node", Limits{WorkspaceCommands: 100, ShardCommands: 10_000, Commands: 200}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, func(c *Config) { c.Limits = row.limits })
				b.local.setFate(func(int, storage.Shard) fate { return waits })
				spaces := neighbors(5)
				var all sync.WaitGroup
				for _, flooding := range spaces[:4] {
					for range 150 {
						all.Go(func() {
							_, err := b.count(flooding)
							if err != nil {
								wantOutcome(t, err, "not_applied")
							}
						})
					}
					synctest.Wait()
				}
				held := b.engine.Stats().UnansweredCommands
				if held < 100 || held >= 200 {
					t.Errorf("%d of 200 places are taken", held)
				}
				all.Go(func() {
					if _, err := b.count(spaces[4]); err != nil {
						t.Errorf("the quiet workspace: %v", err)
					}
				})
				synctest.Wait()
				b.local.setFate(func(int, storage.Shard) fate { return applies })
				b.local.release()
				all.Wait()
			})
		})
	}
}

func TestWaiters_FloodsLeaveRoom(t *testing.T) {
	t.Parallel()
	w := &waiters{limits: &Limits{WorkspaceWaiting: 100, Waiting: 200}}
	spaces := neighbors(5)
	var joined []*waiter
	for _, flooding := range spaces[:4] {
		for range 150 {
			if r := w.join(flooding, tracker.Topic{}); r != nil {
				joined = append(joined, r)
			}
		}
	}
	if n := len(joined); n < 100 || n >= 200 {
		t.Errorf("%d of 200 places are taken", n)
	}
	r := w.join(spaces[4], tracker.Topic{})
	if r == nil {
		t.Fatal("the quiet workspace can't wait")
	}
	for _, r := range append(joined, r) {
		w.leave(r, false)
	}
	if n := w.count.Load(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
