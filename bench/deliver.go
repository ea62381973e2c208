package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// deliver works off a backlog of webhook deliveries to a receiver in the generator's
// process. The creates that make it are not measured.
var deliver = scenario{
	name: "deliver", about: "deliver events to 3 webhooks, with a backlog", status: 201,
	rateTarget: 5000,
	measure: func(ctx context.Context, r *run, s *scenario, connections int) (err error) {
		h, err := hook(ctx, r.world, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.remove()) }()
		one := r.deliveries(ctx, s, h, connections)
		one.RateTarget = s.rateTarget
		r.add(one)
		return nil
	},
}

const (
	// backlog is how many issues are created, if that takes no longer than
	// backlogWithin or Config.Duration; each is delivered to every webhook.
	backlog       = 20_000
	backlogWithin = 6 * time.Second
	// drainWithin is how long the deliveries are measured at most; drainSilent is how
	// long none has to come for those that are left to be lost.
	drainWithin = 10 * time.Second
	drainSilent = 2 * time.Second
)

// deliveries makes a backlog and measures what is delivered of it from then on. If
// hardly any is left by then, the node kept up, and all are counted.
func (r *run) deliveries(ctx context.Context, s *scenario, h *hooks, connections int) Result {
	var created atomic.Int64
	l := load{
		dial: r.world.dial, connections: connections, lasts: min(backlogWithin, r.Duration), most: backlog, status: s.status,
		requests: func(c int) func() []byte { return creates(r.world, []workspace{r.world.hooked}, c) },
		answered: func(int, []byte) { created.Add(1) }, progress: r.telling(s.name, connections),
	}
	began, before := time.Now(), h.receiver.took.Load()
	made := l.run(ctx)
	from, ended := h.receiver.took.Load(), time.Now()
	all := before + created.Load()*subscriptions
	_, _ = fmt.Fprintf(r.out, "  %d creates in %.1f s, beside them %.0f deliveries/s\n",
		created.Load(), ended.Sub(began).Seconds(), float64(from-before)/ended.Sub(began).Seconds())

	last, at := from, ended
	for last < all && ctx.Err() == nil && time.Since(ended) < drainWithin && time.Since(at) < drainSilent {
		sleep(ctx, countPoll)
		if now := h.receiver.took.Load(); now > last {
			last, at = now, time.Now()
		}
	}
	found := &sample{latency: newHistogram(), errors: made.errors, fault: made.fault, requests: last - from, elapsed: at.Sub(ended)}
	if (last-from)*10 < all-before {
		found.requests, found.elapsed = last-before, max(at.Sub(began), time.Microsecond)
		_, _ = fmt.Fprintln(r.out, "  there was no backlog to speak of: all deliveries count, as many as the creates allowed")
	}
	if left := all - last; left > 0 && time.Since(at) >= drainSilent {
		found.errors += left
		if found.fault == "" {
			found.fault = fmt.Sprintf("%d of %d deliveries did not come", left, all-before)
		}
	}
	if err := ctx.Err(); err != nil && found.fault == "" {
		found.errors, found.fault = found.errors+1, err.Error()
	}
	return newResult(s.name, s.about, connections, 0, found)
}
