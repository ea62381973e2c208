package bench

import (
	"context"
	"strconv"
)

// bulkItems is the number of issues in one request of bulk.
const bulkItems = 100

// bulk creates issues a hundred at a time, in many workspaces: a request is one command and
// one durable write. Its rate is in issues, so that it can be judged by that of creates.
var bulk = scenario{
	name: "bulk", about: "create 100 issues in a request, in many workspaces; the rate is of issues",
	limit: createMany.name, target: 5, status: 201,
	measure: func(ctx context.Context, r *run, s *scenario, connections int) error {
		l := load{
			dial: r.world.dial, connections: connections, warmup: r.Warmup, lasts: r.Duration, status: s.status,
			rate:     r.Rate / bulkItems,
			requests: func(c int) func() []byte { return bulks(r.world, r.world.many, c) },
			progress: r.telling(s.name, connections),
		}
		one := newResult(s.name, s.about, connections, r.Rate, l.run(ctx))
		one.Rate *= bulkItems
		for i := range one.Timeline {
			one.Timeline[i] *= bulkItems
		}
		if r.Rate == 0 {
			one.Limit, one.Target = s.limit, s.target
		}
		r.add(one)
		return nil
	},
}

// bulks gives requests that create bulkItems issues each. The workspaces differ in size as
// those of creates do.
func bulks(w *world, in []workspace, connection int) func() []byte {
	issues := newIssueWriter(w.stream(connection))
	tenants := zipf(len(in))
	var body, r []byte
	return func() []byte {
		to := in[0]
		if len(in) > 1 {
			to = in[tenants.draw(issues.random)]
		}
		body = issues.appendItems(body[:0], bulkItems, nil)
		r = appendRequest(r[:0], "POST", w.host, "/workspaces/"+to.id+"/issues/bulk", to.token, body)
		return r
	}
}

// appendItems appends the JSON of a request for n issues. more, if it is not nil, returns
// further properties of an item, each after a comma.
func (w *issueWriter) appendItems(b []byte, n int, more func(item int) string) []byte {
	b = append(b, `{"items":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = w.appendIssue(b)
		if more != nil {
			b = append(append(b[:len(b)-1], more(i)...), '}')
		}
	}
	return append(b, `]}`...)
}

// itemRef is the ref of an item.
func itemRef(item int) string { return "item-" + strconv.Itoa(item) }
