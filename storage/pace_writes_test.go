package storage

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// pacedAt is a pace of a state with a number of sublevels, which it has counted.
func pacedAt(sublevels *int32) *WritePace {
	p := newWritePace(func() int32 { return *sublevels })
	recount(p)
	return p
}

// recount has the pace count the sublevels again. The clock is that of a bubble.
func recount(p *WritePace) {
	time.Sleep(paceEvery)
	p.Wait(0)
	synctest.Wait()
}

func TestWritePace_SlowsDownWithTheSublevels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const batch = 64 << 10
		last := math.Inf(1)
		for levels := int32(slowedLevels); levels < stopLevels; levels += halvedEvery {
			p := pacedAt(&levels)
			began, bytes := time.Now(), 0
			for time.Since(began) < 10*time.Second {
				time.Sleep(p.Wait(batch)) // of the bubble
				bytes += batch
			}
			rate := float64(bytes) / time.Since(began).Seconds()
			if want := paceOf(levels); rate > 1.05*want+batch/10 || rate < 0.95*want-batch/10 {
				t.Errorf("%d sublevels: %.0f bytes a second, want %.0f", levels, rate, want)
			}
			if rate > 0.6*last {
				t.Errorf("%d sublevels: %.0f bytes a second after %.0f", levels, rate, last)
			}
			last = rate
		}
		if last > 1<<20 {
			t.Errorf("just before writes stop: %.0f bytes a second", last)
		}
	})
}

func TestWritePace_IsFreeWhileCompactionsKeepUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		levels := int32(slowedLevels - 1)
		p := pacedAt(&levels)
		for range 1000 {
			if wait := p.Wait(64 << 20); wait != 0 {
				t.Fatalf("a write waits for %s", wait)
			}
		}
		// Earlier writes do not count when compactions fall behind.
		levels = slowedLevels
		recount(p)
		if wait := p.Wait(1); wait != 0 {
			t.Errorf("the first write waits for %s", wait)
		}
	})
}

// A write never waits for long, and a pace forgets its debt once compactions have caught up.
func TestWritePace_BoundsOneWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		levels := int32(stopLevels)
		p := pacedAt(&levels)
		for range 10 {
			if wait := p.Wait(64 << 20); wait > longestPace {
				t.Fatalf("a write waits for %s", wait)
			}
		}
		if wait := p.Wait(1); wait != longestPace {
			t.Errorf("behind 640 MiB a write waits for %s", wait)
		}
		if got, want := p.Waited(), 10*longestPace; got != want { // the first one did not wait
			t.Errorf("all waited for %s, want %s", got, want)
		}
		levels = 0
		recount(p)
		if wait := p.Wait(1); wait != 0 {
			t.Errorf("after compactions have caught up a write waits for %s", wait)
		}
		levels = slowedLevels
		recount(p)
		if wait := p.Wait(1); wait != 0 {
			t.Errorf("an old debt of %s is left", wait)
		}
	})
}

// A count that takes long, since Pebble syncs its manifest, holds up no write.
func TestWritePace_CountsBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counted := make(chan int32)
		p := newWritePace(func() int32 { return <-counted })
		for range 3 {
			if wait := p.Wait(64 << 20); wait != 0 {
				t.Fatalf("a write waits for %s", wait)
			}
			time.Sleep(paceEvery) // of the bubble
		}
		counted <- stopLevels
		synctest.Wait()
		p.Wait(64 << 20)
		if wait := p.Wait(1); wait != longestPace {
			t.Errorf("a write waits for %s after the count", wait)
		}
		synctest.Wait() // the next count has begun
		go func() { counted <- 0 }()
		p.close()
		if wait := p.Wait(1); wait != 0 {
			t.Errorf("a write waits for %s after the last count", wait)
		}
	})
}
