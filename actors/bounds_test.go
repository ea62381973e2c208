package actors

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

func TestDo_RefusesWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	// Two workspaces of one shard, and one of another.
	var same [2]storage.ID
	var other storage.ID
	same[0] = workspaceNumber(1)
	for n := 2; same[1] == (storage.ID{}) || other == (storage.ID{}); n++ {
		if id := workspaceNumber(n); storage.ShardOf(id, testShards) == storage.ShardOf(same[0], testShards) {
			same[1] = id
		} else {
			other = id
		}
	}
	for _, row := range []struct {
		name    string
		limits  Limits
		reason  string
		also    storage.ID // refused, too
		refused bool
	}{
		{"workspace", Limits{WorkspaceCommands: 3}, "workspace_full", same[1], false},
		{"shard", Limits{ShardCommands: 3}, "shard_full", same[1], true},
		{"shard, another", Limits{ShardCommands: 3}, "shard_full", other, false},
		{"engine", Limits{Commands: 3}, "node_full", other, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, func(c *Config) { c.Limits = row.limits })
				b.local.setFate(func(n int, _ storage.Shard) fate {
					if n == 1 {
						return waits
					}
					return applies
				})
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						if _, err := b.count(same[0]); err != nil {
							t.Error(err)
						}
					})
				}
				b.local.waitHeld(1)
				synctest.Wait()
				_, err := b.count(same[0])
				wantOutcome(t, err, "not_applied")
				var e *tracker.Error
				if errors.As(err, &e); e.RetryAfter <= 0 {
					t.Error("no RetryAfter")
				}
				if n := b.engine.Stats().Refused[row.reason]; n != 1 {
					t.Errorf("refused for %s: %d", row.reason, n)
				}
				if _, err := b.count(row.also); (outcome(err) == "not_applied") != row.refused {
					t.Errorf("the other workspace: %v", err)
				}
				b.local.release()
				all.Wait()
				b.mustCount(same[0], 4) // there is room again
				if n := b.engine.Stats().UnansweredCommands; n != 0 {
					t.Errorf("%d commands unanswered", n)
				}
			})
		})
	}
}

func TestDo_BoundsActiveWorkspaces(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits.ActiveActors = 8 })
	refused := 0
	for n := range 200 {
		if _, err := b.count(workspaceNumber(n)); err != nil {
			wantOutcome(t, err, "not_applied")
			refused++
		}
		if active := b.engine.Stats().ActiveActors; active > 8 {
			t.Fatalf("%d actors", active)
		}
	}
	if refused > 150 {
		t.Errorf("%d of 200 refused: the sweeper makes no room", refused)
	}
}
