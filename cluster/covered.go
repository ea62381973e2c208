package cluster

import (
	"io"

	"github.com/hashicorp/raft"
)

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

// answerCovered answers a leader's snapshot whose entries this member has, and reports whether it did.
//
// A leader sends such a snapshot when it has truncated its log and takes this member to be further behind
// than it is. On the removal of a member, Raft's goroutine that replicated to it tries once more, up to ten
// seconds later; by then the member may have been added again, and be a voter. Raft would install the
// snapshot and delete the log, with the entries behind the snapshot that this member has acknowledged.
//
// Entries may still arrive between this look at the log and the receipt of a snapshot. Raft's goroutine
// therefore looks again and refuses the snapshot (SnapshotSink.Write); the leader sends it once more, and gets
// its answer here.
func (g *group) answerCovered(rpc *raft.RPC) bool {
	asks, ok := rpc.Command.(*raft.InstallSnapshotRequest)
	if !ok || !g.up.Load() || asks.Term != g.raft.CurrentTerm() {
		return false // Raft refuses an older term and takes over a newer one
	}
	if covered, err := g.snapshots.Covers(asks.LastLogIndex, asks.LastLogTerm); err != nil || !covered {
		return false
	}
	// The stream is read to its end first, as in refuseChanges.
	answered := *rpc
	go func() {
		if _, err := io.Copy(io.Discard, answered.Reader); err != nil {
			answered.Respond(nil, err)
			return
		}
		answered.Respond(&raft.InstallSnapshotResponse{RPCHeader: answerHeader, Term: g.raft.CurrentTerm(), Success: true}, nil)
	}()
	return true
}
