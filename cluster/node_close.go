package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Close stops serving, finishes what is in flight, transfers its leaderships to other voters or
// writes Release to the logs, and flushes the state, so that the next start has almost nothing to
// replay. If ctx ends first, the remaining steps are skipped: no acknowledged write is lost, but
// the next start takes longer. The store may be closed after Close.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Do(func() { n.closed = n.close(ctx) })
	return n.closed
}

// leaveTimeout bounds how long a closing node waits for its requests to other nodes.
const leaveTimeout = 2 * time.Second

func (n *Node) close(ctx context.Context) error {
	var errs []error
	step := func(name string, ctx context.Context, do func() error) {
		errs = append(errs, n.timed(name, func() error { return within(ctx, do) }))
	}
	if n.peering != nil && n.opened {
		// Requests to other nodes may still be under way. Stopping the groups must not wait for
		// them.
		soon, cancel := context.WithTimeout(ctx, leaveTimeout)
		if err := within(soon, func() error { n.peering.stopWork(); return nil }); err != nil {
			n.logger.Info("requests to other nodes are still under way", "error", err)
		}
		cancel()
	}
	if n.started {
		errs = append(errs, n.stopGroups(ctx))
		if ctx.Err() == nil { // otherwise the store may be closed during the flush
			step("flush the state", ctx, n.flusher.flush)
		}
	}
	if n.peering != nil {
		step("close the links", ctx, n.peering.close)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the node: %w", err)
	}
	return nil
}

// slowStep is the duration from which a step of closing is logged.
const slowStep = time.Second

// timed runs a step of closing, logs it if it was slow, and adds the step's name to its error.
func (n *Node) timed(name string, do func() error) error {
	began := time.Now()
	err := do()
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if took := time.Since(began); took >= slowStep {
		n.logger.Info("a step of closing took long", "step", name, "took", took.Round(time.Millisecond))
	}
	return err
}

// stopGroups gives up the leaderships of this node and stops its groups.
func (n *Node) stopGroups(ctx context.Context) error {
	n.hosting.Lock()
	n.shut = true
	n.hosting.Unlock()
	if n.watchdog != nil {
		n.watchdog.stop()
	}
	groups := n.hosted()
	errs := make([]error, len(groups)+1)
	errs[0] = n.timed("stop the compactor", func() error { return n.compactor.stop(ctx) })
	var stops sync.WaitGroup
	for i, g := range groups {
		stops.Go(func() {
			errs[i+1] = n.timed(fmt.Sprintf("stop shard %d", g.shard), func() error { return g.stop(ctx) })
		})
	}
	stops.Wait()
	errs = append(errs, n.timed("wait for the last snapshots", func() error { return n.compactor.awaitSnapshots(ctx) }))
	if n.watchdog != nil {
		errs = append(errs, n.timed("wait for the leader watchdog", func() error { return n.watchdog.awaitSteps(ctx) }))
	}
	return errors.Join(errs...)
}
