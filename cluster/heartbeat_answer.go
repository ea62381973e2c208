package cluster

import (
	"time"

	"github.com/hashicorp/raft"
)

// passAfter is the time after Raft's last contact with its leader from which on Raft gets the next
// heartbeat itself. A member whose Raft is stuck answers none from then on.
const passAfter = electionTimeout * 5 / 2

// answerHeartbeat answers a heartbeat without waking Raft up, and reports whether it did: this member
// heard from its leader a moment ago, and Raft would say the same. Raft's own goroutine may wait for a
// slow disk, and to wake it for each heartbeat of each group is much of what an idle node does.
//
// The member's silence has ended before this. What an answer proves stays as exact as Raft's own, see
// votesGiven.
func (g *group) answerHeartbeat(rpc *raft.RPC) bool {
	asks, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok || !isHeartbeat(asks) || !g.up.Load() || !g.isRelaxed() || !g.tracking.votesGiven() {
		return false
	}
	if g.raft.State() != raft.Follower || g.raft.CurrentTerm() != asks.Term || time.Since(g.raft.LastContact()) >= passAfter {
		return false
	}
	if leader, _ := g.raft.LeaderWithID(); leader == "" {
		return false
	}
	now := time.Now()
	g.heardAfter.Store(int64(now.Sub(g.started)))
	// The leader's Raft does not read the last entry of an answer to a heartbeat; record does.
	last := g.untold.report(now, g.raft.LastIndex(), max(g.raft.CommitIndex(), g.machine.applied.Load()))
	rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: answerHeader, Term: asks.Term, LastLog: last, Success: true}, nil)
	return true
}

// heard returns when this member last heard from a leader, or its start.
func (g *group) heard() time.Time {
	heard := g.started.Add(time.Duration(g.heardAfter.Load()))
	if contact := g.raft.LastContact(); contact.After(heard) {
		return contact
	}
	return heard
}
