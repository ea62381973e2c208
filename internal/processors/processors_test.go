package processors

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// managed is a manager in a bubble, of a process that takes a share of a processor.
type managed struct {
	set      chan int
	share    atomic.Int64
	released atomic.Int64
	hold     chan struct{} // a release waits until it is closed
}

func manage(t *testing.T, test func(p *managed)) {
	synctest.Test(t, func(t *testing.T) {
		wake = make(chan struct{}, 1) // of the bubble
		noted.Store(false)
		p := &managed{set: make(chan int, 9), hold: make(chan struct{})}
		used := time.Duration(0)
		m := manager{set: func(n int) { p.set <- n }, used: func() (time.Duration, bool) {
			took := time.Duration(p.share.Load())
			used += took
			return used, took >= 0
		}, release: func() {
			p.released.Add(1)
			<-p.hold
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go m.run(ctx)
		if got := <-p.set; got != count+spare {
			t.Errorf("%d at first", got)
		}
		test(p)
		cancel()
		if got := <-p.set; got != count+spare {
			t.Errorf("%d at the end", got)
		}
	})
}

// want fails unless a number was set in the time; 0: none.
func (p *managed) want(t *testing.T, after time.Duration, want int) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	select {
	case got := <-p.set:
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
	manage(t, func(p *managed) {
		close(p.hold)
		p.want(t, lookEvery-1, 0)
		p.want(t, 1, 1)
		p.want(t, time.Hour, 0)
		Note()
		p.want(t, 0, count+spare)
		Note()
		p.want(t, lookEvery, 0) // noted since the last look
		p.want(t, lookEvery, 1)
		p.share.Store(int64(lookEvery/idleShare + 1))
		p.want(t, lookEvery, count+spare)
		p.want(t, time.Hour, 0)
		p.share.Add(-1)
		p.want(t, lookEvery, 1)
		p.share.Store(-1) // not known
		p.want(t, lookEvery, count+spare)
	})
}

// A note right before the manager looks counts.
func TestManage_NotedBeforeALook(t *testing.T) {
	manage(t, func(p *managed) {
		close(p.hold)
		for range 5 {
			p.want(t, lookEvery-1, 0)
			Note()
			p.want(t, 1, 0)
		}
		p.want(t, lookEvery, 1)
	})
}

// A process that has become idle after work gives memory back, but not again and again.
func TestManage_Releases(t *testing.T) {
	manage(t, func(p *managed) {
		released := func(want int64, when string) {
			t.Helper()
			if got := p.released.Load(); got != want {
				t.Errorf("released %d times %s, want %d", got, when, want)
			}
		}
		work := func() {
			t.Helper()
			Note()
			p.want(t, 0, count+spare)
			p.want(t, 2*lookEvery, 1)
		}
		p.want(t, lookEvery, 1)
		released(1, "when it was idle at first")
		work()
		p.want(t, 10*lookEvery, 0)
		released(1, "before the end of the first")
		close(p.hold)
		// It took 12 looks, so the next one waits for 1,200.
		work()
		p.want(t, 1197*lookEvery, 0)
		released(1, "soon after the end of the first")
		p.want(t, lookEvery, 0)
		released(2, "after that time")
		p.want(t, time.Hour, 0)
		released(2, "without work")
		work()
		released(3, "after work")
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
