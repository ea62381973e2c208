package actors

import (
	"math"
	"sync"
	"sync/atomic"
)

// passivationLatch counts who is inside and can be shut while nobody is. It is the state
// machine of passivation: a workspace's actor may be stopped only after its passivationLatch
// was shut, and a message is sent to it only from inside, so that none is ever
// sent to an actor that is gone.
//
//	n inside --enter, hold--> n+1 inside --leave, unhold--> n inside
//	0 inside --shut--> shut, for good: everyone is turned away
//
// The zero passivationLatch is open and empty.
type passivationLatch struct {
	inside atomic.Int64 // commands, and holds in units of oneHold
}

const (
	oneHold    = 1 << 32
	turnedAway = math.MinInt64 / 2 // far below zero: shut
)

// enter counts one more command inside, at most limit. When it lets none in, full
// reports whether the limit is the reason.
func (g *passivationLatch) enter(limit int) (ok, full bool) {
	for {
		switch n := g.inside.Load(); {
		case n < 0:
			return false, false
		case n%oneHold >= int64(limit):
			return false, true
		case g.inside.CompareAndSwap(n, n+1):
			return true, false
		}
	}
}

// leave counts one command less.
func (g *passivationLatch) leave() { g.inside.Add(-1) }

// hold keeps the latch from being shut for another reason than a command; false
// when it is shut.
func (g *passivationLatch) hold() bool {
	for {
		n := g.inside.Load()
		if n < 0 {
			return false
		}
		if g.inside.CompareAndSwap(n, n+oneHold) {
			return true
		}
	}
}

// unhold takes one hold back.
func (g *passivationLatch) unhold() { g.inside.Add(-oneHold) }

// shut shuts the latch if no command is inside.
func (g *passivationLatch) shut() bool { return g.inside.CompareAndSwap(0, turnedAway) }

// inflight counts what is going on, and tells when the last of it has ended after
// finish: for closing.
type inflight struct {
	going atomic.Int64
	once  sync.Once
	ended chan struct{}
}

// enter counts one more; false after finish.
func (d *inflight) enter() bool {
	if d.going.Add(1) > 0 {
		return true
	}
	d.leave()
	return false
}

// leave counts one less.
func (d *inflight) leave() {
	if d.going.Add(-1) == turnedAway {
		d.once.Do(func() { close(d.ended) })
	}
}

// finish lets nothing more in; ended is closed when all that is in has left. It
// is called once.
func (d *inflight) finish() {
	if d.going.Add(turnedAway) == turnedAway {
		d.once.Do(func() { close(d.ended) })
	}
}
