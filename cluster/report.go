package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/cluster/placement"
	"switchyard/storage"
)

// replicaAction is a change of one member of a group. The group's leader makes it.
type replicaAction string

const (
	replicaAdd      replicaAction = "add"      // as a non-voter
	replicaPromote  replicaAction = "promote"  // a non-voter to a voter
	replicaRemove   replicaAction = "remove"   // voter or not
	replicaTransfer replicaAction = "transfer" // the leadership, to a voter
)

// replicaChange is a change with its member.
type replicaChange struct {
	Action replicaAction `json:"action"`
	Node   string        `json:"node"`
}

// full reports whether this node should lead nothing and take no replicas for another reason than that its disk
// hangs: its disk is full or damaged, or its clock is wrong.
func (n *Node) full() bool {
	return n.cfg.Full != nil && n.cfg.Full() || n.clockIsOff() || n.spoiled.Load()
}

// report describes the groups on this node.
func (n *Node) report() []placement.GroupReport {
	var reports []placement.GroupReport
	stuck := n.diskHangs()
	full, hung := stuck || n.full(), !stuck && n.diskHasHung()
	for _, g := range n.hosted() {
		if !g.up.Load() {
			r := placement.GroupReport{Shard: g.shard, Starting: true, Full: full, Stuck: stuck, Hung: hung}
			if failed := g.failed.Load(); failed != nil {
				r.Starting, r.Failed = false, (*failed).Error()
			}
			reports = append(reports, r)
			continue
		}
		if r, err := g.report(); err == nil { // otherwise the group is stopping
			r.Full, r.Stuck, r.Hung, r.NoRoom = full, stuck, hung, g.room.none()
			r.Differing = n.Differing(g.shard)
			reports = append(reports, r)
		}
	}
	for i := range n.reopening {
		if n.reopening[i].Load() {
			reports = append(reports, placement.GroupReport{Shard: storage.Shard(i), Starting: true, Full: full, Stuck: stuck, Hung: hung})
		}
	}
	return reports
}

func (g *group) report() (placement.GroupReport, error) {
	voters, others, err := g.members()
	if err != nil {
		return placement.GroupReport{}, err
	}
	_, leader := g.raft.LeaderWithID()
	_, last := g.log.Bounds()
	r := placement.GroupReport{
		Shard:     g.shard,
		Leads:     g.raft.State() == raft.Leader,
		Term:      g.raft.CurrentTerm(),
		Leader:    string(leader),
		Epoch:     g.epoch.Load(),
		Voters:    voters,
		NonVoters: others,
		Applied:   g.machine.applied.Load(),
	}
	r.Last = max(last, r.Applied)
	if failed := g.failed.Load(); failed != nil {
		r.Failed = (*failed).Error()
	}
	if !r.Leads {
		return r, nil
	}
	r.Bytes = g.size.estimate(g)
	// Raft's members are those of the newest entry, committed or not. They were read first, so they are
	// no newer than the index.
	r.Changing = g.raft.CommitIndex() < g.log.Configured()
	for i, names := range [][]string{voters, others} {
		for _, name := range names {
			if name == g.node {
				continue
			}
			peer := placement.PeerReport{Node: name, Lag: r.Last}
			if lag, follows := g.tracking.followerProgress(r.Term, raft.ServerID(name), electionTimeout); follows {
				votes := i == 0
				peer.Lag, peer.CaughtUp = lag, lag <= caughtUpLag && (votes || g.isReady(raft.ServerID(name)))
			}
			r.Peers = append(r.Peers, peer)
		}
	}
	return r, nil
}

// sizeAge is the time for which an estimate is used in spite of new entries.
const sizeAge = 30 * time.Second

// replicaSize is an estimate of what a copy of a replica takes.
type replicaSize struct {
	mu      sync.Mutex
	bytes   uint64
	applied uint64 // the newest entry in the state then
	at      int64
}

// estimate returns the size of the group's state in bytes, at least 1, or 0 if it is not known. What may be
// only in memory counts as much as it takes in the log.
func (s *replicaSize) estimate(g *group) uint64 {
	applied, now := g.machine.applied.Load(), g.tuning.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes != 0 && (s.applied == applied || now-s.at < int64(sizeAge)) {
		return s.bytes
	}
	bytes, err := g.machine.store.EstimateSize(g.shard)
	if err != nil {
		return 0
	}
	s.bytes, s.applied, s.at = 1+bytes+uint64(max(0, g.machine.pending.Load())), applied, now
	return s.bytes
}
