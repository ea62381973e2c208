package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/bench"
)

// The benchmarks here measure a cluster of real processes on this machine; run
// them with `make bench-cluster`. They report what bench/RESULTS.md keeps.

// benchFleet is a fleet of three with a workspace per shard and an issue in each.
type benchFleet struct {
	*Fleet
	spaces []*benchSpace
}

type benchSpace struct{ id, token, issue string }

func newBenchFleet(ctx context.Context, b *testing.B, size, shards, workspaces int) *benchFleet {
	b.Helper()
	f := NewFleet(binary(b), b.TempDir(), "--shards", strconv.Itoa(shards))
	b.Cleanup(f.Close)
	f.grow(ctx, b, size)
	out := &benchFleet{Fleet: f}
	c := f.members[0].Client(f.Root)
	for n := range workspaces {
		o, err := c.Onboard(ctx, "Bench", fmt.Sprintf("bench-%d", n))
		if err != nil {
			b.Fatal(err)
		}
		w := *c
		w.Token = o.Token.Token
		var issue Issue
		if err := w.Decode(ctx, "POST", "/workspaces/"+o.Workspace.ID+"/issues", json.RawMessage(newIssues()()), http.StatusCreated, &issue); err != nil {
			b.Fatal(err)
		}
		out.spaces = append(out.spaces, &benchSpace{o.Workspace.ID, o.Token.Token, issue.ID})
	}
	return out
}

// owner of a space as the first running member tells it.
func (f *benchFleet) owner(ctx context.Context, b *testing.B, s *benchSpace) *Member {
	b.Helper()
	for _, m := range f.members {
		name, err := m.Owner(ctx, s.id)
		if err != nil {
			continue
		}
		for _, o := range f.members {
			if o.Name == name {
				return o
			}
		}
	}
	b.Fatal("nobody knows the owner of a workspace")
	return nil
}

