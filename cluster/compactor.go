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
	// compactLog gives back the space of what was truncated.
	compactLog func(context.Context) error

	total atomic.Int64  // bytes of log since the last snapshots, all shards
	wake  chan struct{} // capacity 1
	// ctx ends with the compactor.
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}

	reclaimNow atomic.Bool // of space: truncate what there is
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

// reclaim has every log truncated and its space given back. It does not block.
func (c *compactor) reclaim() {
	c.reclaimNow.Store(true)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *compactor) run() {
	defer close(c.ended)
	for {
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
		if c.compact() {
			continue
		}
		select {
		case <-time.After(compactRetry):
		case <-c.ctx.Done():
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
	short := c.reclaimNow.Swap(false)
	if c.total.Load() >= c.tuning.totalBytes {
		least = min(least, c.tuning.totalBytes/int64(2*len(groups)))
	}
	if short {
		least = 1
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
	if short {
		if err := c.compactLog(c.ctx); err != nil && c.ctx.Err() == nil {
			failed.Store(true)
			c.logger.Warn("space of the logs could not be given back", "error", err)
		}
	}
	return !failed.Load()
}

// stop stops the compactor and waits for the snapshots it is making.
func (c *compactor) stop(ctx context.Context) error {
	c.cancel()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
