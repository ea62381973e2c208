package cluster

import "github.com/hashicorp/raft"

// skipCovered leaves out of a leader's request the entries that this member's newest snapshot covers,
// where its log does not have the entry before them any more.
//
// A leader sends entries again whose answer was lost, and by then the follower may have truncated its
// log behind the entry before them, or got a snapshot that ends there. Raft's follower looks for that
// entry in its log alone, and refuses. The leader would then go back one entry after the other, all of
// which are refused, to the beginning of its log: the follower gets a copy of all data that it has, or
// nothing more at all where the leader's log begins with the first entry. Entries that a snapshot
// covers are committed. So the leader of this term or of a newer one has the same ones, and the entries
// behind them follow without a look at the one before.
func (g *group) skipCovered(rpc *raft.RPC) {
	asks, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok || asks.PrevLogEntry == 0 && len(asks.Entries) == 0 {
		return
	}
	first, last := g.log.Bounds()
	if last != 0 && asks.PrevLogEntry >= first {
		return // as nearly all requests
	}
	newest, err := g.snapshots.Latest()
	switch {
	case err != nil || newest == nil || asks.PrevLogEntry > newest.Index:
		return
	case asks.PrevLogEntry == newest.Index && (last == 0 || asks.PrevLogTerm != newest.Term):
		return // Raft compares it with the snapshot
	}
	rest := *asks // the sender may still read its own
	rest.PrevLogEntry, rest.PrevLogTerm = 0, 0
	rest.Entries = asks.Entries[min(newest.Index-asks.PrevLogEntry, uint64(len(asks.Entries))):]
	rpc.Command = &rest
}
