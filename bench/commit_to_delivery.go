package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// commitToDelivery is how long deliveries take under a light load. It has two results:
// from the answer to a create, which is sent when the event is committed, and from
// the sending of the create, which is the time until the world knows.
var commitToDelivery = scenario{
	name: "commit-to-delivery", about: "from the answer to a create to its deliveries' arrival", status: 201,
	p50Target: 5 * time.Millisecond,
	measure: func(ctx context.Context, r *run, s *scenario, connections int) (err error) {
		rate := r.Rate
		if rate == 0 {
			rate = lightLoad
		}
		t := newTracks(rate, r.Warmup+r.Duration, connections)
		h, err := hook(ctx, r.world, t.arrived)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.remove()) }()
		before := h.receiver.took.Load()
		l := load{
			dial: r.world.dial, connections: connections, rate: rate, lasts: r.Warmup + r.Duration, most: int64(len(t.of)), status: s.status,
			requests: func(c int) func() []byte { return t.creates(r.world, c) },
			answered: t.answered, progress: r.telling(s.name, connections),
		}
		measured := t.now() + int64(r.Warmup)
		made := l.run(ctx)
		h.await(ctx, before+t.answers.Load()*subscriptions, reachWithin)
		sinceAnswer, sinceSending := t.samples(made, measured)
		sinceAnswer.elapsed -= r.Warmup
		sinceSending.elapsed -= r.Warmup
		one := newResult(s.name, s.about, connections, rate, sinceAnswer)
		one.P50Target = float64(s.p50Target.Microseconds()) / 1000
		r.add(one)
		r.add(newResult(createToDelivery, "from the sending of a create to its deliveries' arrival", connections, rate, sinceSending))
		return nil
	},
}

// createToDelivery is the name of the second result.
const createToDelivery = "create-to-delivery"

const (
	// lightLoad is how many creates a second there are unless Config.Rate says it.
	lightLoad = 200
	// mostTracks bounds the creates that are followed, 40 bytes each.
	mostTracks = 1 << 17
)

// tracks follow creates to their deliveries.
type tracks struct {
	start time.Time
	of    []track
	taken atomic.Int64
	// at is the track of the create that each connection waits for.
	at      []int64
	answers atomic.Int64
}

// track has the times of one create, in nanoseconds since the start; 0 for never.
type track struct {
	sent, answered atomic.Int64
	arrived        [subscriptions]atomic.Int64
}

func newTracks(rate float64, lasts time.Duration, connections int) *tracks {
	n := min(rate*lasts.Seconds()+1, mostTracks)
	return &tracks{start: time.Now(), of: make([]track, int(n)), at: make([]int64, connections)}
}

func (t *tracks) now() int64 { return max(int64(time.Since(t.start)), 1) }

// titled is the text in front of a create's number, in the request and in the event.
var titled = []byte(`"title":"Track `)

// creates is creates with the number of the track in the title.
func (t *tracks) creates(w *world, connection int) func() []byte {
	next := createsMarked(w, []workspace{w.hooked}, connection, "Track "+strings.Repeat("0", numberDigits)+" ")
	return func() []byte {
		r := next()
		n := t.taken.Add(1) - 1
		i := bytes.Index(r, titled) + len(titled)
		number(r[i:i+numberDigits], n)
		t.at[connection] = n
		t.of[n].sent.Store(t.now())
		return r
	}
}

func (t *tracks) answered(connection int, _ []byte) {
	t.of[t.at[connection]].answered.Store(t.now())
	t.answers.Add(1)
}

// arrived notes the first time that an event comes to a webhook.
func (t *tracks) arrived(path, body []byte) {
	now := t.now()
	_, rest, ok := bytes.Cut(body, titled)
	if !ok || len(rest) < numberDigits || len(path) != 2 {
		return
	}
	n := 0
	for _, c := range rest[:numberDigits] {
		if c < '0' || c > '9' {
			return
		}
		n = n*10 + int(c-'0')
	}
	if hook := int(path[1]) - '0'; n < len(t.of) && hook >= 0 && hook < subscriptions {
		t.of[n].arrived[hook].CompareAndSwap(0, now)
	}
}

// samples returns how long deliveries took, for creates sent from a moment on: since the
// answer and since sending. A delivery that came before the answer took no time.
func (t *tracks) samples(made *sample, measured int64) (sinceAnswer, sinceSending *sample) {
	a := &sample{latency: newHistogram(), errors: made.errors, fault: made.fault, elapsed: made.elapsed}
	s := &sample{latency: newHistogram()}
	missing := 0
	for i := range t.of {
		one := &t.of[i]
		sent, answered := one.sent.Load(), one.answered.Load()
		if answered == 0 || sent < measured {
			continue
		}
		for h := range one.arrived {
			arrived := one.arrived[h].Load()
			if arrived == 0 {
				missing++
				continue
			}
			a.requests++
			for _, of := range []struct {
				in   *sample
				from int64
			}{{a, answered}, {s, sent}} {
				_ = of.in.latency.RecordValue(min(max((arrived-of.from)/1000, lowestLatency), highestLatency))
			}
		}
	}
	a.errors += int64(missing)
	if missing > 0 && a.fault == "" {
		a.fault = fmt.Sprintf("%d deliveries had not come %s after the last create", missing, reachWithin)
	}
	s.requests, s.errors, s.fault, s.elapsed = a.requests, a.errors, a.fault, a.elapsed
	return a, s
}
