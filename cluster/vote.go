package cluster

import "github.com/hashicorp/raft"

// intercept sees each request of another member before Raft does, and reports whether it answered
// it.
func (g *group) intercept(rpc *raft.RPC) bool {
	if _, asked := rpc.Command.(*raft.TimeoutNowRequest); asked && g.isFilling() {
		rpc.Respond(nil, errNotCaughtUp)
		return true
	}
	g.skipCovered(rpc)
	return g.answerHeartbeat(rpc) || g.refuseChanges(rpc) || g.interceptVote(rpc)
}

// interceptVote lets this member vote for a candidate that it takes for a non-voter, or has not heard of.
// Raft refuses such votes, and a group of two that grew to three could then be stuck: the leader and the
// new voter agreed on the growth and the leader died; the third member had not heard of the growth,
// so it would not vote for the new voter, and its own log is too short to win.
//
// Any member may vote for any candidate whose log is not behind its own; the candidate knows
// whether it is a voter, and a member without a vote does not stand for election.
//
// A member that has not heard from its leader for a while votes as if it knew of none. Raft refuses
// such votes until the member's own time-out has passed too, and the refused candidate waits for
// another time-out. interceptVote reports whether it answered the request.
func (g *group) interceptVote(rpc *raft.RPC) bool {
	if g.refuseEarly(rpc) {
		return true
	}
	if !g.up.Load() {
		return false
	}
	switch asks := rpc.Command.(type) {
	case *raft.RequestPreVoteRequest:
		leader, _ := g.raft.LeaderWithID()
		if !g.isNoVoter(asks.ID) && (leader == "" || !g.leaderIsSilent()) || !g.wouldGrant(asks) {
			return false
		}
		rpc.Respond(&raft.RequestPreVoteResponse{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.node), Addr: []byte(g.node)},
			Term:      asks.Term,
			Granted:   true,
		}, nil)
		return true
	case *raft.RequestVoteRequest:
		if g.isNoVoter(asks.ID) {
			// Without the candidate's name, Raft decides by the logs and by its vote in this term
			// alone.
			nameless := *asks
			nameless.ID = nil
			rpc.Command, asks = &nameless, &nameless
		}
		if g.leaderIsSilent() {
			// With this flag, Raft does not ask whether it knows of a leader.
			flagged := *asks
			flagged.LeadershipTransfer = true
			rpc.Command = &flagged
		}
	}
	return false
}

// silentLeader is how long a leader may send nothing until others may have this member's vote. A
// heartbeat comes several times meanwhile, also of an idle node (relax.go).
const silentLeader = electionTimeout * 7 / 8

// leaderIsSilent reports whether this member follows a leader that it has not heard from for a while.
func (g *group) leaderIsSilent() bool {
	return g.raft.State() == raft.Follower && g.tracking.silence.since(g.tuning.clock()) >= int64(silentLeader)
}

// isNoVoter reports whether this member's configuration does not have the candidate as a voter.
func (g *group) isNoVoter(id []byte) bool {
	future := g.raft.GetConfiguration()
	if future.Error() != nil {
		return false
	}
	for _, server := range future.Configuration().Servers {
		if server.ID == raft.ServerID(id) {
			return server.Suffrage != raft.Voter
		}
	}
	return true
}

// wouldGrant reports whether Raft would grant the pre-vote if it came from a voter. A pre-vote
// binds nobody: Raft decides the vote itself.
func (g *group) wouldGrant(asks *raft.RequestPreVoteRequest) bool {
	if leader, _ := g.raft.LeaderWithID(); leader != "" && !g.leaderIsSilent() || asks.Term < g.raft.CurrentTerm() {
		return false
	}
	_, last := g.log.Bounds()
	var newest raft.Log
	if last == 0 || g.log.GetLog(last, &newest) != nil {
		return true // Raft decides at the vote
	}
	return asks.LastLogTerm > newest.Term || asks.LastLogTerm == newest.Term && asks.LastLogIndex >= last
}
