package node

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"time"
)

// Stop finishes what is in flight and closes everything, within ctx's deadline.
// A node whose data directory is gone hands over what it leads, and leaves the rest
// as it is. Each step has the time that those before it left: the log names the slow ones.
func (n *Node) Stop(ctx context.Context) error {
	defer watchStop(ctx, n.cfg.Logger)()
	var errs []error
	step := func(name string, do func() error) {
		began := time.Now()
		err := do()
		if took := time.Since(began); took >= slowStep {
			n.cfg.Logger.Info("a step of stopping took long", "step", name, "took", took.Round(time.Millisecond))
		}
		errs = append(errs, err)
	}
	step("the scheduled backup", func() error { n.schedule.stop(ctx); return nil })
	if n.engine != nil {
		// Leaderships move to other nodes while requests are still answered: they are
		// forwarded there, if they don't wait. Without another node, nothing changes.
		if n.api != nil {
			n.api.Leaving()
		}
		step("hand over", func() error {
			if err := n.groups.Leave(ctx); err != nil {
				n.cfg.Logger.Info("not everything was handed over", "error", err)
			}
			return nil
		})
	}
	switch {
	case n.api != nil:
		step("the API", func() error { return n.stopAPI(ctx) })
	case n.http != nil:
		errs = append(errs, n.http.Close())
	}
	step("images for backups", func() error { return n.images.stop(ctx) })
	step("rows of workspaces", func() error { return n.moves.stop(ctx) })
	if n.store != nil {
		if err := n.store.Space().Look(); err != nil {
			// Nothing more can be written, and closing would wait for just that. The process
			// ends next.
			return errors.Join(append(errs, err)...)
		}
	}
	if n.engine != nil {
		step("the engine", func() error { return n.engine.Close(ctx) })
	}
	step("the traces", func() error { n.traces.stop(ctx); return nil })
	if n.groups != nil {
		step("the groups", func() error {
			ctx, cancel := withoutLast(ctx, storeTime)
			defer cancel()
			return n.groups.Close(ctx)
		})
	}
	switch {
	case n.metrics != nil:
		errs = append(errs, n.metrics.Close())
	case n.listen != nil:
		errs = append(errs, n.listen.Close())
	}
	if n.store != nil {
		step("the store", func() error { return n.closeStore(ctx) })
	}
	return errors.Join(errs...)
}

// storeTime is what the steps before leave of the time, for the store to be closed.
const storeTime = time.Second

// withoutLast returns a context that ends some time before ctx does.
func withoutLast(ctx context.Context, last time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-last))
}

// closeStore closes the store, which writes what it has in memory. A disk that takes no more, or a data
// directory that was removed while the node stopped, would hold that up for good. Then the store stays as
// it is until the process ends: all acknowledged writes are in the log on the disk.
func (n *Node) closeStore(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- n.store.Close() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
	}
	if err := n.store.Space().Look(); err != nil {
		return err
	}
	return errors.New("close the store: its disk did not take everything in time")
}

// stopAPI finishes the requests in progress, within half of the time: clients that don't read their
// answers must not keep the rest of the node from closing.
func (n *Node) stopAPI(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		within, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
		ctx = within
	}
	err := n.api.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		n.cfg.Logger.Warn("requests were cut off that took longer than stopping may")
		return nil
	}
	return err
}

const (
	// slowStep is how long a step of stopping may take and not be worth a line.
	slowStep = time.Second
	// maxStacks bounds the stacks written to the log.
	maxStacks = 1 << 20
)

// watchStop writes the stacks of all goroutines to the log when stopping has used
// up seven tenths of its time: what holds it up then is seldom over by itself, and
// leaves no other trace. The function it returns ends the watch.
func watchStop(ctx context.Context, logger *slog.Logger) (end func()) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return func() {}
	}
	began := time.Now()
	timer := time.AfterFunc(deadline.Sub(began)*7/10, func() {
		stacks := make([]byte, maxStacks)
		stacks = stacks[:runtime.Stack(stacks, true)]
		logger.Warn("stopping takes long", "after", time.Since(began).Round(time.Millisecond), "stacks", string(stacks))
	})
	return func() { timer.Stop() }
}
