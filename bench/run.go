package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Run measures everything cfg names, tells out how far it is, and ends with the
// table. The error is about the run itself; what went wrong in a measurement makes
// its figure invalid, which Report.Err tells.
func Run(ctx context.Context, cfg Config, out io.Writer) (report Report, err error) {
	if err := cfg.check(); err != nil {
		return Report{}, err
	}
	r := &run{Config: cfg, out: out, report: Report{
		Started: time.Now().UTC().Truncate(time.Second), Version: cfg.Version, Machine: machine(), URL: cfg.URL,
		Workspaces: cfg.Workspaces, Issues: cfg.Issues, Seconds: cfg.Duration.Seconds(), Create: assumedWrites,
	}}
	r.report.Text = textStatistics(cfg.Workspaces)
	_, _ = fmt.Fprintf(out, "%s\n%s\n", r.report.source(), r.report.Text)
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.start(ctx); err != nil {
		return r.report, err
	}
	wanted := func(i int, s *scenario) bool {
		return (len(cfg.Scenarios) == 0 || slices.Contains(cfg.Scenarios, s.name)) && (i == 0 || s.alone == nil)
	}
	for i := range cfg.Connections {
		for j := range scenarios {
			if wanted(i, &scenarios[j]) {
				r.steps++
			}
		}
	}
	for i, n := range cfg.Connections {
		for _, s := range scenarios {
			if !wanted(i, &s) {
				continue
			}
			r.step++
			err := r.scenario(ctx, s, n)
			var refused *refusal
			if cfg.URL != "" && errors.As(err, &refused) { // it was not started for this
				_, _ = fmt.Fprintf(out, "%-24s left out: %v\n", s.name, refused)
				continue
			}
			if err != nil {
				return r.report, err
			}
		}
	}
	r.report.LoadedRSS = r.node.rss()
	r.report.judge()
	_, _ = fmt.Fprintln(out)
	return r.report, r.report.Print(out)
}

// run is a run under way.
type run struct {
	Config
	out    io.Writer
	report Report
	node   *Process
	empty  *Process
	world  *world
	// step of steps is under way: a scenario at a number of connections.
	step, steps int
}

// telling tells of a load's progress under a name.
func (r *run) telling(name string, connections int) func(Progress) {
	return progressOf(r.Progress, r.step, r.steps, fmt.Sprintf("%s, %d connections", name, connections))
}

// watch reports the time that something takes which is no load, until the returned function is called.
func (r *run) watch(name string) (stop func()) {
	l := load{progress: progressOf(r.Progress, r.step, r.steps, name)}
	if tell := l.progress; tell != nil {
		l.progress = func(p Progress) {
			p.Uncounted = true
			tell(p)
		}
	}
	return l.report(time.Now())
}

// settle is how long a started node is left alone before its memory is read.
const settle = time.Second

func (r *run) start(ctx context.Context) (err error) {
	r.node = &Process{URL: r.URL, MetricsURL: r.MetricsURL}
	if r.URL == "" {
		if r.node, err = r.StartNode(ctx, r.Dir); err != nil {
			return err
		}
		r.report.ReadyMillis = float64(r.node.Ready.Microseconds()) / 1000
		sleep(ctx, settle)
		r.report.IdleRSS = r.node.rss()
	}
	if r.StartEmpty != nil {
		if r.empty, err = r.StartEmpty(ctx); err != nil {
			return err
		}
	}
	if r.world, err = onboard(ctx, r.node.URL, r.Token, r.Workspaces); err != nil {
		return err
	}
	if len(r.Nodes) > 0 {
		if r.world.dial, err = r.owners(); err != nil {
			return err
		}
	}
	r.world.filling = func() func(Progress) { return progressOf(r.Progress, r.step, r.steps, "filling a workspace") }
	return nil
}

// owners makes clients of the cluster: each asks URL first, and then the owner.
func (r *run) owners() (func() doer, error) {
	urls := []string{strings.TrimSuffix(r.URL, "/")}
	for _, node := range r.Nodes {
		if node = strings.TrimSuffix(node, "/"); !slices.Contains(urls, node) {
			urls = append(urls, node)
		}
	}
	dial, _, err := clusterDialer(urls, true, 0)
	return dial, err
}

func (r *run) stop() error {
	var faults []error
	for _, p := range []*Process{r.node, r.empty} {
		if p != nil && p.Stop != nil {
			faults = append(faults, p.Stop())
		}
	}
	return errors.Join(faults...)
}

