package actors

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// arrivals counts a receiver's requests and wakes a waiter at a number: polling would
// take processor time from the measured code.
type arrivals struct {
	mu  sync.Mutex
	one *sync.Cond
	n   int64
}

func newArrivals() *arrivals {
	a := &arrivals{}
	a.one = sync.NewCond(&a.mu)
	return a
}

func (a *arrivals) add() {
	a.mu.Lock()
	a.n++
	a.mu.Unlock()
	a.one.Broadcast()
}

func (a *arrivals) count() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

func (a *arrivals) await(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.n < n {
		a.one.Wait()
	}
}

// benchPost returns an engine that delivers over HTTP to a receiver in this process.
func benchPost(b *testing.B) (*deliveryFixture, *httptest.Server, *arrivals) {
	b.Helper()
	got := newArrivals()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got.add()
	}))
	s.Config.SetKeepAlivesEnabled(true)
	s.Start()
	b.Cleanup(s.Close)
	bench := setup(b, func(c *Config) {
		c.OpenOnboarding = true
		c.Webhooks.Policy = tracker.WebhookPolicy{AllowHTTP: true, AllowPrivate: true}
	})
	return &deliveryFixture{testEngine: bench}, s, got
}

// BenchmarkDispatcher_Backlog measures deliveries per second over real connections,
// with recording: of existing events, to 3 webhooks of each of some workspaces.
func BenchmarkDispatcher_Backlog(b *testing.B) {
	for _, workspaces := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d workspaces", workspaces), func(b *testing.B) {
			p, s, got := benchPost(b)
			const hooks = 3
			var homes []onboarded
			for n := range workspaces {
				o := p.onboard("w-" + strconv.Itoa(n))
				homes = append(homes, o)
				for h := range hooks {
					p.subscribe(o, s.URL+"/"+strconv.Itoa(h))
				}
			}
			each := b.N/(workspaces*hooks) + 1
			b.ResetTimer()
			var writers sync.WaitGroup
			for _, o := range homes {
				for range max(1, 32/workspaces) {
					writers.Go(func() { p.issues(o, each/max(1, 32/workspaces)+1) })
				}
			}
			writers.Wait()
			written, used := b.Elapsed(), cpu(b)
			before := got.count()
			total := int64(workspaces * hooks * (each/max(1, 32/workspaces) + 1) * max(1, 32/workspaces))
			got.await(total)
			b.StopTimer()
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "deliveries/s")
			if left := total - before; left > 100 { // left when the last event was written
				b.ReportMetric(float64(left)/(b.Elapsed()-written).Seconds(), "backlog/s")
				b.ReportMetric(float64((cpu(b)-used).Microseconds())/float64(left), "cpu-µs/delivery")
			}
			b.ReportMetric(float64(p.engine.Stats().Deliveries.Records)/float64(total), "records/delivery")
		})
	}
}

// BenchmarkDispatcher_CommitToDelivery measures the time from an event's commit to the
// request at the receiver, for one event at a time.
func BenchmarkDispatcher_CommitToDelivery(b *testing.B) {
	arrived := make(chan time.Time, 1)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- time.Now() }))
	defer s.Close()
	p, _, _ := benchPost(b)
	o := p.onboard("home")
	p.subscribe(o, s.URL)
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		p.issues(o, 1)
		committed := time.Now()
		took = append(took, (<-arrived).Sub(committed))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkDispatcher_Create measures creations with webhooks whose receivers answer at
// once.
func BenchmarkDispatcher_Create(b *testing.B) {
	for _, hooks := range []int{0, 3} {
		b.Run(fmt.Sprintf("%d webhooks", hooks), func(b *testing.B) {
			p, s, got := benchPost(b)
			o := p.onboard("home")
			for h := range hooks {
				p.subscribe(o, s.URL+"/"+strconv.Itoa(h))
			}
			b.SetParallelism(32)
			b.ResetTimer()
			used := cpu(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p.issues(o, 1)
				}
			})
			b.ReportMetric(float64((cpu(b)-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(got.count())/float64(b.N), "deliveries/op")
		})
	}
}

// cpu returns the processor time of this process, including the receiver.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
