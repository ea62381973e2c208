package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// ScaleConfig is the configuration of RunScale.
type ScaleConfig struct {
	// Sizes are the numbers of nodes, one cluster after another.
	Sizes []int
	// Share is the part of one core that each node may use.
	Share float64
	// Connections are clients per node, each with a workspace of its own.
	Connections int
	// Shards of each cluster.
	Shards int
	// Issues in each workspace before anything is measured.
	Issues           int
	Warmup, Duration time.Duration
	// Dir holds the data of all nodes, and is left empty.
	Dir string
	// Version of this program, for the report.
	Version string
	// Progress, when it is not nil, is told about once a second how far the run is, and
	// must not keep it waiting.
	Progress func(Progress)
	// StartCluster starts nodes with empty data in processes of their own.
	StartCluster func(ctx context.Context, dir string, nodes, shards int) (*Cluster, error)
}

// Bounds of a scale run.
const (
	maxScaleNodes       = 32
	maxScaleConnections = 256
	minShare            = float64(minQuota) / float64(capPeriod)
)

func (c *ScaleConfig) check(cpus int) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(c.Sizes) == 0 {
		fault("no number of nodes")
	}
	for _, n := range c.Sizes {
		if n < 1 || n > maxScaleNodes {
			fault("nodes: %d is not from 1 to %d", n, maxScaleNodes)
		}
		if n == 2 {
			fault("nodes: 2: a cluster that never had three nodes keeps one replica of each shard, all of them on one node: measure 1 or 3")
		}
	}
	if c.Share < minShare || c.Share > 1 {
		fault("share: %g is not from %g to 1 core", c.Share, minShare)
	} else if len(c.Sizes) > 0 {
		if most := slices.Max(c.Sizes); float64(most)*c.Share >= float64(cpus) {
			fault("share: %d nodes of %g cores would take all of this machine's %d, and the clients need some: lower the share, or measure fewer nodes", most, c.Share, cpus)
		}
	}
	if c.Connections < 1 || c.Connections > maxScaleConnections {
		fault("connections: %d is not from 1 to %d", c.Connections, maxScaleConnections)
	}
	if c.Issues < 1 || c.Issues > 10_000 {
		fault("issues: %d is not from 1 to 10000", c.Issues)
	}
	if c.Duration <= 0 || c.Warmup < 0 {
		fault("duration: %s after %s of warm-up", c.Duration, c.Warmup)
	}
	if len(faults) > 0 {
		return fmt.Errorf("bench scale: %w", errors.Join(faults...))
	}
	return nil
}

// RunScale measures clusters of several sizes, each node held to the same share of a
// core, and tells out how far it is.
func RunScale(ctx context.Context, cfg ScaleConfig, out io.Writer) (report Report, err error) {
	if err := cfg.check(machine().CPUs); err != nil {
		return Report{}, err
	}
	caps, err := newCaps(cfg.Share)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, caps.close()) }()
	if err := caps.prefer(); err != nil {
		return Report{}, err
	}
	s := &scaling{ScaleConfig: cfg, caps: caps, out: out, report: Report{
		Started: time.Now().UTC().Truncate(time.Second), Version: cfg.Version, Machine: machine(), Seconds: cfg.Duration.Seconds(), Text: textStatistics(1),
		Scale: &Scale{Share: cfg.Share, Shards: cfg.Shards, Connections: cfg.Connections},
	}}
	_, _ = fmt.Fprintf(out, "%s\n%s\n", s.report.source(), s.report.Text)
	for _, n := range cfg.Sizes {
		if s.steps += 4; n == 1 {
			s.steps -= 2 // there is one way to ask
		}
	}
	for _, n := range cfg.Sizes {
		if err := s.size(ctx, n); err != nil {
			return s.report, fmt.Errorf("%s: %w", nodesText(n), err)
		}
	}
	_, _ = fmt.Fprintln(out)
	return s.report, s.report.Print(out)
}

// scaling is a scale run under way.
type scaling struct {
	ScaleConfig
	caps   *caps
	out    io.Writer
	report Report
	// step of steps is under way: one load on one cluster.
	step, steps int
}

