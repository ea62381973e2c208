package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"switchyard/storage"
)

// statusMaxAge is the age up to which an answer is reused, so that many requests at once cost the
// members one report.
const statusMaxAge = 500 * time.Millisecond

// statusCollector collects the status of the cluster, on any of its nodes.
type statusCollector struct {
	collector    reportCollector
	members      memberSource
	replaceAfter time.Duration

	slot        chan struct{} // capacity 1: guards collecting and the fields below
	latest      Topology
	collectedAt time.Time
}

func newStatusCollector(cfg rebalancerConfig) *statusCollector {
	return &statusCollector{
		collector:    reportCollector{self: cfg.Self, own: cfg.Own, peers: cfg.Peers},
		members:      cfg.Members,
		replaceAfter: cfg.ReplaceAfter,
		slot:         make(chan struct{}, 1),
	}
}

// status returns the cluster as this node sees it, at most a second old. A member that does not
// answer within a second is shown as the others know it. A node that is cut off from all others
// shows what it knows itself. The result is shared and must not be changed.
func (v *statusCollector) status(ctx context.Context) Topology {
	select {
	case v.slot <- struct{}{}:
		defer func() { <-v.slot }()
	case <-ctx.Done():
		r, _ := v.members.membersView()
		return v.assemble(r, map[string][]groupReport{v.collector.self: v.collector.own.report()}, time.Now())
	}
	if !v.collectedAt.IsZero() && time.Since(v.collectedAt) < statusMaxAge {
		return v.latest
	}
	r, _ := v.members.membersView()
	// Other requests wait for this result, so it does not end with this request's context.
	reports := v.collector.collect(context.WithoutCancel(ctx), r, nil)
	v.latest, v.collectedAt = v.assemble(r, reports, time.Now()), time.Now()
	return v.latest
}

// assemble combines members and reports.
func (v *statusCollector) assemble(r clusterView, reports map[string][]groupReport, now time.Time) Topology {
	state := clusterState{
		shards: r.shards, everThree: r.everThree, replaceAfter: v.replaceAfter,
		members: r.members, reports: reports,
	}
	p := newPlanner(state, now)
	p.setTargets()
	t := Topology{ClusterID: r.clusterID, Nodes: []NodeStatus{}, Shards: p.shardStatuses()}
	for _, m := range r.members {
		if status, ok := p.nodeStatus(m, t.Shards); ok {
			t.Nodes = append(t.Nodes, status)
		}
	}
	slices.SortFunc(t.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// shardStatuses returns the status of every shard: the leader's report or, without a leader, that
// of the replica with the latest term.
func (p *planner) shardStatuses() []ShardStatus {
	shards := make([]ShardStatus, p.state.shards+1)
	for id := range shards {
		var followerReport groupReport
		for _, name := range p.names {
			if r, ok := p.nodes[name].hosts[storage.Shard(id)]; ok && r.Term >= followerReport.Term {
				followerReport = r
			}
		}
		shards[id] = shardStatus(id, "", followerReport)
	}
	for _, s := range p.shards {
		shards[s.Shard] = shardStatus(int(s.Shard), s.leader, s.groupReport)
	}
	return shards
}

func shardStatus(id int, leader string, r groupReport) ShardStatus {
	status := ShardStatus{
		ID: id, Leader: leader, Term: r.Term, Applied: r.Applied,
		Voters: append([]string{}, r.Voters...), NonVoters: append([]string{}, r.NonVoters...),
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
func (p *planner) nodeStatus(m memberView, shards []ShardStatus) (NodeStatus, bool) {
	n := p.nodes[m.Name]
	status := NodeStatus{
		Name: m.Name, State: m.State, Zone: m.Zone, HTTP: m.HTTP, Peer: m.Peer, Gossip: m.Gossip, Version: m.Version,
	}
	for _, s := range shards {
		status.Leads += boolInt(s.Leader == m.Name)
		status.Replicas += boolInt(slices.Contains(s.Voters, m.Name) || slices.Contains(s.NonVoters, m.Name))
	}
	switch {
	case !n.reported && (m.State == NodeAlive || m.State == NodeDraining):
		status.State = NodeSuspect
	case n.reported && m.Draining:
		status.State = NodeDraining
	case n.reported:
		status.State = NodeAlive
	}
	switch {
	case m.Removed:
		status.Note = "removed: other nodes take its replicas over"
		return status, n.reported || status.Replicas > 0
	case m.Draining:
		status.Drained, status.Note = p.drained(status)
	}
	return status, true
}

// Notes of a drain that can't finish.
const (
	noteLeadersOnly  = "drain moves leaderships only: there is no node to take the replicas"
	noteNothingMoves = "nothing can be moved: there is no other node to take it"
)

// drained reports whether nothing more will leave a draining node, and the reason if something
// stays.
func (p *planner) drained(status NodeStatus) (done bool, note string) {
	stay, led := 0, 0 // replicas, and leaderships, that no other node can take
	for _, s := range p.shards {
		if !slices.Contains(s.target, status.Name) {
			continue
		}
		stay++
		if s.leader == status.Name && len(s.target) == 1 {
			led++
		}
	}
	switch {
	case led > 0:
		note = noteNothingMoves
	case stay > 0:
		note = noteLeadersOnly
	}
	return p.allLed() && status.Leads == 0 && status.Replicas == stay, note
}
