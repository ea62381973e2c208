package placement

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/topology"
	"switchyard/storage"
)

// Topology combines members and reports into the status of the cluster.
func (state State) Topology(clusterID string, now time.Time) topology.Topology {
	p := newPlanner(state, now)
	p.setTargets()
	t := topology.Topology{ClusterID: clusterID, Nodes: []topology.NodeStatus{}, Shards: p.shardStatuses()}
	for _, m := range state.Members {
		if status, ok := p.nodeStatus(m, t.Shards); ok {
			t.Nodes = append(t.Nodes, status)
		}
	}
	slices.SortFunc(t.Nodes, func(a, b topology.NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// shardStatuses returns the status of every shard: the leader's report or, without a leader, that
// of the replica with the latest term.
func (p *planner) shardStatuses() []topology.ShardStatus {
	shards := make([]topology.ShardStatus, p.state.Shards+1)
	for id := range shards {
		var followerReport GroupReport
		for _, name := range p.names {
			if r, ok := p.nodes[name].hosts[storage.Shard(id)]; ok && r.Term >= followerReport.Term {
				followerReport = r
			}
		}
		shards[id] = shardStatus(id, "", followerReport)
	}
	for _, s := range p.shards {
		shards[s.Shard] = shardStatus(int(s.Shard), s.leader, s.GroupReport)
	}
	for id := range shards {
		shards[id].Failed = p.failedReplicas(storage.Shard(id))
	}
	return shards
}

// failedReplicas lists the voters and non-voters of a shard that count for nothing.
func (p *planner) failedReplicas(shard storage.Shard) (failed []topology.FailedReplica) {
	for _, name := range p.names {
		if own := p.nodes[name].hosts[shard]; own.Failed != "" {
			failed = append(failed, topology.FailedReplica{Node: name, Reason: own.Failed})
		}
	}
	for _, s := range p.shards {
		if s.Shard != shard {
			continue
		}
		for _, name := range p.lostMembers(s) {
			if p.nodes[name].hosts[shard].Failed == "" {
				failed = append(failed, topology.FailedReplica{Node: name, Reason: "its node answers and holds no replica"})
			}
		}
	}
	return failed
}

func shardStatus(id int, leader string, r GroupReport) topology.ShardStatus {
	status := topology.ShardStatus{
		ID: id, Leader: leader, Term: r.Term, Applied: r.Applied,
		Voters: append([]string{}, r.Voters...), NonVoters: append([]string{}, r.NonVoters...), Differing: r.Differing,
	}
	slices.Sort(status.Voters)
	slices.Sort(status.NonVoters)
	for _, peer := range r.Peers {
		status.Lag = max(status.Lag, peer.Lag)
	}
	return status
}

// nodeStatus returns the status of one member, or false for a removed member that neither answers
// nor holds a replica.
func (p *planner) nodeStatus(m Member, shards []topology.ShardStatus) (topology.NodeStatus, bool) {
	n := p.nodes[m.Name]
	status := topology.NodeStatus{
		Name: m.Name, State: m.State, Zone: m.Zone, HTTP: m.HTTP, Peer: m.Peer, Gossip: m.Gossip, Version: m.Version,
		NewestFormat: int(m.NewestFormat), Removed: m.Removed,
	}
	for _, s := range shards {
		status.Leads += boolInt(s.Leader == m.Name)
		status.Replicas += boolInt(slices.Contains(s.Voters, m.Name) || slices.Contains(s.NonVoters, m.Name))
	}
	switch {
	case !n.reported && (m.State == membership.NodeAlive || m.State == membership.NodeDraining):
		status.State = membership.NodeSuspect
	case n.reported && m.Draining:
		status.State = membership.NodeDraining
	case n.reported:
		status.State = membership.NodeAlive
	}
	switch {
	case m.Removed:
		status.Note = noteRemoved
		return status, n.reported || status.Replicas > 0
	case m.Draining:
		status.Note = p.drainNote(m.Name)
	}
	some := func(says func(GroupReport) bool) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(n.hosts)), says)
	}
	switch {
	case status.Note != "":
	case some(func(r GroupReport) bool { return r.Stuck }):
		status.Note = noteStuck
	case some(func(r GroupReport) bool { return r.NoRoom }):
		status.Note = noteNoRoom
	case some(func(r GroupReport) bool { return r.Hung }) && !m.Full:
		status.Note = noteHung
	case m.Full, some(func(r GroupReport) bool { return r.Full }):
		status.Note = noteFull
	}
	return status, true
}

// Notes of a removal, of a drain that can't finish, and of a node that should lead nothing.
const (
	noteRemoved      = "removed: other nodes take its replicas over"
	noteLeadersOnly  = "drain moves leaderships only: there is no node to take the replicas"
	noteNothingMoves = "nothing can be moved: there is no other node to take it"
	noteStuck        = "should lead nothing: its disk hangs"
	noteHung         = "gets no leaderships yet: its disk has hung less than 30 seconds ago"
	noteNoRoom       = "its disk has no room: its replicas take no changes"
	noteFull         = "should lead nothing: its disk is short of room or damaged, or its clock is wrong; its log says which"
)

// drainNote returns the reason if something will stay on a draining node.
func (p *planner) drainNote(node string) string {
	stay, led := 0, 0 // replicas, and leaderships, that no other node can take
	for _, s := range p.shards {
		if !slices.Contains(s.target, node) {
			continue
		}
		stay++
		if s.leader == node && len(s.target) == 1 {
			led++
		}
	}
	switch {
	case led > 0:
		return noteNothingMoves
	case stay > 0:
		return noteLeadersOnly
	}
	return ""
}
