package cluster

import "github.com/hashicorp/raft"

// interceptVote lets a member vote for one that it still takes for a non-voter. Raft
// refuses that, and a group of two that grew to three could then be stuck: the
// leader and the new voter agreed on the growth, the leader died, and the third,
// who had not heard of it, would neither vote for the new one nor get its vote,
// its own log being shorter.
//
// Any member may vote for any candidate whose log is not behind its own; who is a
// voter is the candidate's to know. A member without a vote does not campaign.
// welcome reports whether it answered the request.
func (g *group) interceptVote(rpc *raft.RPC) bool {
	if !g.up.Load() {
		return false
	}
	switch asks := rpc.Command.(type) {
	case *raft.RequestPreVoteRequest:
		if !g.isNonVoter(asks.ID) || !g.wouldGrant(asks) {
			return false
		}
		rpc.Respond(&raft.RequestPreVoteResponse{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.node), Addr: []byte(g.node)},
			Term:      asks.Term,
			Granted:   true,
		}, nil)
		return true
	case *raft.RequestVoteRequest:
		if g.isNonVoter(asks.ID) {
			// Without the name, Raft decides by the logs and by its vote in this term alone.
			nameless := *asks
			nameless.ID = nil
			rpc.Command = &nameless
		}
	}
	return false
}

// non-voter tells whether a member counts as a non-voter here.
func (g *group) isNonVoter(id []byte) bool {
	future := g.raft.GetConfiguration()
	if future.Error() != nil {
		return false
	}
	for _, server := range future.Configuration().Servers {
		if server.ID == raft.ServerID(id) {
			return server.Suffrage == raft.Nonvoter
		}
	}
	return false
}

// wouldGrant tells whether Raft would grant the request if it came from a voter. It
// binds nobody: the vote itself is Raft's.
func (g *group) wouldGrant(asks *raft.RequestPreVoteRequest) bool {
	if leader, _ := g.raft.LeaderWithID(); leader != "" || asks.Term < g.raft.CurrentTerm() {
		return false
	}
	_, last := g.log.bounds()
	var newest raft.Log
	if last == 0 || g.log.GetLog(last, &newest) != nil {
		return true // the vote decides
	}
	return asks.LastLogTerm > newest.Term || asks.LastLogTerm == newest.Term && asks.LastLogIndex >= last
}
