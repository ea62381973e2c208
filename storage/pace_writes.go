package storage

import (
	"math"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
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
type WritePace struct {
	sublevels func() int32

	mu     sync.Mutex
	looked time.Time // when the sublevels were counted
	rate   float64   // in bytes a second; +Inf: no wait
	free   time.Time // when what was taken so far has gone through at the rate
	waited time.Duration
}

func newWritePace(state *pebble.DB) *WritePace {
	return &WritePace{sublevels: func() int32 { return state.Metrics().Levels[0].Sublevels }}
}

// Wait returns how long a write of so many bytes should wait.
func (p *WritePace) Wait(bytes int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.looked) >= paceEvery {
		p.looked, p.rate = now, paceOf(p.sublevels())
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
