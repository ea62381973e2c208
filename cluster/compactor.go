package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// compactor keeps the logs short. When the log of one shard, or all logs together, have grown past
// a bound since the last snapshot, it flushes the state, records a snapshot and truncates the logs.
// A restart reads at most that much log.
type compactor struct {
	tuning *tuning
	logger *slog.Logger
	groups func() []*group // those that run
	// compactLog gives back the disk space of truncated entries.
	compactLog func(context.Context) error

	total atomic.Int64  // bytes of log since the last snapshots, all shards
	wake  chan struct{} // capacity 1
	// ctx ends when the compactor stops.
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}

	reclaimNow atomic.Bool // disk space is short: truncate every log

	snapshots sync.WaitGroup // those under way, also of earlier rounds
	failed    atomic.Bool    // one has failed since the last round
}

const (
	// compactRetry is the pause after a failure.
	compactRetry = 10 * time.Second
	// compactLook is how often a round looks whether its snapshots get on.
	compactLook = time.Second
)

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

// reclaim truncates every log and gives its space back. It does not block.
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

// compact makes snapshots of the groups with the longest logs, at the same time, so that they share
// a flush. It returns false if one failed, in this round or after an earlier one left it.
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
	var begun []*group
	ended := make(chan struct{}, len(groups))
	for _, g := range groups {
		pending := g.machine.pending.Load()
		kept := g.snapshots.Sending() || g.holdsLog() && !short
		if g.failed.Load() != nil || pending < least || kept && pending < c.tuning.sendingBytes {
			continue
		}
		if !g.truncating.CompareAndSwap(false, true) { // an earlier round has left it
			continue
		}
		begun = append(begun, g)
		c.snapshots.Go(func() {
			if err := g.snapshot(short); err != nil && !errors.Is(err, raft.ErrRaftShutdown) {
				c.failed.Store(true)
				g.logger.Warn("could not truncate a log", "error", err)
			}
			g.truncating.Store(false)
			ended <- struct{}{}
		})
	}
	await(begun, ended)
	if short {
		if err := c.compactLog(c.ctx); err != nil && c.ctx.Err() == nil {
			c.failed.Store(true)
			c.logger.Warn("could not give back the logs' disk space", "error", err)
		}
	}
	return !c.failed.Swap(false)
}

// await returns when the snapshots of a round have ended. It leaves those whose Raft does nothing for
// them: a snapshot needs Raft's own goroutine, which may read the stream of a received snapshot for
// minutes. The logs of the other groups would grow meanwhile.
func await(begun []*group, ended <-chan struct{}) {
	look := time.NewTicker(compactLook)
	defer look.Stop()
	for left := len(begun); left > 0; {
		select {
		case <-ended:
			left--
		case <-look.C:
			getsOn := func(g *group) bool { return g.truncating.Load() && g.tracking.probe() }
			if !slices.ContainsFunc(begun, getsOn) {
				return
			}
		}
	}
}

// stop ends the compactor and waits for the round under way.
func (c *compactor) stop(ctx context.Context) error {
	c.cancel()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitSnapshots waits for the snapshots that rounds have left. They end with their groups.
func (c *compactor) awaitSnapshots(ctx context.Context) error {
	return within(ctx, func() error { c.snapshots.Wait(); return nil })
}
