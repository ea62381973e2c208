package cluster

import "github.com/hashicorp/raft"

// boundCommit lowers the commit index of a request of a leader to the last entry that the request shows to
// be the leader's: the last of its entries or, where it has none, the one before them.
//
// Raft's follower takes all entries that it has for committed, up to the leader's commit index. The Raft
// paper (figure 2) has it go no further than the last entry of the request. The first request of a new
// leader may have no entries, and a commit index of a moment later. A follower that still has an entry
// there of an older leader, one that was not committed, would apply it. Its state would differ from that
// of all others for good.
func boundCommit(rpc *raft.RPC) {
	asks, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok {
		return
	}
	if last := asks.PrevLogEntry + uint64(len(asks.Entries)); asks.LeaderCommitIndex > last {
		bound := *asks // the sender may still read its own
		bound.LeaderCommitIndex = last
		rpc.Command = &bound
	}
}
