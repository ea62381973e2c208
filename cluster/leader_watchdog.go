package cluster

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// leaderWatchdog makes followers notice soon that their leader is silent. Raft checks at times of
// its own, up to three time-outs after the leader's last message, and members that still trust the
// leader refuse to vote: the slowest member decides when the shard has an owner again. The watchdog
// makes every follower check as soon as the time-out has passed, one after another, so that they do
// not compete. It also paces the heartbeats of an idle node, see relax.go, looks after the followers of
// a group in which nothing is committed, see quiet.go, and after leaders whose disk is stuck, see
// stuck.go.
//
// It comes to every group many times a second, so a group at which nothing is due must cost a few
// loads from memory and no lock. On an idle node it comes to a group only when something may be due:
// the memory of hundreds of groups, which nothing else reads, is in no cache of the processor.
type leaderWatchdog struct {
	groups []atomic.Pointer[group]  // by shard
	idle   func(now time.Time) bool // reports whether the node has nothing to do
	hangs  func() bool              // reports whether the node's disk hangs
	quit   chan struct{}
	ended  chan struct{}
	steps  sync.WaitGroup // of checkFollowers
}

// Times of the leader watchdog. Followers hear from their leader at moments that differ by up to
// two tenths of a time-out.
const (
	watchdogTick = electionTimeout / 20
	watchdogTurn = electionTimeout / 8 // between the followers of a group
)

func newLeaderWatchdog(n *Node) *leaderWatchdog {
	return &leaderWatchdog{groups: n.groups, idle: n.isIdle, hangs: n.diskHangs, quit: make(chan struct{}), ended: make(chan struct{})}
}

func (v *leaderWatchdog) run() {
	defer close(v.ended)
	due := time.Now().Add(watchdogTick)
	timer := time.NewTimer(watchdogTick)
	defer timer.Stop()
	var busyUntil, beatAt time.Time
	hangs := false
	next := make([]time.Time, len(v.groups)) // when to come to each group, if the node is idle
	for {
		select {
		case <-timer.C:
			now := time.Now()
			if now.Sub(due) > lateTicks*watchdogTick {
				busyUntil = now.Add(busyFor)
			}
			idle, beat := now.After(busyUntil) && v.idle(now), !now.Before(beatAt)
			if beat {
				beatAt = now.Add(beatEvery)
			}
			if !idle || beat {
				hangs = v.hangs()
			}
			earliest := beatAt
			for i := range v.groups {
				g := v.groups[i].Load()
				if g == nil {
					continue
				}
				if (!idle || beat || !now.Before(next[i])) && g.up.Load() {
					next[i] = v.check(g, now, idle, beat, hangs)
				}
				if next[i].Before(earliest) {
					earliest = next[i]
				}
			}
			due = now.Add(watchdogTick)
			if idle && earliest.After(due) {
				due = earliest
			}
			timer.Reset(time.Until(due))
		case <-v.quit:
			return
		}
	}
}

// check does what is due at a group, and returns when to come again if the node is idle. It comes to
// every group with each beat, too.
func (v *leaderWatchdog) check(g *group, now time.Time, idle, beat, hangs bool) (next time.Time) {
	g.checkLeader(now)
	switch g.raft.State() {
	case raft.Leader:
		g.pace(idle, beat)
		g.checkFollowers(beat, &v.steps)
		if g.isRelaxed() {
			next = now.Add(beatEvery)
		}
	case raft.Follower:
		if g.isRelaxed() {
			next = g.silentFrom
		}
	}
	g.checkProgress(hangs)
	return next
}

func (v *leaderWatchdog) stop() {
	close(v.quit)
	<-v.ended
}

// awaitSteps returns when nothing that the watchdog began is under way. It was stopped, and the groups
// were.
func (v *leaderWatchdog) awaitSteps(ctx context.Context) error {
	return within(ctx, func() error { v.steps.Wait(); return nil })
}

// checkLeader makes Raft check the leader that has been silent for the election timeout, once per
// silence. The leader watchdog calls it.
func (g *group) checkLeader(now time.Time) {
	state := g.raft.State()
	if state == raft.Candidate && g.isRelaxed() {
		g.tighten()
	}
	if state != raft.Follower {
		g.silentFrom = time.Time{} // what it heard before it led says nothing
		return
	}
	if g.isFilling() || now.Before(g.silentFrom) {
		return
	}
	heard := g.heard()
	if g.silentFrom = heard.Add(electionTimeout); now.Before(g.silentFrom) {
		if leader, _ := g.raft.LeaderWithID(); leader != "" {
			g.relax(followerTimeout)
		}
		return
	}
	if heard.Equal(g.checkedContact) {
		return
	}
	voters, _, err := g.members()
	if err != nil || len(voters) < 2 {
		return
	}
	leader, _ := g.raft.LeaderWithID()
	voters = slices.DeleteFunc(voters, func(voter string) bool { return voter == string(leader) })
	slices.Sort(voters)
	place := slices.Index(voters, g.node)
	if place < 0 {
		return
	}
	turn := (place + int(g.shard)) % len(voters)
	if now.Before(g.silentFrom.Add(time.Duration(turn)*watchdogTurn)) || g.awaitsCandidate() {
		return
	}
	g.checkedContact = heard
	g.stood.Store(g.tuning.clock())
	g.tighten()
}
