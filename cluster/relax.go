package cluster

import "time"

// Each group of Raft has timers of its own: the leader has one for the heartbeats to each follower,
// which wakes the process eight times a second, and a follower has one that looks for its leader. An
// idle node with hundreds of groups would do nothing else. So the leader watchdog sets Raft's
// time-outs high, which makes its timers rare, and does with one timer for all groups what they
// would: on a leader it calls for the heartbeats, those of all groups at once, and on a follower it
// looks for a leader that is silent.
//
// The time-outs of a group are high, or the group is relaxed, while it follows a leader that it hears,
// or while it leads and the node is idle. A busy node's watchdog may be late, and heartbeats that
// come early and each for itself are the safer way then.

const (
	// relaxedTimeout is Raft's time-out of a relaxed leader. Without a call of the watchdog it still
	// sends a heartbeat after a tenth to a fifth of it, before its followers find it silent.
	relaxedTimeout = electionTimeout * 37 / 8
	// followerTimeout is Raft's time-out of a relaxed follower. Only the watchdog looks for its leader
	// in time.
	followerTimeout = 30 * time.Second
	// beatEvery is the time between two calls for heartbeats. It is a little less than a tenth of
	// relaxedTimeout.
	beatEvery = electionTimeout * 9 / 20
	// idleAfter is the time after the last entries to or from any node from which on a node is idle.
	// It is not idle for busyFor after the watchdog was late by more than lateTicks.
	idleAfter = 2 * time.Second
	lateTicks = 2
	busyFor   = 10 * time.Second
)

// isIdle reports whether no entries come and go between this node and the others, and all of them
// answer. It can't tell where groups go by a network of their own.
func (n *Node) isIdle(now time.Time) bool {
	return n.peering != nil && !n.peering.heartbeat.missing.Load() && n.peering.port.isIdle(now)
}

// relax sets Raft's time-outs high. The leader watchdog calls it.
func (g *group) relax(timeout time.Duration) {
	if g.relaxed.Load() != int64(timeout) && g.setTimeouts(timeout) {
		g.relaxed.Store(int64(timeout))
	}
}

// isRelaxed reports whether Raft's time-outs are high.
func (g *group) isRelaxed() bool { return g.relaxed.Load() != 0 }

// tighten sets Raft's time-outs to the usual ones. Raft looks for its leader at once, and a leader
// sends heartbeats.
func (g *group) tighten() {
	g.relaxed.Store(0)
	_ = g.setTimeouts(electionTimeout+time.Millisecond) && g.setTimeouts(electionTimeout)
}

// callHeartbeats makes the leader of a relaxed group send its heartbeats now: Raft does when its
// time-out is lowered. It does not wait for Raft, which may be busy.
func (g *group) callHeartbeats() {
	timeout := g.raft.ReloadableConfig().HeartbeatTimeout
	if timeout <= relaxedTimeout-time.Millisecond {
		timeout = relaxedTimeout
		_ = g.setTimeouts(timeout)
	}
	_ = g.setTimeouts(timeout - time.Microsecond)
}

// setTimeouts sets Raft's time-outs of heartbeats and elections, and reports whether Raft took them.
func (g *group) setTimeouts(timeout time.Duration) bool {
	settings := g.raft.ReloadableConfig()
	settings.HeartbeatTimeout, settings.ElectionTimeout = timeout, timeout
	err := g.raft.ReloadConfig(settings)
	if err != nil {
		g.logger.Warn("set the time-outs of Raft", "error", err)
	}
	return err == nil
}

// pace relaxes or tightens the group of a leader, and calls for heartbeats where it is time for them.
func (g *group) pace(idle, beat bool) {
	switch {
	case !idle && g.isRelaxed():
		g.tighten()
	case idle && g.relaxed.Load() != int64(relaxedTimeout):
		g.relax(relaxedTimeout)
	case idle && beat:
		g.callHeartbeats()
	}
}
