package processors

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// managed runs a manager of a process that takes a share of a processor, in a bubble.
func managed(t *testing.T, test func(set chan int, share *atomic.Int64)) {
	synctest.Test(t, func(t *testing.T) {
		wake = make(chan struct{}, 1) // of the bubble
		noted.Store(false)
		set, share := make(chan int, 9), new(atomic.Int64)
		used := time.Duration(0)
		m := manager{set: func(n int) { set <- n }, used: func() (time.Duration, bool) {
			took := time.Duration(share.Load())
			used += took
			return used, took >= 0
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go m.run(ctx)
		if got := <-set; got != count+spare {
			t.Errorf("%d at first", got)
		}
		test(set, share)
		cancel()
		if got := <-set; got != count+spare {
			t.Errorf("%d at the end", got)
		}
	})
}

// want returns what was set in the time, and fails if it is not so; 0: nothing.
func want(t *testing.T, set chan int, after time.Duration, want int) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	select {
	case got := <-set:
		if got != want {
			t.Errorf("%d at once, want %d", got, want)
		}
	default:
		if want != 0 {
			t.Errorf("not set to %d", want)
		}
	}
}

// An idle process runs one goroutine at once, until somebody waits for its work or it has much to do.
func TestManage(t *testing.T) {
	managed(t, func(set chan int, share *atomic.Int64) {
		want(t, set, lookEvery-1, 0)
		want(t, set, 1, 1)
		want(t, set, time.Hour, 0)
		Note()
		want(t, set, 0, count+spare)
		Note()
		want(t, set, lookEvery, 0) // noted since the last look
		want(t, set, lookEvery, 1)
		share.Store(int64(lookEvery/idleShare + 1))
		want(t, set, lookEvery, count+spare)
		want(t, set, time.Hour, 0)
		share.Add(-1)
		want(t, set, lookEvery, 1)
		share.Store(-1) // not known
		want(t, set, lookEvery, count+spare)
	})
}

// A note right before the manager looks counts.
func TestManage_NotedBeforeALook(t *testing.T) {
	managed(t, func(set chan int, _ *atomic.Int64) {
		for range 5 {
			want(t, set, lookEvery-1, 0)
			Note()
			want(t, set, 1, 0)
		}
		want(t, set, lookEvery, 1)
	})
}

func TestCount(t *testing.T) {
	if Count() != runtime.GOMAXPROCS(0) {
		t.Errorf("%d processors, and Go runs %d goroutines at once", Count(), runtime.GOMAXPROCS(0))
	}
	if used, ok := Used(); ok && used <= 0 {
		t.Errorf("the process has taken %v", used)
	}
}
