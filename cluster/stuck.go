package cluster

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// A leader whose disk takes no more writes goes on sending heartbeats, which Raft does on
// goroutines of their own: nobody else is elected, and every write waits. So a leader that makes no
// progress falls silent, and the other voters elect one of them. Nothing is lost by that: it is what
// the others see when a node dies.

const (
	// stuckAfter is how long an entry may wait for this node's disk.
	stuckAfter = 5 * time.Second
	// deafAfter is how long Raft's own goroutine may take no request meanwhile.
	deafAfter = time.Second
)

// progress is what a leader's watchdog sees of one group, at one moment.
type progress struct {
	now       int64  // nanoseconds
	waiting   int64  // since when the oldest entry in flight waits; 0: there is none
	applied   uint64 // newest entry in the state
	committed uint64 // newest entry that a quorum has
	hears     bool   // Raft's own goroutine has just taken a request
}

// stuckWatch decides whether a leader's disk is stuck. Its zero value begins at the next progress. The
// leader watchdog owns it.
type stuckWatch struct {
	applied   uint64
	appliedAt int64 // when applied was first seen
	heardAt   int64 // when Raft's goroutine last took a request, or its silence began to count
}

// stuck reports whether an entry waits for this node itself: for its state machine, which has not
// applied what is committed, or for its log, whose writes Raft's own goroutine waits for. An entry
// that waits for the other voters is none of its disk's business.
func (s *stuckWatch) stuck(p progress) bool {
	if *s == (stuckWatch{}) || p.waiting == 0 || p.now-p.waiting < int64(stuckAfter) {
		*s = stuckWatch{applied: p.applied, appliedAt: p.now, heardAt: p.now}
		return false
	}
	if p.applied != s.applied {
		s.applied, s.appliedAt = p.applied, p.now
	}
	if p.hears {
		s.heardAt = p.now
	}
	return p.now-s.heardAt >= int64(deafAfter) || p.committed > p.applied && p.now-s.appliedAt >= int64(stuckAfter)
}

// checkProgress silences a leader that is stuck, for as long as it is one. The leader watchdog calls
// it.
func (g *group) checkProgress() {
	waiting := g.commit.waiting.since.Load()
	if declaring := g.declaring.since.Load(); waiting == 0 || declaring != 0 && declaring < waiting {
		waiting = declaring
	}
	if waiting == 0 && !g.stuck.Load() { // as nearly always: an idle shard must cost nearly nothing
		g.watch = stuckWatch{}
		return
	}
	p := progress{now: g.tuning.clock(), waiting: waiting, applied: g.machine.applied.Load(), committed: g.raft.CommitIndex()}
	leads := g.raft.State() == raft.Leader
	if leads && waiting != 0 && p.now-waiting >= int64(stuckAfter) {
		p.hears = g.tracking.probe()
	}
	stuck := g.watch.stuck(p)
	g.stuck.Store(stuck)
	silent := stuck && leads && g.hasOthers()
	if g.tracking.silent.Swap(silent) != silent && silent {
		g.logger.Error("entries of this shard wait for the disk: the leadership is left to another voter", "waits", time.Duration(p.now-waiting).Round(time.Millisecond))
	}
}

// hasOthers reports whether the group has other voters.
func (g *group) hasOthers() bool {
	voters, _, err := g.members()
	return err == nil && len(voters) > 1
}

// waitClock records since when something waits.
type waitClock struct{ since atomic.Int64 } // nanoseconds; 0: nothing does

func (w *waitClock) begin(now int64) { w.since.Store(max(now, 1)) }
func (w *waitClock) end()            { w.since.Store(0) }

// endOf ends the waiting that began at a time, unless another one has begun since.
func (w *waitClock) endOf(began int64) { w.since.CompareAndSwap(max(began, 1), 0) }
