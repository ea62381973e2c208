package main

import (
	"fmt"
	"os"
	"time"

	"switchyard/bench"
)

type benchFailoverCmd struct {
	Nodes      int           `env:"-" help:"Nodes of the cluster." default:"3"`
	Kills      int           `help:"Kills of each of the two series." default:"20"`
	Workspaces int           `help:"Workspaces, each with a client that creates issues." default:"24"`
	Pause      time.Duration `help:"Time between two creates of a client." default:"50ms"`
	Shards     int           `help:"Shards of the cluster." default:"18"`
	Dir        string        `help:"Where the data of the run is kept while it lasts." default:"."`
	JSON       string        `name:"json" help:"Write the report here." placeholder:"FILE"`
}

func (b benchFailoverCmd) Run() error {
	if err := reportsWritable(b.JSON); err != nil {
		return err
	}
	m := measuring()
	defer m.end()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	report, err := bench.RunFailover(m.ctx, bench.FailoverConfig{
		Nodes: b.Nodes, Kills: b.Kills, Workspaces: b.Workspaces, Pause: b.Pause, Shards: b.Shards, Dir: b.Dir, StartCluster: bench.Binary{Path: self}.StartCluster, Version: version,
	}, m.to(os.Stdout))
	if err != nil {
		return interrupted(m.ctx, err)
	}
	return m.report(&report, b.JSON, "")
}
