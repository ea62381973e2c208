package cluster

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/cluster/placement"
)

// A leader whose disk takes no more writes goes on sending heartbeats, which Raft does on
// goroutines of their own: nobody else is elected, and every write waits. So a leader that makes no
// progress falls silent, and the other voters elect one of them. Nothing is lost by that: it is what
// the others see when a node dies. All replicas of a node write to one disk, so once one of them waits, the
// node leaves all shards that it leads, and should lead nothing.

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

// checkProgress silences a leader that is stuck, or whose node has a disk that hangs, for as long as it is
// one. The leader watchdog calls it.
func (g *group) checkProgress(hangs bool) {
	waiting := g.commit.waiting.since.Load()
	if declaring := g.declaring.since.Load(); waiting == 0 || declaring != 0 && declaring < waiting {
		waiting = declaring
	}
	if waiting == 0 && !g.stuck.Load() { // as nearly always: an idle shard must cost nearly nothing
		g.watch = stuckWatch{}
		if hangs || g.tracking.silent.Load() {
			g.silence(hangs)
		}
		return
	}
	p := progress{now: g.tuning.clock(), waiting: waiting, applied: g.machine.applied.Load(), committed: g.raft.CommitIndex()}
	if g.raft.State() == raft.Leader && waiting != 0 && p.now-waiting >= int64(stuckAfter) {
		p.hears = g.tracking.probe()
	}
	stuck := g.watch.stuck(p)
	g.stuck.Store(stuck)
	g.silence(stuck || hangs)
}

// silence silences this member if it leads other voters, or ends that.
func (g *group) silence(silent bool) {
	silent = silent && g.raft.State() == raft.Leader && g.hasOthers()
	if g.tracking.silent.Swap(silent) != silent && silent {
		g.logger.Error("this node's disk takes no writes: the leadership of the shard is left to another voter")
	}
}

// diskHangs reports whether writes of some replica have waited for this node's disk for stuckAfter. The leader
// watchdog asks each time it wakes up, so that diskHasHung knows of each time.
func (n *Node) diskHangs() bool {
	for i := range n.groups {
		if g := n.groups[i].Load(); g != nil && g.up.Load() && g.diskHangs() {
			n.diskHungAt.Store(max(n.tuning.clock(), 1))
			return true
		}
	}
	return false
}

// diskHasHung reports whether the disk has hung within placement.HangRest, since this process began.
func (n *Node) diskHasHung() bool {
	at := n.diskHungAt.Load()
	return at != 0 && n.tuning.clock()-at < int64(placement.HangRest)
}

func (g *group) diskHangs() bool { return g.stuck.Load() || g.log.Waits() >= stuckAfter }

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