// settleScale is how long a cluster may work at what filling it left behind, before it
// is capped, and idleLook how long its idle cost is then read.
const (
	settleScale = 4 * time.Second
	idleLook    = 4 * time.Second
)

// size measures one cluster.
func (s *scaling) size(ctx context.Context, nodes int) (err error) {
	_, _ = fmt.Fprintf(s.out, "%s: starting\n", nodesText(nodes))
	c, err := s.StartCluster(ctx, s.Dir, nodes, s.Shards)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop(), s.caps.free()) }()
	found := ScaleSize{Nodes: nodes}
	if found.Leads, err = awaitSpread(ctx, c); err != nil {
		return err
	}
	w, err := onboard(ctx, c.Nodes[0].URL, c.Root, nodes*s.Connections)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.out, "%s: leaders %v, filling %d workspaces\n", nodesText(nodes), found.Leads, len(w.many))
	ids, err := s.fill(ctx, c, w)
	if err != nil {
		return err
	}
	sleep(ctx, settleScale)
	for i, n := range c.Nodes { // from here on
		if err := s.caps.hold(fmt.Sprintf("%d-of-%d", i+1, nodes), n.PID); err != nil {
			return err
		}
	}
	used, began := c.processorTime(), time.Now()
	sleep(ctx, idleLook)
	found.Idle = (c.processorTime() - used).Seconds() / time.Since(began).Seconds() / float64(nodes)
	s.report.Scale.Sizes = append(s.report.Scale.Sizes, found)
	creating := func(i int) func() []byte { return creates(w, w.many[i:i+1], i) }
	reading := func(i int) func() []byte { return gets(w.host, w.many[i], ids[i]) }
	// Reads come first: what creates leave to be indexed and compacted would be done
	// while they are measured.
	for _, load := range []struct {
		name     string
		status   int
		requests func(int) func() []byte
	}{{scaleGet, 200, reading}, {scaleCreate, 201, creating}} {
		for _, straight := range []bool{false, true} {
			if straight && nodes == 1 {
				continue // there is nowhere else to go
			}
			if err := s.measure(ctx, c, load.name, straight, load.status, load.requests); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// fill creates the issues of all workspaces and gives their ids.
func (s *scaling) fill(ctx context.Context, c *Cluster, w *world) ([][]string, error) {
	dial, _, err := clusterDialer(c.urls(), true, everyNode)
	if err != nil {
		return nil, err
	}
	ids := make([][]string, len(w.many))
	l := load{
		dial: dial, connections: len(w.many), most: int64(len(w.many) * s.Issues), status: 201,
		requests: func(i int) func() []byte { return creates(w, w.many[i:i+1], i) },
		answered: func(i int, body []byte) {
			if id, ok := issueID(body); ok {
				ids[i] = append(ids[i], id)
			}
		},
	}
	if found := l.run(ctx); found.errors > 0 {
		return nil, fmt.Errorf("bench: fill the workspaces: %d errors, the first: %s", found.errors, found.fault)
	}
	for i := range ids {
		if len(ids[i]) == 0 {
			return nil, errors.New("bench: fill the workspaces: a connection got no answer; give more --issues")
		}
	}
	return ids, nil
}

// gets reads a workspace's issues in turn.
func gets(host string, in workspace, ids []string) func() []byte {
	requests := make([][]byte, len(ids))
	for i, id := range ids {
		requests[i] = request("GET", host, "/workspaces/"+in.id+"/issues/"+id, in.token, "")
	}
	n := 0
	return func() []byte {
		n++
		return requests[n%len(requests)]
	}
}

// The scenarios of a scale run.
const (
	scaleCreate = "create"
	scaleGet    = "get"
)

// measure runs one load over all nodes of a cluster.
func (s *scaling) measure(ctx context.Context, c *Cluster, name string, straight bool, status int, requests func(int) func() []byte) error {
	dial, _, err := clusterDialer(c.urls(), straight, everyNode)
	if err != nil {
		return err
	}
	nodes := len(c.Nodes)
	way := (&Result{Straight: straight}).way()
	s.step++
	l := load{dial: dial, connections: nodes * s.Connections, warmup: s.Warmup, lasts: s.Duration, status: status, requests: requests}
	l.progress = progressOf(s.Progress, s.step, s.steps, fmt.Sprintf("%s: %s, asking %s", nodesText(nodes), name, way))
	nodesUsed, ownUsed, began := c.processorTime(), processorTime(os.Getpid()), time.Now()
	sample := l.run(ctx)
	took := time.Since(began).Seconds()
	cores, own := (c.processorTime()-nodesUsed).Seconds()/took, (processorTime(os.Getpid())-ownUsed).Seconds()/took
	one := newResult(name, name+", clients ask "+way, l.connections, 0, sample)
	one.Nodes, one.Straight = nodes, straight
	one.CapUsed, one.ClientCores = cores/(float64(nodes)*s.Share), own
	if one.Rate > 0 {
		one.NodeMicros = cores / one.Rate * 1e6
	}
	s.report.Results = append(s.report.Results, one)
	_, _ = fmt.Fprintf(s.out, "%s: %-6s asking %-9s  %7.0f/s  p50 %s ms  p99 %s ms  errors %d  %.0f us of the nodes' processors each\n",
		nodesText(nodes), name, way, one.Rate, one.millis(one.P50), one.millis(one.P99), one.Errors, one.NodeMicros)
	if one.Fault != "" {
		_, _ = fmt.Fprintf(s.out, "  the first error: %s\n", one.Fault)
	}
	return ctx.Err()
}

// processorTime returns the processor time that all nodes have used.
func (c *Cluster) processorTime() (sum time.Duration) {
	for _, n := range c.Nodes {
		if n.CPU != nil {
			sum += n.CPU()
		}
	}
	return sum
}

// spreadWithin is how long a new cluster may take to have all its replicas, and
// leaders on every node.
const spreadWithin = 3 * time.Minute

// awaitSpread returns when every shard has all its voters and every node leads its
// share, give or take one, and gives how many each leads.
func awaitSpread(ctx context.Context, c *Cluster) ([]int, error) {
	within, cancel := context.WithTimeout(ctx, spreadWithin)
	defer cancel()
	dial, host, err := dialer(c.Nodes[0].URL)
	if err != nil {
		return nil, err
	}
	d := dial()
	defer d.close()
	ask := request("GET", host, "/cluster", c.Root, "")
	for {
		status, body, err := d.do(ask)
		if err != nil || status != 200 {
			return nil, fmt.Errorf("bench: ask for the cluster: status %d, %w", status, err)
		}
		leads, spread, err := spreadOf(body, len(c.Nodes))
		if err != nil || spread {
			return leads, err
		}
		if !sleep(within, 200*time.Millisecond) {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("bench: wait for the cluster: %w", err)
			}
			return nil, fmt.Errorf("bench: the cluster did not spread its shards within %s: the nodes lead %v", spreadWithin, leads)
		}
	}
}

// spreadOf reads an answer of GET /cluster.
func spreadOf(body []byte, nodes int) (leads []int, spread bool, err error) {
	var view struct {
		Nodes  []struct{ Leads int }
		Shards []struct {
			Leader            string
			Voters, NonVoters []string
		}
	}
	if err := json.Unmarshal(body, &view); err != nil {
		return nil, false, fmt.Errorf("bench: read the cluster: %w", err)
	}
	sum := 0
	for _, n := range view.Nodes {
		leads = append(leads, n.Leads)
		sum += n.Leads
	}
	if len(leads) != nodes || sum != len(view.Shards) {
		return leads, false, nil
	}
	for _, s := range view.Shards {
		if s.Leader == "" || len(s.Voters) != min(nodes, 3) || len(s.NonVoters) > 0 {
			return leads, false, nil
		}
	}
	return leads, slices.Max(leads)-slices.Min(leads) <= 1, nil
}
