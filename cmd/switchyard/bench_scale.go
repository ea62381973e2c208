package main

import (
	"fmt"
	"os"
	"time"

	"switchyard/bench"
)

type benchScaleCmd struct {
	Nodes       []int         `env:"-" help:"Numbers of nodes, one cluster after another; not 2, whose second node would hold nothing." default:"1,3,6,9"`
	Share       float64       `help:"Part of a core that each node is held to." default:"0.1"`
	Connections int           `env:"-" help:"Clients for each node, each in a workspace of its own." default:"48"`
	Shards      int           `help:"Shards of each cluster." default:"18"`
	Issues      int           `help:"Issues in each workspace before it is measured." default:"32"`
	Warmup      time.Duration `help:"Time before each measurement." default:"2s"`
	Duration    time.Duration `help:"Time of each measurement." default:"10s"`
	Dir         string        `help:"Where the data of the run is kept while it lasts." default:"."`
	JSON        string        `name:"json" help:"Write the report here." placeholder:"FILE"`
	HTML        string        `name:"html" help:"Write the report here as a page with plots." placeholder:"FILE"`
}

func (b benchScaleCmd) Run() error {
	if err := reportsWritable(b.JSON, b.HTML); err != nil {
		return err
	}
	m := measuring()
	defer m.end()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	report, err := bench.RunScale(m.ctx, bench.ScaleConfig{
		Sizes: b.Nodes, Share: b.Share, Connections: b.Connections, Shards: b.Shards, Issues: b.Issues,
		Warmup: b.Warmup, Duration: b.Duration, Dir: b.Dir, StartCluster: bench.Binary{Path: self}.StartCluster,
		Progress: showProgress(m.to(os.Stderr)), Version: version,
	}, m.to(os.Stdout))
	if err != nil {
		return interrupted(m.ctx, err)
	}
	return m.report(&report, b.JSON, b.HTML)
}
