package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// FailoverConfig is the configuration of RunFailover.
type FailoverConfig struct {
	// Nodes of the cluster; all but one of them run at any time.
	Nodes int
	// Kills of each series.
	Kills int
	// Workspaces, each with one client that creates an issue every Pause.
	Workspaces int
	Pause      time.Duration
	Shards     int
	// Dir holds the data of all nodes, and is left empty.
	Dir string
	// Version of this program, for the report.
	Version string
	// StartCluster starts nodes with empty data in processes of their own.
	StartCluster func(ctx context.Context, dir string, nodes, shards int) (*Cluster, error)
}

func (c *FailoverConfig) check() error {
	switch {
	case c.Nodes < 3 || c.Nodes > maxScaleNodes:
		return fmt.Errorf("bench failover: nodes: %d is not from 3 to %d", c.Nodes, maxScaleNodes)
	case c.Kills < 1 || c.Kills > 1000:
		return fmt.Errorf("bench failover: kills: %d is not from 1 to 1000", c.Kills)
	case c.Workspaces < 1 || c.Workspaces > 1000:
		return fmt.Errorf("bench failover: workspaces: %d is not from 1 to 1000", c.Workspaces)
	case c.Pause < time.Millisecond || c.Pause > time.Second:
		return fmt.Errorf("bench failover: pause: %s is not from 1ms to 1s", c.Pause)
	}
	return nil
}

const (
	// failoverTarget is how long no workspace should be without an acknowledged write.
	failoverTarget = 2 * time.Second
	// returnTarget is that where the node before has only just returned.
	returnTarget = 3 * time.Second
	// watchFailover is how long the clients are watched after a kill, at least.
	watchFailover = 3 * time.Second
	// failoverWithin bounds the wait for the clients' next acknowledged writes.
	failoverWithin = time.Minute
)

// RunFailover kills the nodes of a cluster in turn, by SIGKILL, and measures for how long each
// workspace had no acknowledged write: first with all replicas in place before each kill, and then
// with a kill as soon as the node before is ready again.
func RunFailover(ctx context.Context, cfg FailoverConfig, out io.Writer) (report Report, err error) {
	if err := cfg.check(); err != nil {
		return Report{}, err
	}
	report = Report{Started: time.Now().UTC().Truncate(time.Second), Version: cfg.Version, Machine: machine(), Workspaces: cfg.Workspaces, Text: textStatistics(1)}
	_, _ = fmt.Fprintf(out, "%s\n%s\n", report.source(), report.Text)
	c, err := cfg.StartCluster(ctx, cfg.Dir, cfg.Nodes, cfg.Shards)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if _, err := awaitSpread(ctx, c); err != nil {
		return report, err
	}
	w, err := onboard(ctx, c.Nodes[0].URL, c.Root, cfg.Workspaces)
	if err != nil {
		return report, err
	}
	writers := make([]*failoverWriter, cfg.Workspaces)
	writing, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for i := range writers {
		dial := make([]func() doer, len(c.Nodes))
		for n := range c.Nodes {
			if dial[n], _, err = dialer(c.Nodes[n].URL); err != nil {
				return report, err
			}
		}
		f := &failoverWriter{next: creates(w, w.many[i:i+1], i), first: i % len(c.Nodes), pause: cfg.Pause}
		for _, d := range dial {
			f.nodes = append(f.nodes, d())
		}
		writers[i] = f
		all.Go(func() { f.run(writing) })
	}
	if err := awaitWrites(ctx, writers, time.Now()); err != nil {
		return report, err
	}
	for _, series := range []struct {
		about   string
		settled bool
		target  time.Duration
	}{
		{"the longest that a workspace had no acknowledged write after a kill", true, failoverTarget},
		{"the same after a kill as soon as the node before was ready again", false, returnTarget},
	} {
		gaps := make([]time.Duration, 0, cfg.Kills)
		for kill := range cfg.Kills {
			if series.settled {
				if _, err := awaitSpread(ctx, c); err != nil {
					return report, err
				}
			}
			at := kill % len(c.Nodes)
			gap, err := killOne(ctx, c, at, writers)
			if err != nil {
				return report, err
			}
			gaps = append(gaps, gap)
			_, _ = fmt.Fprintf(out, "kill %2d of %d, node %d: at most %s without an acknowledged write\n", kill+1, cfg.Kills, at+1, gap.Round(time.Millisecond))
		}
		slices.Sort(gaps)
		for _, p := range []struct {
			name  string
			value time.Duration
		}{{"p50", gaps[len(gaps)/2]}, {"p99", gaps[min(len(gaps)-1, len(gaps)*99/100)]}} {
			f := Figure{Scenario: "failover", About: fmt.Sprintf("%s, %s of %d kills", series.about, p.name, cfg.Kills), Value: float64(p.value.Milliseconds()), Unit: "ms"}
			if p.name == "p99" {
				f.Target = float64(series.target.Milliseconds())
			}
			report.Figures = append(report.Figures, f)
			_, _ = fmt.Fprintln(out, &f)
		}
	}
	return report, nil
}

// killOne kills a node, returns the longest time that a workspace had no acknowledged write, and
// starts the node again.
func killOne(ctx context.Context, c *Cluster, at int, writers []*failoverWriter) (gap time.Duration, err error) {
	for _, f := range writers {
		f.reset()
	}
	c.Nodes[at].Kill()
	sleep(ctx, watchFailover)
	// Not since the kill: a write that the dying node has acknowledged says nothing about the next owner.
	if err := awaitWrites(ctx, writers, time.Now()); err != nil {
		return 0, err
	}
	for _, f := range writers {
		gap = max(gap, f.gap())
	}
	p, err := c.Nodes[at].Again(ctx)
	if err != nil {
		return 0, err
	}
	c.Nodes[at] = p
	return gap, nil
}

// awaitWrites returns when each client has had a write acknowledged since a time.
func awaitWrites(ctx context.Context, writers []*failoverWriter, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, failoverWithin)
	defer cancel()
	for _, f := range writers {
		for !f.acknowledgedSince(since) {
			if !sleep(ctx, 10*time.Millisecond) {
				return fmt.Errorf("bench failover: a workspace had no acknowledged write within %s: %w", failoverWithin, ctx.Err())
			}
		}
	}
	return nil
}

// failoverWriter is a client that creates issues in one workspace, at another node when one does
// not answer.
type failoverWriter struct {
	nodes []doer // owned by run
	first int
	next  func() []byte
	pause time.Duration

	mu    sync.Mutex
	last  time.Time // the last acknowledged write, or reset
	worst time.Duration
}

func (f *failoverWriter) run(ctx context.Context) {
	defer func() {
		for _, d := range f.nodes {
			d.close()
		}
	}()
	at := f.first
	for sleep(ctx, f.pause) {
		status, _, err := f.nodes[at].do(f.next())
		switch {
		case err != nil:
			at = (at + 1) % len(f.nodes)
		case status == 201:
			f.acknowledged()
		}
	}
}

func (f *failoverWriter) acknowledged() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if !f.last.IsZero() {
		f.worst = max(f.worst, now.Sub(f.last))
	}
	f.last = now
}

// reset begins to measure anew.
func (f *failoverWriter) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.worst = time.Now(), 0
}

// gap returns the longest time without an acknowledged write since reset.
func (f *failoverWriter) gap() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.worst, time.Since(f.last))
}

func (f *failoverWriter) acknowledgedSince(t time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.After(t)
}
