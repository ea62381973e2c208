package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// server is a fake connection whose answers take a set time.
type server struct {
	takes  func(n int64) time.Duration
	status int
	err    error
	asked  *atomic.Int64
}

func (s *server) do([]byte) (int, []byte, error) {
	n := s.asked.Add(1)
	time.Sleep(s.takes(n)) // the bubble's clock
	return s.status, nil, s.err
}

func (s *server) close() {}

func steady(d time.Duration) func(int64) time.Duration { return func(int64) time.Duration { return d } }

func loadOn(s *server, connections int) *load {
	s.asked = &atomic.Int64{}
	if s.status == 0 {
		s.status = 200
	}
	return &load{
		dial: func() doer { return s }, connections: connections, status: 200,
		requests: func(int) func() []byte { return func() []byte { return nil } },
	}
}

func near(got, want, by float64) bool { return got >= want-by && got <= want+by }

func TestLoad_ClosedAsksWhenAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: steady(10 * time.Millisecond)}
		l := loadOn(s, 4)
		l.warmup, l.lasts = time.Second, 2*time.Second
		found := l.run(t.Context())
		if !near(found.rate(), 400, 4) || found.errors != 0 {
			t.Errorf("%.0f/s, %d errors; want 400/s", found.rate(), found.errors)
		}
		if asked := s.asked.Load(); !near(float64(asked), 1200, 8) {
			t.Errorf("asked %d times, want 1200 with the warm-up", asked)
		}
		if p50 := found.latency.ValueAtQuantile(50); !near(float64(p50), 10_000, 20) {
			t.Errorf("p50 %d us", p50)
		}
	})
}

func TestLoad_OpenKeepsItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loadOn(&server{takes: steady(time.Millisecond)}, 8)
		l.rate, l.lasts = 100, 5*time.Second
		found := l.run(t.Context())
		if !near(found.rate(), 100, 1) {
			t.Errorf("%.1f/s, want 100/s", found.rate())
		}
		if p99 := found.latency.ValueAtQuantile(99); !near(float64(p99), 1000, 5) {
			t.Errorf("p99 %d us: waiting for the time is no latency", p99)
		}
	})
}

// A server that stalls for a second makes everyone wait who would have come in
// that second. A closed load would have seen one slow answer.
func TestLoad_OpenFeelsAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loadOn(&server{takes: func(n int64) time.Duration {
			if n == 100 {
				return time.Second
			}
			return time.Millisecond
		}}, 1)
		l.rate, l.lasts = 100, 10*time.Second
		found := l.run(t.Context())
		if !near(found.rate(), 100, 2) {
			t.Errorf("%.1f/s, want 100/s: the load catches up", found.rate())
		}
		if most := found.latency.Max(); !near(float64(most), 1_000_000, 2000) {
			t.Errorf("the longest took %d us, want 1 s", most)
		}
		// A hundred of a thousand were due within the stall, and waited half of it.
		slow := int64(0)
		for _, b := range found.latency.Distribution() {
			if b.From > 50_000 {
				slow += b.Count
			}
		}
		if slow < 80 || slow > 120 {
			t.Errorf("%d requests felt the stall, want about 100", slow)
		}
	})
}

// Requests that were due in a stall at the end count, although no answer to them comes in time.
func TestLoad_OpenFeelsAStallAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loadOn(&server{takes: func(n int64) time.Duration {
			if n == 1051 {
				return time.Second
			}
			return time.Millisecond
		}}, 1)
		l.rate, l.warmup, l.lasts = 100, time.Second, 10*time.Second
		found := l.run(t.Context())
		if found.requests != 950 || !near(found.rate(), 95, 0.1) {
			t.Errorf("%d requests, %.1f/s; want 950 that were answered in time", found.requests, found.rate())
		}
		if n := found.latency.TotalCount(); n != 1000 {
			t.Errorf("%d latencies, want those of all 1000 that were due", n)
		}
		// 50 waited from half a second to a whole one.
		if p96, most := found.latency.ValueAtQuantile(96), found.latency.Max(); p96 < 500_000 || !near(float64(most), 1_000_000, 2000) {
			t.Errorf("p96 %d us, the longest took %d us", p96, most)
		}
	})
}

func TestLoad_OpenBeyondWhatTheServerCan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: steady(100 * time.Millisecond)}
		l := loadOn(s, 2)
		l.rate, l.lasts = 1000, 3*time.Second
		found := l.run(t.Context())
		if !near(found.rate(), 20, 1) {
			t.Errorf("%.1f/s, want the server's 20/s", found.rate())
		}
		if most := found.latency.Max(); most < 2_500_000 {
			t.Errorf("the longest took %d us: the queue in front of the connections counts", most)
		}
	})
}

func TestLoad_EndsAfterAsManyAsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: steady(time.Millisecond)}
		l := loadOn(s, 3)
		l.most = 100
		found := l.run(t.Context())
		if s.asked.Load() != 100 || found.requests != 100 {
			t.Errorf("asked %d times, counted %d, want 100", s.asked.Load(), found.requests)
		}
	})
}

