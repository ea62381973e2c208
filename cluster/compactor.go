package cluster

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// compactor keeps the logs short: when a shard's log, or all together, have grown
// past their bounds since the last snapshot, it has the state flushed, that
// recorded, and the logs truncated. A restart reads at most that much.
type compactor struct {
	tuning *tuning
	logger *slog.Logger
	groups func() []*group

	total atomic.Int64  // bytes of log since the last snapshots, all shards
	wake  chan struct{} // capacity 1
	quit  chan struct{}
	ended chan struct{}
}

// compactRetry is how long after a failure nothing is tried.
const compactRetry = 10 * time.Second

func (c *compactor) grown(added, sum int64) {
	if total := c.total.Add(added); sum < c.tuning.snapshotBytes && total < c.tuning.totalBytes {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *compactor) shrunk(covered int64) { c.total.Add(-covered) }

func (c *compactor) run() {
	defer close(c.ended)
	for {
		select {
		case <-c.wake:
		case <-c.quit:
			return
		}
		if c.compact() {
			continue
		}
		select {
		case <-time.After(compactRetry):
		case <-c.quit:
			return
		}
	}
}

// compact snapshots the groups that hold the most, at once, so that they share a
// flush. False when one failed.
func (c *compactor) compact() bool {
	least := c.tuning.snapshotBytes
	groups := c.groups()
	if len(groups) == 0 {
		return true
	}
	if c.total.Load() >= c.tuning.totalBytes {
		least = min(least, c.tuning.totalBytes/int64(2*len(groups)))
	}
	var (
		snapshots sync.WaitGroup
		failed    atomic.Bool
	)
	for _, g := range groups {
		pending := g.machine.pending.Load()
		if g.failed.Load() != nil || pending < least || g.snapshots.sending() && pending < c.tuning.sendingBytes {
			continue
		}
		snapshots.Go(func() {
			if err := g.snapshot(); err != nil {
				failed.Store(true)
				g.logger.Warn("a log could not be truncated", "error", err)
			}
		})
	}
	snapshots.Wait()
	return !failed.Load()
}

// end stops the compactor and waits for the snapshots it is making.
func (c *compactor) end(ctx context.Context) error {
	close(c.quit)
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
