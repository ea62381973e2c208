package actors

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Runs that follow each other need one goroutine. The bubble ends only when the workers have.
func TestWorkers_AreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w workers
		ran := 0
		for range 1000 {
			w.Schedule(func() { ran++ })
			synctest.Wait()
			if len(w.idle) != 1 {
				t.Fatalf("%d workers wait after run %d", len(w.idle), ran)
			}
		}
		if ran != 1000 {
			t.Errorf("%d of 1000 runs", ran)
		}
		w.end()
	})
}

// Runs at the same time have a goroutine each, of which a bounded number is kept.
func TestWorkers_AreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 3 * maxIdleWorkers
		var w workers
		var ran atomic.Int64
		held := make(chan struct{})
		for range runs {
			w.Schedule(func() { ran.Add(1); <-held })
		}
		synctest.Wait()
		if n := ran.Load(); n != runs {
			t.Fatalf("%d of %d runs have begun", n, runs)
		}
		close(held)
		synctest.Wait()
		if len(w.idle) != maxIdleWorkers {
			t.Errorf("%d workers wait, want %d", len(w.idle), maxIdleWorkers)
		}
		w.end()
	})
}

// A mailbox may be scheduled while the engine closes and after it: it runs, and no worker is left.
func TestWorkers_RunAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w workers
		held := make(chan struct{})
		ran := 0
		w.Schedule(func() { <-held })
		synctest.Wait()
		w.end()
		w.Schedule(func() { ran++ })
		close(held)
		synctest.Wait()
		if ran != 1 || len(w.idle) != 0 {
			t.Errorf("%d runs after the end, %d workers wait", ran, len(w.idle))
		}
	})
}
