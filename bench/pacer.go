package bench

import (
	"sync/atomic"
	"time"
)

// pacer hands out the requests of one measurement: when each is due, and none
// after the end. It is shared by all connections.
type pacer struct {
	start, end time.Time
	gap        time.Duration // between two requests; 0: each is due when it is asked for
	most       int64         // 0: no bound on their number
	taken      atomic.Int64
	sent       atomic.Int64 // those that were handed out
	// late is the time from the start, in nanoseconds, to the first refusal of a request that was due:
	// all connections were busy until the end. 0: there was none.
	late atomic.Int64
}

func newPacer(start time.Time, lasts time.Duration, rate float64, most int64) *pacer {
	p := &pacer{start: start, end: start.Add(lasts), most: most}
	if rate > 0 {
		p.gap = time.Duration(float64(time.Second) / rate)
	}
	return p
}

// take returns the moment the next request is due, and reports whether there is one.
// There always is a first one, so that a busy machine has a slow figure and not none.
func (p *pacer) take(now time.Time) (time.Time, bool) {
	n := p.taken.Add(1) - 1
	if p.most > 0 && n >= p.most {
		return time.Time{}, false
	}
	due := now
	if p.gap > 0 {
		due = p.start.Add(time.Duration(n) * p.gap)
	}
	if n > 0 && !(due.Before(p.end) && now.Before(p.end)) {
		if due.Before(p.end) {
			p.late.CompareAndSwap(0, int64(now.Sub(p.start)))
		}
		return due, false
	}
	p.sent.Add(1)
	return due, true
}

// unsentSteps bounds the calls of unsent's function.
const unsentSteps = 10_000

// unsent calls tell for the requests of an open load that were due behind the warm-up and before the end, and
// not sent: each time with a number of them, and the least time that they have waited.
func (p *pacer) unsent(warmup time.Duration, tell func(waited time.Duration, n int64)) {
	late := time.Duration(p.late.Load())
	if late == 0 || p.gap == 0 {
		return
	}
	before := func(d time.Duration) int64 { return int64((d + p.gap - 1) / p.gap) } // requests due before d
	last := before(p.end.Sub(p.start))
	if p.most > 0 {
		last = min(last, p.most)
	}
	next := max(p.sent.Load(), before(warmup))
	step := max(1, (last-next)/unsentSteps)
	for next < last {
		n := min(step, last-next)
		next += n
		tell(late-time.Duration(next-1)*p.gap, n)
	}
}

// timerGrain is how late a sleeping connection may wake up by the operating
// system's timers alone.
const timerGrain = time.Millisecond

// began is the moment a request's latency counts from: when it was due, however
// late a busy connection came to it. Only what a connection that was free overslept
// is its own fault and left out, up to the timer's grain.
func began(due, asked, woke time.Time) time.Time {
	if !due.After(asked) { // the connection was late itself: the wait counts
		return due
	}
	if late := woke.Sub(due); late > timerGrain {
		return due.Add(timerGrain)
	}
	return woke
}