// scenario measures one at one number of connections, and next to it its limit.
func (r *run) scenario(ctx context.Context, s scenario, connections int) error {
	if s.filled && r.world.ids == nil {
		if err := r.world.fill(ctx, r.Issues, r.out); err != nil {
			return err
		}
	}
	if s.work {
		if err := r.world.fillWork(ctx); err != nil {
			return err
		}
	}
	if s.prepare != nil {
		if err := s.prepare(ctx, r.world); err != nil {
			return err
		}
	}
	if s.alone != nil {
		stop := r.watch(s.name)
		figures, err := s.alone(ctx, r)
		stop()
		for i := range figures {
			r.figure(&figures[i])
		}
		return errors.Join(err, ctx.Err())
	}
	if s.measure != nil {
		return errors.Join(s.measure(ctx, r, &s, connections), ctx.Err())
	}
	l := load{
		dial: r.world.dial, connections: connections, rate: r.Rate, warmup: r.Warmup, lasts: r.Duration, status: s.status,
		requests: func(c int) func() []byte { return s.requests(r.world, c) },
	}
	if s.beside != nil {
		if r.Rate == 0 {
			if err := r.alone(ctx, &s, &l); err != nil {
				return err
			}
		}
		stop, err := s.beside(ctx, r.world)
		if err != nil {
			return err
		}
		defer func() { _, _ = fmt.Fprintf(r.out, "  beside %s: %s\n", s.name, stop()) }()
	}
	if s.talks != nil {
		l.talks = func(c int) talk { return s.talks(r.world, c) }
	}
	before := r.counters(ctx)
	closed := r.measure(ctx, s.name, s.about, &l)
	if r.Rate == 0 {
		closed.Limit, closed.Target, closed.RateTarget = s.limit, s.target, s.rateTarget
	}
	found, valid := closed.Rate, closed.Valid()
	if s.limit == pebbleLimit {
		if size, ok := perCommand(before, r.counters(ctx)); ok {
			r.report.Create = size
		}
	}
	if r.Rate == 0 {
		if err := r.limit(ctx, s.limit, connections); err != nil {
			return err
		}
	}
	if share := r.OpenShare; share > 0 && r.Rate == 0 && valid {
		l.rate = found * share
		r.measure(ctx, s.name, s.about, &l).P99Target = float64(s.openP99Target.Microseconds()) / 1000
	}
	return ctx.Err()
}

// alone measures a scenario without the load beside it; the result is the scenario's
// limit. It runs right before the scenario, because the rate of an empty store, earlier in
// the run, differs. A node that refuses the load beside is not measured at all.
func (r *run) alone(ctx context.Context, s *scenario, l *load) error {
	stop, err := s.beside(ctx, r.world)
	if err != nil {
		return err
	}
	_ = stop()
	s.limit = "limit: " + s.name + " alone"
	r.measure(ctx, s.limit, s.about+"; but without the load beside", l)
	return nil
}

// measure runs a load and adds its result to the report. The result stays valid
// for changes until the next.
func (r *run) measure(ctx context.Context, name, about string, l *load) *Result {
	l.progress = r.telling(name, l.connections)
	return r.add(newResult(name, about, l.connections, l.rate, l.run(ctx)))
}

// add tells of a result and puts it into the report, where it stays valid for changes
// until the next.
func (r *run) add(one Result) *Result {
	_, _ = fmt.Fprintf(r.out, "%-24s %4d connections  %-14s %9.0f/s  p50 %s ms  p99 %s ms  errors %d\n",
		one.Scenario, one.Connections, one.load(), one.Rate, one.millis(one.P50), one.millis(one.P99), one.Errors)
	if one.Fault != "" {
		_, _ = fmt.Fprintf(r.out, "  the first error: %s\n", one.Fault)
	}
	r.report.Results = append(r.report.Results, one)
	return &r.report.Results[len(r.report.Results)-1]
}

// figure adds what a scenario found to the report.
func (r *run) figure(f *Figure) {
	_, _ = fmt.Fprintln(r.out, f)
	r.report.Figures = append(r.report.Figures, *f)
}

// limit measures one of the limits, unless it was measured right before for another scenario; the
// name of a scenario is no work here.
func (r *run) limit(ctx context.Context, name string, connections int) error {
	if name == emptyLimit && slices.ContainsFunc(r.report.Results, func(one Result) bool {
		return one.Scenario == name && one.Connections == connections
	}) {
		return nil
	}
	l := load{connections: connections, warmup: r.Warmup, lasts: r.Duration}
	switch name {
	case emptyLimit:
		if r.empty == nil {
			return nil
		}
		dial, host, err := dialer(r.empty.URL)
		if err != nil {
			return err
		}
		l.dial, l.status, l.requests = dial, 200, emptyRequests(host)
		r.measure(ctx, name, "answer as many bytes as a get, do nothing", &l)
	case pebbleLimit:
		raw, err := openRawPebble(r.Dir, r.report.Create)
		if err != nil {
			return err
		}
		l.dial = raw.committer
		l.requests = func(int) func() []byte { return func() []byte { return nil } }
		r.measure(ctx, name, "commit a create's keys and bytes, synced", &l)
		return raw.close()
	}
	return nil
}

// counters reads the node's metrics, nil when there are none to be had: then the
// Pebble limit goes by assumed figures, and says so.
func (r *run) counters(ctx context.Context) map[string]float64 {
	if r.node.MetricsURL == "" {
		return nil
	}
	c, err := counters(ctx, r.node.MetricsURL)
	if err != nil {
		_, _ = fmt.Fprintln(r.out, err)
	}
	return c
}