// A server that needs longer than the measurement still has a rate.
func TestLoad_CountsLateAnswersWhereNoneIsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loadOn(&server{takes: steady(5 * time.Second)}, 2)
		l.lasts = time.Second
		found := l.run(t.Context())
		if found.requests != 2 || found.elapsed != 5*time.Second || found.latency.Max() < 4_990_000 {
			t.Errorf("%d requests in %s, the slowest in %d us; want 2 in 5s", found.requests, found.elapsed, found.latency.Max())
		}
	})
}

func TestLoad_CountsErrors(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*server{
		"another status": {status: 503, takes: steady(time.Millisecond)},
		"no answer":      {err: errors.New("connection reset"), takes: steady(time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := loadOn(s, 2)
				l.lasts = time.Hour // a server that is gone ends it sooner
				found := l.run(t.Context())
				if found.errors != 2*givesUp || found.requests != 0 || found.fault == "" {
					t.Errorf("%+v", found)
				}
				if one := newResult("x", "", 2, 0, found); one.Valid() {
					t.Error("a figure with errors is valid")
				}
			})
		})
	}
}

func TestLoad_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		l := loadOn(&server{takes: steady(time.Millisecond)}, 2)
		l.rate, l.lasts = 1, time.Hour
		began := time.Now()
		if found := l.run(ctx); found.errors == 0 {
			t.Error("a load cut short is valid")
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("went on for %s", took)
		}
	})
}

func TestBegan(t *testing.T) {
	t.Parallel()
	due := time.Unix(100, 0)
	for _, c := range []struct {
		name        string
		asked, woke time.Duration // after due
		want        time.Duration
	}{
		{"a connection that was late", 5 * time.Second, 5 * time.Second, 0},
		{"on time", -time.Second, 0, 0},
		{"woken within the timer's grain", -time.Second, 300 * time.Microsecond, 300 * time.Microsecond},
		{"woken long after", -time.Second, time.Minute, timerGrain},
		{"asked just then", 0, 0, 0},
	} {
		if got := began(due, due.Add(c.asked), due.Add(c.woke)).Sub(due); got != c.want {
			t.Errorf("%s: counts from %s after it was due, want %s", c.name, got, c.want)
		}
	}
}

func TestPacer_Unsent(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for _, c := range []struct {
		name         string
		rate         float64
		most         int64
		lasts, late  time.Duration // late: when the second request is asked for
		warmup       time.Duration
		count        int64
		least, total time.Duration
	}{
		{"none", 4, 0, second, second / 2, 0, 0, 0, 0},
		{"all but the first", 4, 0, second, second, 0, 3, second / 4, 3 * second / 2},
		{"those behind the warm-up", 4, 0, second, second, second / 2, 2, second / 4, 3 * second / 4},
		{"as many as there may be", 4, 2, second, second, 0, 1, 3 * second / 4, 3 * second / 4},
		{"of a closed load", 0, 0, second, second, 0, 0, 0, 0},
	} {
		start := time.Unix(100, 0)
		p := newPacer(start, c.lasts, c.rate, c.most)
		p.take(start)
		p.take(start.Add(c.late))
		var count int64
		least, total := time.Hour, time.Duration(0)
		p.unsent(c.warmup, func(waited time.Duration, n int64) {
			count, least, total = count+n, min(least, waited), total+waited*time.Duration(n)
		})
		if count == 0 {
			least = 0
		}
		if count != c.count || least != c.least || total != c.total {
			t.Errorf("%s: %d waited %s at least, %s in all; want %d, %s, %s", c.name, count, least, total, c.count, c.least, c.total)
		}
	}
	// Of a great number the times are rounded down.
	start := time.Unix(100, 0)
	p := newPacer(start, time.Second, 1e6, 0)
	p.take(start)
	p.take(start.Add(time.Second))
	calls, count := 0, int64(0)
	p.unsent(0, func(waited time.Duration, n int64) {
		if calls, count = calls+1, count+n; waited <= 0 {
			t.Errorf("waited %s", waited)
		}
	})
	if count != 1e6-1 || calls > unsentSteps+200 {
		t.Errorf("%d requests in %d calls", count, calls)
	}
}

func TestPacer(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	p := newPacer(start, time.Second, 4, 0)
	for i := range 4 {
		due, more := p.take(start)
		if want := start.Add(time.Duration(i) * 250 * time.Millisecond); !more || !due.Equal(want) {
			t.Errorf("request %d is due %s, %v; want %s", i, due, more, want)
		}
	}
	if due, more := p.take(start); more {
		t.Errorf("one more is due %s, after the end", due)
	}
	p = newPacer(start, time.Second, 0, 3)
	for i := range 4 {
		now := start.Add(time.Duration(i) * time.Millisecond)
		if due, more := p.take(now); more != (i < 3) || more && !due.Equal(now) {
			t.Errorf("closed request %d is due %s, %v", i, due, more)
		}
	}
	p = newPacer(start, time.Second, 0, 0)
	if _, more := p.take(start.Add(time.Second)); !more {
		t.Error("the first request comes late and is not sent")
	}
	if _, more := p.take(start.Add(time.Second)); more {
		t.Error("a second request after the end")
	}
}
