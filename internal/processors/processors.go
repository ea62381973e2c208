// Package processors knows how many processors the process may use, and sets how many
// goroutines Go runs at once.
//
// Go runs as many goroutines at once as there are processors. In a node that is busy on
// all of them that costs more than it seems. A goroutine that waits for the disk keeps its
// place until Go's monitor takes it away. And while all places are taken by goroutines that
// compute, such as compactions, Go asks the network for new requests every 10 ms only. With
// a few more places than processors the kernel decides who runs, and a request that comes in
// goes before a goroutine that has computed for long.
//
// An idle process has one place. With more of them each timer wakes several threads, which
// look for work and find none: a third of what an idle node does. It is also the time to give
// memory back to the kernel.
//
// Bounds on work that computes are by Count, not by runtime.GOMAXPROCS.
package processors

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// count is read before anything changes it.
var count = runtime.GOMAXPROCS(0)

// Count returns the number of processors that the process may use: that of the machine, the
// limit of its cgroup, or GOMAXPROCS in the environment.
func Count() int { return count }

const (
	// spare is the number of goroutines that run at once beside one for each processor.
	spare = 6
	// lookEvery is the time between two looks at whether the process is idle: nobody has called
	// Note, and it took at most an idleShare-th of a processor.
	lookEvery = 5 * time.Second
	idleShare = 4
	// A release of memory takes time in proportion to the memory in use, so after each the next
	// one waits restAfter times as long as it took.
	restAfter = 100
)

var (
	noted atomic.Bool              // Note was called since the last look
	wake  = make(chan struct{}, 1) // Note was called for the first time since
)

// Note says that there is work that somebody waits for. It costs a load from memory.
func Note() {
	if noted.Load() || noted.Swap(true) {
		return
	}
	select {
	case wake <- struct{}{}:
	default: // one is pending
	}
}

// Manage sets how many goroutines Go runs at once, until ctx ends: a few more than there are
// processors, and one while the process is idle. GOMAXPROCS in the environment wins. It calls
// release, on a goroutine of its own, when the process has become idle after work, and returns
// when that has ended. It is called once. From then on Go follows no changes of the cgroup's limit.
func Manage(ctx context.Context, release func()) {
	m := manager{set: func(n int) { runtime.GOMAXPROCS(n) }, used: Used, release: release}
	if os.Getenv("GOMAXPROCS") != "" {
		m.set = func(int) {}
	}
	m.run(ctx)
}

// manager decides whether the process is idle.
type manager struct {
	set     func(goroutines int)
	used    func() (processorTime time.Duration, ok bool) // since the start of the process
	release func()

	idle      bool
	worked    bool               // since the last release began
	releasing bool               // a goroutine does
	released  chan time.Duration // how long it took
	next      time.Time          // the earliest time of the next release
}

func (m *manager) run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	m.released = make(chan time.Duration)
	defer func() {
		m.set(count + spare)
		if m.releasing {
			<-m.released
		}
	}()
	m.set(count + spare)
	m.worked = true
	before, _ := m.used()
	for {
		select {
		case <-wake:
			m.setIdle(false)
		case <-look.C:
			now, ok := m.used()
			m.setIdle(!noted.Swap(false) && ok && now-before <= lookEvery/idleShare)
			before = now
			if m.idle && m.worked && !m.releasing && !time.Now().Before(m.next) {
				m.worked, m.releasing = false, true
				go func() {
					began := time.Now()
					m.release()
					m.released <- time.Since(began)
				}()
			}
		case took := <-m.released:
			m.releasing, m.next = false, time.Now().Add(restAfter*took)
		case <-ctx.Done():
			return
		}
	}
}

func (m *manager) setIdle(idle bool) {
	if idle == m.idle {
		return
	}
	if m.idle = idle; idle {
		m.set(1)
	} else {
		m.worked = true
		m.set(count + spare)
	}
}
