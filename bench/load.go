package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// doer sends one request and gives the answer. The body is valid until the next
// call.
type doer interface {
	do(request []byte) (status int, body []byte, err error)
	close()
}

// load is one measurement.
type load struct {
	dial        func() doer
	connections int
	rate        float64 // requests a second; 0: closed loop
	warmup      time.Duration
	lasts       time.Duration // without the warm-up
	most        int64         // bound on the number of requests; 0: none
	status      int           // what a good answer has
	// requests makes a connection's source of requests; each is used up before the
	// next is asked for.
	requests func(connection int) func() []byte
	// talks replaces status and requests.
	talks func(connection int) talk
	// progress, when it is not nil, is called once a second and at the end, from one
	// goroutine.
	progress func(Progress)
	// answered sees every good answer's body, from the connection's goroutine.
	answered func(connection int, body []byte)

	answers, faults atomic.Int64 // so far, for progress
}

// sample is the result of a measurement.
type sample struct {
	latency  *hdrhistogram.Histogram // microseconds; those of an open load include requests that were late, or not sent
	requests int64                   // answered well within the measured time
	errors   int64                   // at any time
	fault    string                  // the first of them
	elapsed  time.Duration
	late     *hdrhistogram.Histogram // of requests sent in time and answered after it
	// timeline has the requests answered well within the measured time, by parts of it;
	// nil for a load without a set time. Only the sum of all connections has one.
	timeline *timeline
}

func newSample() *sample { return &sample{latency: newHistogram(), late: newHistogram()} }

func (s *sample) rate() float64 {
	if s.elapsed <= 0 {
		return 0
	}
	return float64(s.requests) / s.elapsed.Seconds()
}

// Latencies are kept from 1 us to 60 s with three digits.
const (
	lowestLatency  = 1
	highestLatency = 60_000_000
	latencyDigits  = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(lowestLatency, highestLatency, latencyDigits)
}

// micros is a latency as it is kept.
func micros(d time.Duration) int64 {
	return min(max(d.Microseconds(), lowestLatency), highestLatency)
}

// givesUp is how many errors in a row end a connection's work: the server is gone.
const givesUp = 50

// errorPause keeps a connection from spinning on errors.
const errorPause = 20 * time.Millisecond

// run carries the measurement out and returns when all its connections are done.
func (l *load) run(ctx context.Context) *sample {
	start := time.Now()
	p := newPacer(start, l.warmup+l.lasts, l.rate, l.most)
	if l.lasts == 0 { // as long as it takes
		p.end = start.Add(time.Hour)
	}
	parts, line := make([]*sample, l.connections), newTimeline(l.lasts)
	stop := l.report(start)
	defer stop()
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { parts[i] = l.connection(ctx, i, p, line.writer()) })
	}
	all.Wait()
	total := newSample()
	total.timeline, total.elapsed = line, time.Since(start)-l.warmup
	for _, s := range parts {
		total.latency.Merge(s.latency)
		total.requests += s.requests
		total.errors += s.errors
		total.late.Merge(s.late)
		if total.fault == "" {
			total.fault = s.fault
		}
	}
	switch {
	case l.lasts == 0:
	case total.requests > 0:
		total.elapsed = min(total.elapsed, l.lasts)
		if l.rate > 0 && total.errors == 0 {
			// A stall at the end counts for every request that was due, too.
			total.latency.Merge(total.late)
			p.unsent(l.warmup, func(waited time.Duration, n int64) { _ = total.latency.RecordValues(micros(waited), n) })
		}
	default: // no answer came in time, and late ones are a rate too
		total.requests, total.latency = total.late.TotalCount(), total.late
		total.timeline = nil
	}
	if err := ctx.Err(); err != nil && total.fault == "" {
		total.errors, total.fault = total.errors+1, err.Error()
	}
	return total
}

// connection does one connection's share.
func (l *load) connection(ctx context.Context, index int, p *pacer, line *timelineWriter) *sample {
	s := newSample()
	defer line.flush()
	t := l.talk(index)
	d := l.dial()
	defer d.close()
	measured := p.start.Add(l.warmup)
	failed := 0
	for ctx.Err() == nil && failed < givesUp {
		asked := time.Now()
		due, more := p.take(asked)
		if !more {
			break
		}
		sent := asked
		if due.After(asked) {
			if !sleep(ctx, due.Sub(asked)) {
				break
			}
			sent = time.Now()
		}
		request, want := t.next()
		status, body, err := d.do(request)
		now := time.Now()
		if err == nil && status != want {
			err = fmt.Errorf("status %d, want %d: %.300s", status, want, body)
		}
		if err == nil {
			err = t.heard(body)
		}
		if err != nil {
			failed++
			s.errors++
			l.faults.Add(1)
			if s.fault == "" {
				s.fault = err.Error()
			}
			sleep(ctx, errorPause)
			continue
		}
		failed = 0
		l.answers.Add(1)
		from := sent
		if l.rate > 0 {
			from = began(due, asked, sent)
		}
		if due.Before(measured) {
			continue
		}
		took := micros(now.Sub(from))
		if now.After(p.end) {
			_ = s.late.RecordValue(took)
			continue
		}
		s.requests++
		_ = s.latency.RecordValue(took)
		line.count(now.Sub(measured), took)
	}
	return s
}

// talk returns the requests of a connection.
func (l *load) talk(index int) talk {
	if l.talks != nil {
		return l.talks(index)
	}
	next := l.requests(index)
	return talk{
		next: func() ([]byte, int) { return next(), l.status },
		heard: func(body []byte) error {
			if l.answered != nil {
				l.answered(index, body)
			}
			return nil
		},
	}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
