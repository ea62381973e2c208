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
// not compete. It also looks after leaders whose disk is stuck, see stuck.go.
//
// It comes to every group many times a second, so a group at which nothing is due must cost a few
// loads from memory and no lock.
type leaderWatchdog struct {
	each  func(func(*group)) // calls with those that run
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
	for {
		select {
		case <-tick.C:
			now := time.Now()
			v.each(func(g *group) {
				g.checkLeader(now)
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
	if g.raft.State() != raft.Follower {
		g.silentFrom = time.Time{} // what it heard before it led says nothing
		return
	}
	if now.Before(g.silentFrom) {
		return
	}
	heard := g.raft.LastContact()
	if heard.Before(g.started) {
		heard = g.started
	}
	g.silentFrom = heard.Add(electionTimeout)
	if heard.Equal(g.checkedContact) || now.Before(g.silentFrom) {
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
	// Lowering Raft's time-outs makes Raft check them at once.
	settings := g.raft.ReloadableConfig()
	for _, timeout := range []time.Duration{electionTimeout + time.Millisecond, electionTimeout} {
		settings.HeartbeatTimeout, settings.ElectionTimeout = timeout, timeout
		if err := g.raft.ReloadConfig(settings); err != nil {
			g.logger.Warn("make Raft check its leader", "error", err)
			return
		}
	}
}
