package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const fairName = "fair"

// fair measures what a flood of one tenant costs another. A quiet tenant reads one issue and creates
// others, at low rates, on connections of its own, while another tenant sends all that its connections
// carry. As many connections to a server that does nothing show how much of the cost is the machine's:
// the quiet tenant's p99 should be at most twice as long as there.
var fair = scenario{
	name: fairName, about: "a quiet tenant beside the flood of another", filled: true,
	measure: func(ctx context.Context, r *run, _ *scenario, connections int) error {
		q, err := newQuiet(r)
		if err != nil {
			return err
		}
		alone, err := q.measure(ctx, r.telling(fairName+": alone", quietConnections))
		if err != nil {
			return err
		}
		r.figure(&Figure{Scenario: fairName, About: "the quiet tenant alone, get p99", Value: alone.get, Unit: "ms"})
		r.figure(&Figure{Scenario: fairName, About: "the quiet tenant alone, create p99", Value: alone.create, Unit: "ms"})
		for i := range floods {
			if err := q.beside(ctx, &floods[i], connections); err != nil {
				r.figure(&Figure{Scenario: fairName, About: floods[i].name, Fault: err.Error()})
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	},
}

// Rates of the quiet tenant, in requests a second.
const (
	quietGets    = 100
	quietCreates = 25
	// quietConnections are those of each of the two, so that a slow answer does not hold up the next
	// request.
	quietConnections = 8
)

// quiet is the tenant that is measured.
type quiet struct {
	r    *run
	in   workspace
	path string // of the issue that it reads
	// floodFor is how long a flood has lasted when the quiet tenant begins.
	floodFor time.Duration
}

// quietTimes are p99s in milliseconds.
type quietTimes struct{ get, create float64 }

func newQuiet(r *run) (*quiet, error) {
	q := &quiet{r: r, in: r.world.many[0], floodFor: max(r.Warmup, settle/4)}
	d := r.world.dial()
	defer d.close()
	body, err := ask(d, request("POST", r.world.host, "/workspaces/"+q.in.id+"/issues", q.in.token, newIssueWriter(r.world.stream(0)).typical()), 201)
	if err != nil {
		return nil, err
	}
	id, ok := issueID(body)
	if !ok {
		return nil, fmt.Errorf("bench: an issue without an id: %.300s", body)
	}
	q.path = "/workspaces/" + q.in.id + "/issues/" + id
	return q, nil
}

// measure runs the quiet tenant's load. tell, if it is not nil, is told of its progress.
func (q *quiet) measure(ctx context.Context, tell func(Progress)) (quietTimes, error) {
	w := q.r.world
	read := request("GET", w.host, q.path, q.in.token, "")
	gets := load{dial: w.dial, connections: quietConnections, rate: quietGets, lasts: q.r.Duration, status: 200, requests: func(int) func() []byte { return func() []byte { return read } }, progress: tell}
	made := load{dial: w.dial, connections: quietConnections, rate: quietCreates, lasts: q.r.Duration, status: 201, requests: func(c int) func() []byte { return creates(w, []workspace{q.in}, c) }}
	created := make(chan *sample, 1)
	go func() { created <- made.run(ctx) }()
	got := gets.run(ctx)
	times, sent := quietTimes{get: p99(got)}, <-created
	times.create = p99(sent)
	for _, s := range []*sample{got, sent} {
		if s.errors > 0 {
			return times, fmt.Errorf("the quiet tenant had %d errors, the first: %s", s.errors, s.fault)
		}
	}
	return times, nil
}

func p99(s *sample) float64 { return float64(s.latency.ValueAtQuantile(99)) / 1000 }

// beside measures one flood, at the empty handler and then at the node: nothing of the flood goes on at the
// node while the empty handler is measured.
func (q *quiet) beside(ctx context.Context, f *flood, connections int) (err error) {
	base, err := q.besideEmpty(ctx, f.name, connections)
	if err != nil {
		return err
	}
	requests, end, err := f.begin(ctx, q.r)
	if err != nil {
		return err
	}
	if end != nil {
		defer func() { err = errors.Join(err, end()) }()
	}
	flooding := load{
		dial: q.r.world.dial, connections: connections, rate: f.rate, warmup: q.floodFor, lasts: q.r.Duration, status: f.status, requests: requests,
		progress: q.r.telling(fairName+": "+f.name, connections),
	}
	var times quietTimes
	flooded, err := q.flooded(ctx, &flooding, func() (err error) { times, err = q.measure(ctx, nil); return err })
	if err != nil {
		return err
	}
	about := fmt.Sprintf("beside %s (%.0f/s on %d connections): ", f.name, flooded.rate(), connections)
	q.r.figure(&Figure{Scenario: fairName, Value: times.create, Unit: "ms", About: about + "create p99"})
	one := Figure{Scenario: fairName, Value: times.get, Unit: "ms", About: about + "get p99"}
	if base > 0 {
		one.About += fmt.Sprintf(" %.2f ms, beside as many connections to an empty handler %.2f ms", times.get, base)
		one.Value, one.Unit, one.Target = times.get/base, "times as long", 2
	}
	q.r.figure(&one)
	return nil
}

// besideEmpty measures the quiet tenant's reads beside a flood of the empty handler; 0 if the run has
// none. name is that of the flood that follows.
func (q *quiet) besideEmpty(ctx context.Context, name string, connections int) (get float64, err error) {
	if q.r.empty == nil {
		return 0, nil
	}
	dial, host, err := dialer(q.r.empty.URL)
	if err != nil {
		return 0, err
	}
	same := load{dial: dial, connections: connections, warmup: q.floodFor, lasts: q.r.Duration, status: 200, requests: emptyRequests(host)}
	same.progress = q.r.telling(fairName+": the empty handler, before "+name, connections)
	_, err = q.flooded(ctx, &same, func() error {
		one := load{dial: dial, connections: quietConnections, rate: quietGets, lasts: q.r.Duration, status: 200, requests: emptyRequests(host)}
		get = p99(one.run(ctx))
		return nil
	})
	return get, err
}

// flooded runs a flood, and do once it has gone on for a while. It returns the flood's result. Errors
// of the flood itself are what a tenant that floods may expect.
func (q *quiet) flooded(ctx context.Context, flooding *load, do func() error) (*sample, error) {
	ended := make(chan *sample, 1)
	go func() { ended <- flooding.run(ctx) }()
	sleep(ctx, q.floodFor)
	err := do()
	s := <-ended
	if err == nil && flooding.answers.Load() == 0 {
		err = fmt.Errorf("the flood had no answers: %s", s.fault)
	}
	return s, err
}
