package storage

import (
	"math"
	"sync"
	"time"
)

const (
	// slowedLevels is the number of sublevels of level 0 of the state from which writes slow down:
	// compactions have worked at full speed since urgentLevels, and don't keep up.
	slowedLevels = 12
	// slowedRate is the rate of writes in bytes a second at that number. It halves with every
	// halvedEvery sublevels more.
	slowedRate  = 64 << 20
	halvedEvery = 3
	// stopLevels is the number at which Pebble lets every write wait until a compaction has ended, for
	// seconds. Writes are below a MiB a second before.
	stopLevels = 40
	// paceEvery is how often the sublevels are counted.
	paceEvery = 100 * time.Millisecond
	// longestPace bounds the wait of one write.
	longestPace = time.Second
)

// WritePace slows writes down while compactions of the state fall behind, so that they never come to
// the point at which Pebble stops all of them for seconds.
//
// It counts the sublevels on a goroutine of its own, which close waits for: Pebble's metrics wait while
// it writes the manifest, which ends with a sync, and writes would wait with them.
type WritePace struct {
	sublevels func() int32
	looks     sync.WaitGroup

	mu      sync.Mutex
	looked  time.Time // when the last count began
	looking bool      // it goes on
	closed  bool
	rate    float64   // in bytes a second; +Inf: no wait
	free    time.Time // when what was taken so far has gone through at the rate
	waited  time.Duration
}

func newWritePace(sublevels func() int32) *WritePace {
	return &WritePace{sublevels: sublevels, rate: math.Inf(1)}
}

// look counts the sublevels.
func (p *WritePace) look() {
	rate := paceOf(p.sublevels())
	p.mu.Lock()
	p.rate, p.looking = rate, false
	p.mu.Unlock()
}

// close returns when no count goes on, and none begins any more.
func (p *WritePace) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.looks.Wait()
}

// Wait returns how long a write of so many bytes should wait.
func (p *WritePace) Wait(bytes int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.looked) >= paceEvery && !p.looking && !p.closed {
		p.looked, p.looking = now, true
		p.looks.Go(p.look)
	}
	if math.IsInf(p.rate, 1) {
		p.free = now
		return 0
	}
	if p.free.Before(now) {
		p.free = now
	}
	wait := min(p.free.Sub(now), longestPace)
	p.free = p.free.Add(time.Duration(float64(bytes) / p.rate * float64(time.Second)))
	p.waited += wait
	return wait
}

// Waited returns the sum of all waits.
func (p *WritePace) Waited() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waited
}

// paceOf returns the rate of writes in bytes a second at a number of sublevels.
func paceOf(sublevels int32) float64 {
	if sublevels < slowedLevels {
		return math.Inf(1)
	}
	return slowedRate * math.Exp2(-float64(sublevels-slowedLevels)/halvedEvery)
}
