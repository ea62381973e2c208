package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"switchyard/cluster"
	"switchyard/httpapi"
)

const (
	// drainPoll is how often a drain is looked at.
	drainPoll = 500 * time.Millisecond
	// drainSilence is how long the node asked may fail to answer meanwhile: it may
	// be restarting, or between two leaders.
	drainSilence = 30 * time.Second
)

// run begins a drain and, without --no-wait, waits for its end.
func (d clusterDrainCmd) run(ctx context.Context, c *clusterClient, p *progress) error {
	raw, err := c.do(ctx, "POST", nodePath(d.Node)+"/drain")
	if err != nil {
		return err
	}
	var begun httpapi.DrainStart
	if err := json.Unmarshal(raw, &begun); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	if begun.Moves == httpapi.DrainsLeaderships {
		p.say("Only leaderships move off %s: the other nodes are too few to hold all its replicas. Add a node to move those, too.", d.Node)
	}
	if d.NoWait {
		p.say("%s drains; `switchyard cluster status` shows how far it is.", d.Node)
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	err = d.wait(limited, c, p, begun.Moves)
	p.end()
	goesOn := "the drain continues; `switchyard cluster status` shows how far it is, `switchyard cluster undrain " + d.Node + "` takes it back"
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, errors.New("stopped waiting: " + goesOn)}
	case limited.Err() != nil:
		return &exitError{exitTimeout, fmt.Errorf("%s is not empty after %s: %s", d.Node, d.Timeout, goesOn)}
	}
	return err
}

// wait polls the cluster until the node has no replicas or leaderships left to move.
func (d clusterDrainCmd) wait(ctx context.Context, c *clusterClient, p *progress, moves string) error {
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	began, answered, listed := time.Now(), time.Now(), false
	for {
		t, err := c.topology(ctx)
		if err == nil {
			listed = listed || slices.ContainsFunc(t.Nodes, func(n cluster.NodeStatus) bool { return n.Name == d.Node })
		}
		switch {
		case err == nil && !listed && time.Since(began) < drainSilence: // the node has just joined, and the one that was asked has not heard of it
			answered = time.Now()
		case err == nil:
			answered = time.Now()
			done, err := d.look(t, p, moves)
			if done || err != nil {
				return err
			}
		case ctx.Err() != nil || exitCode(err) != exitUnreachable || time.Since(answered) > drainSilence:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// look shows how far the drain is.
func (d clusterDrainCmd) look(t *httpapi.Topology, p *progress, moves string) (done bool, err error) {
	for _, n := range t.Nodes {
		if n.Name != d.Node {
			continue
		}
		replicas := n.Replicas
		if moves == httpapi.DrainsLeaderships {
			replicas = 0 // they stay
		}
		p.show(d.Node, n.Leads, replicas)
		if n.Leads > 0 || replicas > 0 || unsure(t, n.State) {
			return false, nil
		}
		p.end()
		if moves == httpapi.DrainsLeaderships {
			p.say("%s leads nothing now. It still holds %s.", d.Node, plural(n.Replicas, "replica"))
		} else {
			p.say("%s is empty: it can be stopped, and taken out with `switchyard cluster remove %s`.", d.Node, d.Node)
		}
		return true, nil
	}
	return false, &exitError{exitNoNode, fmt.Errorf("%s is no longer in the cluster", d.Node)}
}

// unsure reports whether a node in a state may hold more than the view of the cluster shows. A node that does
// not answer right now is missing from it, and only the leaders of the shards know its replicas.
func unsure(t *httpapi.Topology, state cluster.NodeState) bool {
	if state == cluster.NodeAlive || state == cluster.NodeDraining {
		return false
	}
	return slices.ContainsFunc(t.Shards, func(s httpapi.ShardStatus) bool { return s.Leader == "" })
}

// progress shows a drain: a bar where it can be drawn over, else a line whenever
// something changed.
type progress struct {
	out   io.Writer
	bar   bool
	drawn bool   // a bar stands on the current line
	most  int    // there ever was to move
	last  string // line
}

func newProgress(f *os.File) *progress {
	info, err := f.Stat()
	return &progress{out: f, bar: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

const barWidth = 30

func (p *progress) show(node string, leads, replicas int) {
	left := leads + replicas
	p.most = max(p.most, left)
	line := fmt.Sprintf("%s: %s and %s left", node, plural(leads, "leadership"), plural(replicas, "replica"))
	if !p.bar {
		if line != p.last {
			_, _ = fmt.Fprintln(p.out, line)
		}
		p.last = line
		return
	}
	full := barWidth
	if p.most > 0 {
		full = barWidth * (p.most - left) / p.most
	}
	// Carriage return, and erase to the end of the line.
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), line)
	p.drawn = true
}

// end leaves the bar's line.
func (p *progress) end() {
	if p.drawn {
		_, _ = fmt.Fprintln(p.out)
		p.drawn = false
	}
}

func (p *progress) say(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", args...) }
