package cluster

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// leaderWatchdog makes followers notice soon that their leader is silent. Raft checks at times of
// its own, up to three time-outs after the leader's last message, and members that still trust the
// leader refuse to vote: the slowest member decides when the shard has an owner again. The watchdog
// makes every follower check as soon as the time-out has passed, one after another, so that they do
// not compete. It also paces the heartbeats of an idle node, see relax.go, and looks after leaders
// whose disk is stuck, see stuck.go.
//
// It comes to every group many times a second, so a group at which nothing is due must cost a few
// loads from memory and no lock.
type leaderWatchdog struct {
	each  func(func(*group))       // calls with those that run
	idle  func(now time.Time) bool // reports whether the node has nothing to do
	quit  chan struct{}
	ended chan struct{}
}

// Times of the leader watchdog. Followers hear from their leader at moments that differ by up to
// two tenths of a time-out.
const (
	watchdogTick = electionTimeout / 20
	watchdogTurn = electionTimeout / 8 // between the followers of a group
)

func (v *leaderWatchdog) run() {
	defer close(v.ended)
	tick := time.NewTicker(watchdogTick)
	defer tick.Stop()
	var busyUntil time.Time
	last := time.Now()
	for ticks := 0; ; ticks++ {
		select {
		case <-tick.C:
			now := time.Now()
			if now.Sub(last) > lateTicks*watchdogTick {
				busyUntil = now.Add(busyFor)
			}
			last = now
			idle, beat := now.After(busyUntil) && v.idle(now), ticks%beatTicks == 0
			v.each(func(g *group) {
				g.checkLeader(now)
				if g.raft.State() == raft.Leader {
					g.pace(idle, beat)
				}
				g.checkProgress()
			})
		case <-v.quit:
			return
		}
	}
}

func (v *leaderWatchdog) stop() {
	close(v.quit)
	<-v.ended
}

// checkLeader makes Raft check the leader that has been silent for the election timeout, once per
// silence. The leader watchdog calls it.
func (g *group) checkLeader(now time.Time) {
	state := g.raft.State()
	if state == raft.Candidate && g.relaxed.Load() {
		g.tighten()
	}
	if state != raft.Follower {
		g.silentFrom = time.Time{} // what it heard before it led says nothing
		return
	}
	if now.Before(g.silentFrom) {
		return
	}
	heard := g.heard()
	if g.silentFrom = heard.Add(electionTimeout); now.Before(g.silentFrom) {
		if leader, _ := g.raft.LeaderWithID(); leader != "" {
			g.relax()
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
	if now.Before(g.silentFrom.Add(time.Duration(turn) * watchdogTurn)) {
		return
	}
	g.checkedContact = heard
	g.tighten()
}
