package cluster

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// vigil has followers notice in time that their leader is silent. Raft looks at
// moments of its own, up to three time-outs after the last word, and members that
// still believe in the leader refuse to vote: the slowest of them decides when a
// shard has an owner again. Here every follower is made to look as soon as the
// time-out has passed, one after another so that they do not compete.
type vigil struct {
	groups func() []*group
	quit   chan struct{}
	ended  chan struct{}
}

// Times of a vigil. Followers hear from their leader at moments that differ by up
// to two tenths of a time-out.
const (
	vigilTick = heartbeatTimeout / 20
	vigilTurn = heartbeatTimeout / 4 // between a group's members
)

func (v *vigil) run() {
	defer close(v.ended)
	tick := time.NewTicker(vigilTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, g := range v.groups() {
				if g.up.Load() {
					g.heed()
				}
			}
		case <-v.quit:
			return
		}
	}
}

func (v *vigil) end() {
	close(v.quit)
	<-v.ended
}

// heed has the member look for its leader when that has been silent for too long,
// once per silence: from then on Raft takes care. It belongs to the vigil.
func (g *group) heed() {
	heard := g.raft.LastContact()
	if heard.Before(g.began) {
		heard = g.began
	}
	if heard.Equal(g.heeded) || time.Since(heard) < heartbeatTimeout || g.raft.State() != raft.Follower {
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
	if time.Since(heard) < heartbeatTimeout+time.Duration(turn)*vigilTurn {
		return
	}
	g.heeded = heard
	// Raft looks at once when its time-outs are lowered.
	settings := g.raft.ReloadableConfig()
	for _, timeout := range []time.Duration{heartbeatTimeout + time.Millisecond, heartbeatTimeout} {
		settings.HeartbeatTimeout, settings.ElectionTimeout = timeout, timeout
		if err := g.raft.ReloadConfig(settings); err != nil {
			g.logger.Warn("look for the leader", "error", err)
			return
		}
	}
}
