package cluster

import "switchyard/storage"

// Stats shows how a shard stands on this node.
type Stats struct {
	Leader string // the leading node; empty when none is known
	Term   uint64
	Epoch  uint64 // in which this node owns the shard; 0 when it does not
	Voters int
	Failed error // why this node serves the shard no more; nil when it does

	FirstIndex    uint64 // oldest entry kept
	LastIndex     uint64 // newest entry
	Committed     uint64 // newest entry known to be on a quorum
	Applied       uint64 // newest entry in the state
	PendingBytes  int64  // log since the last snapshot
	Entries       uint64 // proposed since the start
	Batches       uint64 // merged into those entries
	QueuedBatches int    // waiting to be proposed
	QueuedBytes   int
}

// ShardStats shows how a shard stands on this node; the zero Stats for a shard
// that is not here.
func (n *Node) ShardStats(shard storage.Shard) Stats {
	g := n.group(shard)
	if g == nil || !g.up.Load() {
		return Stats{}
	}
	_, leader := g.raft.LeaderWithID()
	s := Stats{
		Leader:       string(leader),
		Term:         g.raft.CurrentTerm(),
		Epoch:        g.epoch.Load(),
		Committed:    g.raft.CommitIndex(),
		Applied:      g.machine.applied.Load(),
		PendingBytes: g.machine.pending.Load(),
		Entries:      g.commit.entries.Load(),
		Batches:      g.commit.batches.Load(),
	}
	if failed := g.failed.Load(); failed != nil {
		s.Failed = *failed
	}
	s.FirstIndex, s.LastIndex = g.log.bounds()
	s.QueuedBatches, s.QueuedBytes = g.commit.queued()
	if voters, _, err := g.members(); err == nil {
		s.Voters = len(voters)
	}
	return s
}
