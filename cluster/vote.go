package cluster

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// intercept sees each request of another member before Raft does, and reports whether it answered
// it.
func (g *group) intercept(rpc *raft.RPC) bool {
	if _, asked := rpc.Command.(*raft.TimeoutNowRequest); asked && g.isFilling() {
		rpc.Respond(nil, errNotCaughtUp)
		return true
	}
	g.skipCovered(rpc)
	return g.answerHeartbeat(rpc) || g.answerCovered(rpc) || g.refuseChanges(rpc) || g.interceptVote(rpc)
}

// candidateTime is how long a candidate may take to be elected before another member stands, too. The votes
// wait for the disks of both, which are busy where hundreds of shards have lost their leader. Two members
// that stand at once vote for themselves, and both wait for another time-out.
const candidateTime = electionTimeout / 2

// awaitsCandidate reports whether a member that could have this one's vote may be about to be elected.
func (g *group) awaitsCandidate() bool { return g.isWithin(&g.candidateAsked, candidateTime) }

// standsBefore reports whether this member stands for election, too, and before a member that asks for its
// pre-vote: one of two with the same log must lose at the pre-vote. Of the two voters that are left of
// three it is the one whose turn comes first, see checkLeader. The other one is refused for a moment only,
// since this member may reach nobody.
func (g *group) standsBefore(asks *raft.RequestPreVoteRequest) bool {
	asksFirst := (string(asks.ID) < g.node) == (g.shard%2 == 0)
	return !asksFirst && g.isWithin(&g.stood, candidateTime) && g.compareLog(asks) == 0
}

// isWithin reports whether a time, by tuning.clock, was less than d ago; 0: never.
func (g *group) isWithin(at *atomic.Int64, d time.Duration) bool {
	t := at.Load()
	return t != 0 && g.tuning.clock()-t < int64(d)
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
		if !g.wouldGrant(asks) {
			return false
		}
		granted := !g.standsBefore(asks)
		if granted {
			g.candidateAsked.Store(g.tuning.clock())
			leader, _ := g.raft.LeaderWithID()
			if !g.isNoVoter(asks.ID) && (leader == "" || !g.leaderIsSilent()) {
				return false
			}
		}
		rpc.Respond(&raft.RequestPreVoteResponse{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.node), Addr: []byte(g.node)},
			Term:      asks.Term,
			Granted:   granted,
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
	return g.compareLog(asks) >= 0 // Raft decides at the vote
}

// compareLog returns 1 if a candidate's log is ahead of this member's, -1 if it is behind, and 0 if it ends
// with the same entry. It is taken for ahead where this one can't be read.
func (g *group) compareLog(asks *raft.RequestPreVoteRequest) int {
	_, last := g.log.Bounds()
	var newest raft.Log
	if last == 0 || g.log.GetLog(last, &newest) != nil {
		return 1
	}
	return cmp.Or(cmp.Compare(asks.LastLogTerm, newest.Term), cmp.Compare(asks.LastLogIndex, last))
}
