package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"switchyard/bench"
)

type benchCmd struct {
	Run      benchRunCmd      `cmd:"" default:"withargs" help:"Measure (the default)."`
	Scale    benchScaleCmd    `cmd:"" help:"Measure clusters of several sizes on this machine, each node held to a share of a core (Linux, as root)."`
	Failover benchFailoverCmd `cmd:"" help:"Measure for how long workspaces can't be written to when nodes of a cluster are killed."`
	Compare  benchCompareCmd  `cmd:"" help:"Set two reports written with --json beside each other."`
}

// benchRunCmd measures a node. Its addresses never come from the environment: the service at SWITCHYARD_URL is
// in use, as a rule, and must not get a load that nobody has asked for.
type benchRunCmd struct {
	URL         string        `env:"-" help:"Node to measure; without it one is started for the run." placeholder:"URL"`
	Nodes       []string      `env:"-" help:"URLs of that node's cluster, to ask the owners of workspaces directly." placeholder:"URL"`
	MetricsURL  string        `env:"-" help:"The URL of that node's /metrics, so that the Pebble limit writes as much as a create does." placeholder:"URL"`
	TokenFile   string        `help:"File with the operator's token, where onboarding is not open." placeholder:"FILE"`
	Connections []int         `help:"Numbers of connections, one after another." default:"16,64"`
	Workspaces  int           `help:"Workspaces the load is spread over." default:"64"`
	Issues      int           `help:"Issues in the workspace that is read and listed." default:"20000"`
	Warmup      time.Duration `help:"Time before each measurement." default:"1s"`
	Duration    time.Duration `help:"Time of each measurement." default:"5s"`
	Rate        float64       `help:"Requests a second of an open load; 0 closes the loop."`
	OpenShare   float64       `help:"After each closed measurement an open one at this share of its rate; 0 for none." default:"0.7"`
	Waiting     int           `help:"Polls that wait at once in the scenario waiting." default:"10000"`
	Scenario    []string      `help:"Scenarios by name: ${scenarios}. All when not given." placeholder:"NAME"`
	Dir         string        `help:"Where the data of the run is kept while it lasts." default:"."`
	JSON        string        `name:"json" help:"Write the report here." placeholder:"FILE"`
	HTML        string        `name:"html" help:"Write the report here as a page with plots." placeholder:"FILE"`
}

func (b benchRunCmd) Run() error {
	if err := reportsWritable(b.JSON, b.HTML); err != nil {
		return err
	}
	m := measuring()
	defer m.end()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	starter := bench.Binary{Path: self, EmptyCommand: "baseline"}
	cfg := bench.Config{
		URL: b.URL, Nodes: b.Nodes, MetricsURL: b.MetricsURL, Connections: b.Connections, Workspaces: b.Workspaces, Issues: b.Issues,
		Warmup: b.Warmup, Duration: b.Duration, Rate: b.Rate, OpenShare: b.OpenShare, Waiting: b.Waiting, Scenarios: b.Scenario, Dir: b.Dir,
		StartNode: starter.StartNode, StartEmpty: starter.StartEmpty,
		Progress: showProgress(m.to(os.Stderr)), Version: version,
	}
	if cfg.Token, err = rootToken(b.TokenFile); err != nil {
		return err
	}
	report, err := bench.Run(m.ctx, cfg, m.to(os.Stdout))
	if err != nil {
		return interrupted(m.ctx, err)
	}
	return m.report(&report, b.JSON, b.HTML)
}

// reportsWritable finds out before a run, which may take long, whether its reports can be written.
// Reports that are there stay as they are.
func reportsWritable(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		there, missing := os.Stat(path)
		if missing == nil && there.Mode()&os.ModeNamedPipe != 0 {
			continue // a pipe's reader would take the report for an empty one
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		err = f.Close()
		if errors.Is(missing, os.ErrNotExist) {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// writeReports writes the forms of a report that have a file, and returns the faults of
// its figures.
func writeReports(report *bench.Report, asJSON, asHTML string) error {
	return errors.Join(writeReport(asJSON, report.WriteJSON), writeReport(asHTML, report.WriteHTML), report.Err())
}

func writeReport(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	// Not for reading as well: the open of a pipe waits for its reader then, and a write fails when the reader has gone.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

type benchCompareCmd struct {
	Before string `arg:"" help:"Report of the run to compare with."`
	After  string `arg:"" help:"Report of the newer run."`
}

func (c benchCompareCmd) Run() error {
	before, err := readReport(c.Before)
	if err != nil {
		return err
	}
	after, err := readReport(c.After)
	if err != nil {
		return err
	}
	return bench.Compare(before, after, os.Stdout)
}

func readReport(path string) (*bench.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	defer func() { _ = f.Close() }()
	return bench.ReadReport(f)
}

// baselineCmd is the process that bench sets the node's GET beside.
type baselineCmd struct {
	HTTP string `name:"http" help:"Address to serve on." default:"127.0.0.1:8081"`
}

func (b baselineCmd) Run() error {
	ctx, cancel := interruptible()
	defer cancel()
	return bench.ServeEmpty(ctx, b.HTTP)
}
