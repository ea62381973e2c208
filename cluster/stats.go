package cluster

import "switchyard/storage"

// Stats shows a shard on this node.
type Stats struct {
	Term   uint64
	Epoch  uint64 // epoch in which this node owns the shard; 0 if it does not
	Failed error  // why this node stopped serving the shard; nil while it may
	Stuck  bool   // entries wait for this node's disk
	NoRoom bool   // this node owns the shard, and too few voters follow and have room for changes

	FirstIndex   uint64 // oldest entry kept
	LastIndex    uint64 // newest entry
	Applied      uint64 // newest entry in the state
	PendingBytes int64  // log since the last snapshot
	Entries      uint64 // proposed since the start
	Batches      uint64 // batches merged into those entries
}

// ShardStats returns the state of a shard on this node, or the zero Stats if the node has no
// replica of it.
func (n *Node) ShardStats(shard storage.Shard) Stats {
	g := n.group(shard)
	if g == nil {
		return Stats{}
	}
	if !g.up.Load() {
		if failed := g.failed.Load(); failed != nil {
			return Stats{Failed: *failed}
		}
		return Stats{}
	}
	s := Stats{
		Term:         g.raft.CurrentTerm(),
		Epoch:        g.epoch.Load(),
		Stuck:        g.diskHangs(),
		NoRoom:       !n.HasRoom(shard),
		Applied:      g.machine.applied.Load(),
		PendingBytes: g.machine.pending.Load(),
		Entries:      g.commit.entries.Load(),
		Batches:      g.commit.batches.Load(),
	}
	if failed := g.failed.Load(); failed != nil {
		s.Failed = *failed
	}
	s.FirstIndex, s.LastIndex = g.log.Bounds()
	return s
}
