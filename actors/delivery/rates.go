package delivery

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Rate limits webhook deliveries per second, by their number and by the bytes
// of their bodies; 0 is no limit. The burst is five seconds' worth.
type Rate struct{ Requests, Bytes int }

const (
	rateBurst = 5 // in seconds
	// leastBurst is more than the largest body of a delivery, in bytes, so that each
	// can be reserved as a whole.
	leastBurst = 1 << 20
	// hostsKept limits the hosts that have buckets.
	hostsKept = 1 << 14
)

// rateBuckets are the token buckets of one workspace or host; nil means no limit.
type rateBuckets struct{ requests, bytes *rate.Limiter }

// buckets returns full buckets.
func (r Rate) buckets() *rateBuckets {
	if r == (Rate{}) {
		return nil
	}
	b := &rateBuckets{}
	if r.Requests > 0 {
		b.requests = rate.NewLimiter(rate.Limit(r.Requests), rateBurst*r.Requests)
	}
	if r.Bytes > 0 {
		b.bytes = rate.NewLimiter(rate.Limit(r.Bytes), max(rateBurst*r.Bytes, leastBurst))
	}
	return b
}

// reserve takes a delivery's tokens from the buckets and returns the time that it has
// to wait. Tokens are reserved in order, so each delivery waits once.
func (b *rateBuckets) reserve(now time.Time, bytes int) (wait time.Duration) {
	if b == nil {
		return 0
	}
	if b.requests != nil {
		wait = b.requests.ReserveN(now, 1).DelayFrom(now)
	}
	if b.bytes != nil {
		wait = max(wait, b.bytes.ReserveN(now, min(bytes, b.bytes.Burst())).DelayFrom(now))
	}
	return wait
}

// full reports whether the buckets are full, and so equal new ones.
func (b *rateBuckets) full(now time.Time) bool {
	return (b.requests == nil || b.requests.TokensAt(now) >= float64(b.requests.Burst())) &&
		(b.bytes == nil || b.bytes.TokensAt(now) >= float64(b.bytes.Burst()))
}

// hostRates are the buckets of recent hosts, over all workspaces of the node.
type hostRates struct {
	rate Rate

	mu      sync.Mutex
	buckets map[string]*rateBuckets
	sweepAt int // number of hosts at which full buckets are dropped
}

func newHostRates(r Rate) *hostRates {
	return &hostRates{rate: r, buckets: map[string]*rateBuckets{}, sweepAt: hostsKept / 16}
}

func (h *hostRates) reserve(host string, now time.Time, bytes int) time.Duration {
	if h.rate == (Rate{}) {
		return 0
	}
	h.mu.Lock()
	b := h.buckets[host]
	if b == nil {
		if len(h.buckets) >= h.sweepAt {
			h.sweep(now)
		}
		b = h.rate.buckets()
		h.buckets[host] = b
	}
	h.mu.Unlock()
	return b.reserve(now, bytes)
}

// sweep drops the full buckets, and arbitrary ones if there are too many. The next
// sweep is at twice the number that is left, which spreads the cost.
func (h *hostRates) sweep(now time.Time) {
	for host, b := range h.buckets {
		if b.full(now) {
			delete(h.buckets, host)
		}
	}
	for host := range h.buckets {
		if len(h.buckets) < hostsKept {
			break
		}
		delete(h.buckets, host)
	}
	h.sweepAt = min(max(2*len(h.buckets), hostsKept/16), hostsKept)
}

// reservation is a delivery with reserved tokens that is not sent yet.
type reservation struct {
	delivery storage.ID
	host     string // host whose tokens it has; empty: it has the workspace's only
}

// hold reserves a delivery's tokens of its workspace and then of its host, and returns
// the time until which it has to wait; zero: it may be sent. The host comes second, so
// that a workspace over its own rate takes no tokens from the others.
func (d *Dispatcher) hold(l *queue, p tracker.PendingDelivery, host string, bytes int) (until time.Time) {
	if l.hook.space.rates == nil && d.of.hosts.rate == (Rate{}) {
		return time.Time{}
	}
	now := d.of.cfg.Clock()
	if l.reserved.delivery != p.ID {
		l.reserved = reservation{delivery: p.ID}
		if wait := l.hook.space.rates.reserve(now, bytes); wait > 0 {
			return now.Add(wait)
		}
	}
	if l.reserved.host != host {
		l.reserved.host = host
		if wait := d.of.hosts.reserve(host, now, bytes); wait > 0 {
			return now.Add(wait)
		}
	}
	l.reserved = reservation{}
	return time.Time{}
}
