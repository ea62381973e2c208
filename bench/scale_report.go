package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Scale is the part of a report that only a scale run has.
type Scale struct {
	// Share is the part of one core that each node may use.
	Share float64 `json:"share"`
	// Shards of each cluster, and Connections per node.
	Shards      int         `json:"shards"`
	Connections int         `json:"connections"`
	Sizes       []ScaleSize `json:"sizes"`
}

// ScaleSize is one cluster.
type ScaleSize struct {
	Nodes int `json:"nodes"`
	// Leads are the shards that each node led when the measurements began.
	Leads []int `json:"leads"`
	// Idle is the part of a core that a node used without requests.
	Idle float64 `json:"idle"`
}

// grown compares results of a scale run: the rates of a scenario, asked in the same
// way, at two sizes. A single node is asked in one way only. ok is false where one of
// them was not measured, or is not valid.
func (r *Report) grown(scenario string, straight bool, from, to int) (ratio float64, ok bool) {
	rate := func(nodes int) float64 {
		for i := range r.Results {
			one := &r.Results[i]
			if one.Scenario == scenario && one.Nodes == nodes && (one.Straight == straight || nodes == 1) && one.Valid() {
				return one.Rate
			}
		}
		return 0
	}
	before, after := rate(from), rate(to)
	if before == 0 || after == 0 {
		return 0, false
	}
	return after / before, true
}

// scaleTarget is by how much rates should grow from 3 nodes to 9.
const scaleTarget = 2.4

// printScale writes the table of a scale run.
func (r *Report) printScale(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "nodes\trequest\tasks\trate/s\tp50 ms\tp99 ms\terrors\tus of nodes each\tof the cap\tclients' cores\t\n")
	for i := range r.Results {
		one := &r.Results[i]
		rate := fmt.Sprintf("%.0f", one.Rate)
		if !one.Valid() {
			rate = "not valid"
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%.0f\t%.2f\t%.2f\t\n",
			one.Nodes, one.Scenario, one.way(), rate, one.millis(one.P50), one.millis(one.P99), one.Errors, one.NodeMicros, one.CapUsed, one.ClientCores)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("bench: print: %w", err)
	}
	_, err := fmt.Fprintf(out, "\neach node held to %g of a core, %d shards, %d clients a node, each in a workspace of its own\n", r.Scale.Share, r.Scale.Shards, r.Scale.Connections)
	for _, s := range r.Scale.Sizes {
		if err == nil {
			_, err = fmt.Fprintf(out, "%s: lead %v, idle %.1f %% of a core each\n", nodesText(s.Nodes), s.Leads, 100*s.Idle)
		}
	}
	for _, line := range r.growth() {
		if err == nil {
			_, err = fmt.Fprintln(out, line)
		}
	}
	if err != nil {
		return fmt.Errorf("bench: print: %w", err)
	}
	return nil
}

// growth says how rates grew, from the smallest cluster and from three nodes.
func (r *Report) growth() (lines []string) {
	var sizes []int
	for _, s := range r.Scale.Sizes {
		sizes = append(sizes, s.Nodes)
	}
	if len(sizes) < 2 {
		return nil
	}
	last := slices.Max(sizes)
	for _, from := range slices.Compact([]int{slices.Min(sizes), 3}) {
		if from == last || !slices.Contains(sizes, from) {
			continue
		}
		for _, scenario := range []string{scaleCreate, scaleGet} {
			for _, straight := range []bool{false, true} {
				ratio, ok := r.grown(scenario, straight, from, last)
				if !ok {
					continue
				}
				line := fmt.Sprintf("from %d to %d nodes: %s, asking %s: x %.2f", from, last, scenario, (&Result{Straight: straight}).way(), ratio)
				if from == 3 && last == 9 {
					line += fmt.Sprintf(" (target: %g)", scaleTarget)
				}
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// nodesText is a size in words.
func nodesText(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// way names whom the clients of a scale run ask.
func (r *Result) way() string {
	if r.Straight {
		return "the owner"
	}
	return "any node"
}
