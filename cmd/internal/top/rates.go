package top

import (
	"math"
	"time"

	"switchyard/httpapi"
)

// rates are the changes of a node's counters in a second between two readings. They are
// NaN if there is no earlier reading of the same process.
type rates struct {
	answered, reads, writes, forwarded, unavailable, failed float64
	cpu                                                     float64 // share of the processors, 0 to 1
}

func ratesOf(before, now *httpapi.NodeLoad) rates {
	unknown := math.NaN()
	r := rates{unknown, unknown, unknown, unknown, unknown, unknown, unknown}
	if before == nil || now == nil || before.StartedAt != now.StartedAt || now.UptimeMs <= before.UptimeMs {
		return r
	}
	seconds := float64(now.UptimeMs-before.UptimeMs) / 1000
	rate := func(counter func(*httpapi.RequestLoad) uint64) float64 {
		return (float64(counter(&now.Requests)) - float64(counter(&before.Requests))) / seconds
	}
	r.answered = rate(func(l *httpapi.RequestLoad) uint64 { return l.Answered })
	r.reads = rate(func(l *httpapi.RequestLoad) uint64 { return l.Reads })
	r.writes = rate(func(l *httpapi.RequestLoad) uint64 { return l.Writes })
	r.forwarded = rate(func(l *httpapi.RequestLoad) uint64 { return l.Forwarded })
	r.unavailable = rate(func(l *httpapi.RequestLoad) uint64 { return l.Unavailable })
	r.failed = rate(func(l *httpapi.RequestLoad) uint64 { return l.Failed })
	if now.CPUMs != nil && before.CPUMs != nil && now.CPUs > 0 {
		r.cpu = float64(*now.CPUMs-*before.CPUMs) / 1000 / seconds / float64(now.CPUs)
	}
	return r
}

// totals are the sums over the nodes that told their load.
type totals struct {
	rates
	created, running, waiting, deliveries uint64
	oldest                                time.Duration // of the sessions that are created; negative if there is none
}

// totalsOf adds up. A node without an earlier reading adds no rates; without any such node
// all rates are unknown.
func totalsOf(before, now *Reading) totals {
	t := totals{oldest: -1}
	known := false
	for name, load := range now.Loads {
		s := load.Sessions
		t.created, t.running, t.waiting, t.deliveries = t.created+s.Created, t.running+s.Running, t.waiting+s.Waiting, t.deliveries+load.PendingDeliveries
		if s.OldestCreatedSeconds != nil {
			t.oldest = max(t.oldest, time.Duration(*s.OldestCreatedSeconds)*time.Second)
		}
		r := ratesOf(before.load(name), load)
		if math.IsNaN(r.answered) {
			continue
		}
		known = true
		t.answered, t.reads, t.writes = t.answered+r.answered, t.reads+r.reads, t.writes+r.writes
		t.forwarded, t.unavailable, t.failed = t.forwarded+r.forwarded, t.unavailable+r.unavailable, t.failed+r.failed
	}
	if !known {
		t.rates = ratesOf(nil, nil)
	}
	return t
}

// load returns the load of a node, or nil.
func (r *Reading) load(name string) *httpapi.NodeLoad {
	if r == nil {
		return nil
	}
	return r.Loads[name]
}