// rate is how many requests a second so many connections get answered with
// success, in a closed loop.
func rate(ctx context.Context, connections int, length time.Duration, request func(n int, req *fasthttp.Request)) (perSecond float64, failed int64) {
	var ok, bad atomic.Int64
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	client := &fasthttp.Client{MaxConnsPerHost: connections, ReadTimeout: 15 * time.Second}
	began := time.Now()
	for n := range connections {
		all.Go(func() {
			var req fasthttp.Request
			var res fasthttp.Response
			for ctx.Err() == nil {
				request(n, &req)
				if err := client.Do(&req, &res); err != nil || res.StatusCode() >= 300 {
					bad.Add(1)
				} else {
					ok.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(ok.Load()) / time.Since(began).Seconds(), bad.Load()
}

func (s *benchSpace) get(m *Member) func(int, *fasthttp.Request) {
	url := m.URL + "/workspaces/" + s.id + "/issues/" + s.issue
	return func(_ int, req *fasthttp.Request) {
		req.SetRequestURI(url)
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
}

// streams counts the streams of issues, so that no two of them are the same.
var streams atomic.Uint64

// newIssues returns a source of the bodies of creates, with the text of all measurements.
func newIssues() func() []byte { return bench.IssueBodies(streams.Add(1)) }

// createMost is the largest number of connections that create issues at once.
const createMost = 64

// newIssuesEach returns sources of issues for connections, which each use their own.
func newIssuesEach() (issues [createMost]func() []byte) {
	for i := range issues {
		issues[i] = newIssues()
	}
	return issues
}

func (s *benchSpace) create(m *Member) func(int, *fasthttp.Request) {
	issues := newIssuesEach()
	return func(n int, req *fasthttp.Request) { s.createOf(m, issues[n](), req) }
}

// createOf makes req a request that creates an issue.
func (s *benchSpace) createOf(m *Member, issue []byte, req *fasthttp.Request) {
	req.SetRequestURI(m.URL + "/workspaces/" + s.id + "/issues")
	req.Header.SetMethod("POST")
	req.Header.SetContentType("application/json")
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.SetBody(issue)
}

// BenchmarkCluster_Forwarded sets requests to a node that must forward them beside
// those to the owner, in one run.
func BenchmarkCluster_Forwarded(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	f := newBenchFleet(ctx, b, 3, 16, 1)
	s := f.spaces[0]
	owner := f.owner(ctx, b, s)
	other := f.other(owner)
	for b.Loop() {
		for _, connections := range []int{16, 64} {
			for name, request := range map[string]func(*Member) func(int, *fasthttp.Request){"get": s.get, "create": s.create} {
				rate(ctx, connections, time.Second, request(owner))
				direct, failed := rate(ctx, connections, 4*time.Second, request(owner))
				forwarded, failedToo := rate(ctx, connections, 4*time.Second, request(other))
				if failed+failedToo > 0 {
					b.Errorf("%s: %d direct and %d forwarded requests failed", name, failed, failedToo)
				}
				b.Logf("%-6s at %2d connections: direct %8.0f/s, forwarded %8.0f/s, ratio %.2f", name, connections, direct, forwarded, forwarded/direct)
				b.ReportMetric(forwarded/direct, fmt.Sprintf("%s-%d-ratio", name, connections))
			}
		}
	}
}

// BenchmarkCluster_OwnerKilled kills owners and measures how long their workspaces
// went without an answered write at a surviving node.
func BenchmarkCluster_OwnerKilled(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	f := newBenchFleet(ctx, b, 3, 16, 12)
	var gaps []time.Duration
	for b.Loop() {
		for kill := range 20 {
			victim := f.owner(ctx, b, f.spaces[kill%len(f.spaces)])
			gaps = append(gaps, f.kill(ctx, b, victim)...)
			if err := victim.Start(); err != nil {
				b.Fatal(err)
			}
			if err := f.stand(ctx, 3); err != nil {
				b.Fatal(err)
			}
		}
	}
	slices.Sort(gaps)
	b.Logf("%d workspaces lost their owner; without service: median %v, p99 %v, longest %v", len(gaps), gaps[len(gaps)/2], gaps[len(gaps)*99/100], gaps[len(gaps)-1])
	b.ReportMetric(gaps[len(gaps)/2].Seconds(), "median-s")
	b.ReportMetric(gaps[len(gaps)*99/100].Seconds(), "p99-s")
}

// kill ends a member and gives, for each workspace it owned, the time until a write
// was answered.
func (f *benchFleet) kill(ctx context.Context, b *testing.B, victim *Member) []time.Duration {
	b.Helper()
	var owned []*benchSpace
	for _, s := range f.spaces {
		if f.owner(ctx, b, s) == victim {
			owned = append(owned, s)
		}
	}
	gaps := make([]time.Duration, len(owned))
	killed := time.Now()
	victim.Kill()
	var all sync.WaitGroup
	for i, s := range owned {
		all.Go(func() {
			c := f.other(victim).Client(s.token)
			for ctx.Err() == nil {
				a, err := c.Do(ctx, "PATCH", "/workspaces/"+s.id+"/issues/"+s.issue, map[string]any{"title": "written after"})
				if err == nil && a.Status == http.StatusOK {
					gaps[i] = time.Since(killed)
					return
				}
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
	all.Wait()
	return gaps
}

// BenchmarkCluster_JoinAndDrain measures creates before, during and after two nodes
// join three, and before, during and after one is drained.
func BenchmarkCluster_JoinAndDrain(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	f := newBenchFleet(ctx, b, 1, 16, 32)
	nodes := f.members
	const connections = 32
	issues := newIssuesEach()
	request := func(n int, req *fasthttp.Request) {
		f.spaces[n%len(f.spaces)].createOf(nodes[n%len(nodes)], issues[n](), req)
	}
	measure := func(what string) {
		r, failed := rate(ctx, connections, 4*time.Second, request)
		b.Logf("%-28s %8.0f creates/s, %d refused", what, r, failed)
	}
	during := func(what string, do func()) {
		finished := make(chan struct{})
		part, stop := context.WithCancel(ctx)
		var r float64
		var failed int64
		go func() {
			defer close(finished)
			r, failed = rate(part, connections, 5*time.Minute, request)
		}()
		began := time.Now()
		do()
		took := time.Since(began)
		stop()
		<-finished
		b.Logf("%-28s %8.0f creates/s, %d refused, in %s", what, r, failed, took.Round(100*time.Millisecond))
	}
	for b.Loop() {
		measure("one node")
		during("while two join", func() { f.grow(ctx, b, 3) })
		measure("three nodes, asked the first")
		nodes = f.Members()
		measure("three nodes, asked all")
		victim := f.members[2]
		during("while one is drained", func() {
			if err := f.members[0].operate(ctx, "POST", "/cluster/nodes/"+victim.Name+"/drain"); err != nil {
				b.Error(err)
			}
			if err := f.members[0].Await(ctx, "it leads nothing", func(v ClusterView) bool {
				for _, n := range v.Nodes {
					if n.Name == victim.Name {
						return n.Leads == 0
					}
				}
				return false
			}); err != nil {
				b.Error(err)
			}
		})
		measure("one of three drained")
	}
}

// BenchmarkCluster_Idle measures what three idle nodes cost each.
func BenchmarkCluster_Idle(b *testing.B) {
	for _, shards := range []int{16, 64} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
			defer cancel()
			f := newBenchFleet(ctx, b, 3, shards, 1)
			for b.Loop() {
				pause(ctx, 5*time.Second)
				const span = 10 * time.Second
				before := f.cpu(b)
				pause(ctx, span)
				after := f.cpu(b)
				var rss int64
				for _, m := range f.members {
					p, err := m.running()
					if err != nil {
						b.Fatal(err)
					}
					n, err := p.RSS()
					if err != nil {
						b.Fatal(err)
					}
					rss += n
				}
				share := 100 * (after - before).Seconds() / span.Seconds() / float64(len(f.members))
				b.Logf("%d shards: %.1f %% of a core and %d MiB a node", shards, share, rss/int64(len(f.members))>>20)
				b.ReportMetric(share, "cpu-%")
				b.ReportMetric(float64(rss/int64(len(f.members))>>20), "MiB")
			}
		})
	}
}

// cpu is the processor time of all members.
func (f *Fleet) cpu(b *testing.B) time.Duration {
	b.Helper()
	var ticks int64
	for _, m := range f.members {
		p, err := m.running()
		if err != nil {
			b.Fatal(err)
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
		for _, at := range []int{11, 12} { // utime, stime, counted from the state
			n, err := strconv.ParseInt(fields[at], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ
}
