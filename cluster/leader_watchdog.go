package cluster

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// leaderWatchdog has followers notice in time that their leader is silent. Raft looks at
// moments of its own, up to three time-outs after the last word, and members that
// still believe in the leader refuse to vote: the slowest of them decides when a
// shard has an owner again. Here every follower is made to look as soon as the
// time-out has passed, one after another so that they do not compete.
type leaderWatchdog struct {
	groups func() []*group
	quit   chan struct{}
	ended  chan struct{}
}

// Times of a leaderWatchdog. Followers hear from their leader at moments that differ by up
// to two tenths of a time-out.
const (
	watchdogTick = electionTimeout / 20
	watchdogTurn = electionTimeout / 4 // between a group's members
)

func (v *leaderWatchdog) run() {
	defer close(v.ended)
	tick := time.NewTicker(watchdogTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, g := range v.groups() {
				if g.up.Load() {
					g.checkLeader()
				}
			}
		case <-v.quit:
			return
		}
	}
}

func (v *leaderWatchdog) stop() {
	close(v.quit)
	<-v.ended
}

// checkLeader has the member look for its leader when that has been silent for too long,
// once per silence: from then on Raft takes care. It belongs to the leaderWatchdog.
func (g *group) checkLeader() {
	heard := g.raft.LastContact()
	if heard.Before(g.started) {
		heard = g.started
	}
	if heard.Equal(g.checkedContact) || time.Since(heard) < electionTimeout || g.raft.State() != raft.Follower {
		return
	}
	voters, _, err := g.members()
	if err != nil || len(voters) < 2 {
		return
	}
	slices.Sort(voters)
	place := slices.Index(voters, g.node)
	if place < 0 {
		return
	}
	turn := (place + int(g.shard)) % len(voters)
	if time.Since(heard) < electionTimeout+time.Duration(turn)*watchdogTurn {
		return
	}
	g.checkedContact = heard
	// Raft looks at once when its time-outs are lowered.
	settings := g.raft.ReloadableConfig()
	for _, timeout := range []time.Duration{electionTimeout + time.Millisecond, electionTimeout} {
		settings.HeartbeatTimeout, settings.ElectionTimeout = timeout, timeout
		if err := g.raft.ReloadConfig(settings); err != nil {
			g.logger.Warn("look for the leader", "error", err)
			return
		}
	}
}
