package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Config is the configuration of Run: the scenarios and the node.
type Config struct {
	// URL of a running node ("http://127.0.0.1:8080"); empty starts one.
	URL string
	// Nodes are the URLs of the cluster's nodes that clients may go to when an answer
	// names one of them as the owner of a workspace; none: they ask URL alone.
	Nodes []string
	// MetricsURL of that node, whole ("http://127.0.0.1:9090/metrics"); with it the
	// Pebble baseline learns what a create writes.
	MetricsURL string
	// Token is the operator's, for a node whose onboarding is not open.
	Token string
	// Connections are the levels of concurrency to measure, one after another.
	Connections []int
	// Workspaces is how many the load is spread over where a scenario spreads it.
	Workspaces int
	// Issues fill the workspace that is read and listed.
	Issues int
	// Warmup runs before each measurement of Duration and is left out of it.
	Warmup, Duration time.Duration
	// Rate, when not 0, makes the load open at that many requests a second. When it is
	// 0 the load is closed.
	Rate float64
	// OpenShare follows each closed measurement by an open one at this share of the
	// rate it found; 0 leaves that out.
	OpenShare float64
	// Waiting is how many polls wait at once in the scenario of that name.
	Waiting int
	// Scenarios by name; none means all.
	Scenarios []string
	// Version of this program, for the report.
	Version string
	// Dir holds the data of the node that is started and of the Pebble baseline, both
	// on one disk, and is left empty.
	Dir string
	// Progress, when it is not nil, is told about once a second how far the run is, and
	// must not keep it waiting.
	Progress func(Progress)
	// StartNode starts a node with empty data in its own process.
	StartNode func(ctx context.Context, dir string) (*Process, error)
	// StartEmpty starts a process that runs ServeEmpty; nil leaves that limit out.
	StartEmpty func(ctx context.Context) (*Process, error)
}

// Process is a server under measurement.
type Process struct {
	URL        string
	MetricsURL string
	// Ready is how long it took from its start until it was ready; 0 when unknown.
	Ready time.Duration
	// RSS reads the resident memory in bytes; nil or 0 when that can't be known.
	RSS func() int64
	// CPU reads the processor time it has used; nil or 0 when that can't be known.
	CPU func() time.Duration
	// PID of the process; 0 when it is not of this machine.
	PID int
	// Stop ends the process and removes what it left.
	Stop func() error
	// Kill ends the process at once and leaves its data; Again starts another on that.
	Kill  func()
	Again func(ctx context.Context) (*Process, error)
}

func (p *Process) rss() int64 {
	if p.RSS == nil {
		return 0
	}
	return p.RSS()
}

// busy looks at the process for a while and gives the percents of a core it used.
func (p *Process) busy(ctx context.Context, d time.Duration) float64 {
	read := p.CPU
	if read == nil {
		read = func() time.Duration { return 0 }
	}
	used, began := read(), time.Now()
	sleep(ctx, d)
	return 100 * (read() - used).Seconds() / time.Since(began).Seconds()
}

func (c *Config) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.URL == "" && c.StartNode == nil {
		fault("no URL, and no way to start a node")
	}
	if len(c.Nodes) > 0 && c.URL == "" {
		fault("nodes are those of a cluster that runs: give its URL too")
	}
	if len(c.Connections) == 0 {
		fault("no number of connections")
	}
	for _, n := range c.Connections {
		if n < 1 || n > 4096 {
			fault("connections: %d is not from 1 to 4096", n)
		}
	}
	if c.Workspaces < 1 || c.Workspaces > 10_000 {
		fault("workspaces: %d is not from 1 to 10000", c.Workspaces)
	}
	if c.Issues < listLimit || c.Issues > 10_000_000 {
		fault("issues: %d is not from %d to 10000000", c.Issues, listLimit)
	}
	if most := opensPerSecond * (pollWait - 10); c.Waiting < 1 || c.Waiting > most { // the first are still there when the last has come
		fault("waiting: %d is not from 1 to %d", c.Waiting, most)
	}
	if c.Duration <= 0 || c.Warmup < 0 {
		fault("duration: %s after %s of warm-up", c.Duration, c.Warmup)
	}
	if c.Rate < 0 || c.OpenShare < 0 || c.OpenShare >= 1 {
		fault("rate %g and open share %g: the share is below 1", c.Rate, c.OpenShare)
	}
	for _, name := range c.Scenarios {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			fault("no scenario is called %q; there are %s", name, strings.Join(Scenarios(), ", "))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("bench: %w", errors.Join(faults...))
	}
	return nil
}

func machine() Machine {
	return Machine{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
}
