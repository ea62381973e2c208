package cluster

import (
	"slices"
	"time"
)

// orphans returns the replicas that their shard's leader does not count and that no step is about
// to add: a member that was removed while its node was away does not learn of it otherwise. A
// deposed leader may not know yet that it is deposed, so only an orphan of some age is dropped.
func orphans(state clusterState) map[replica]bool {
	p := newPlanner(clusterState{shards: state.shards, members: state.members, reports: state.reports}, time.Time{})
	found := map[replica]bool{}
	for _, s := range p.shards {
		for _, name := range p.orphansOf(s) {
			found[replica{s.Shard, name}] = true
		}
	}
	return found
}

// orphansOf returns the nodes that hold the shard without being members of its group.
func (p *planner) orphansOf(s *placedShard) []string {
	if s.Epoch == 0 { // no proof yet that a majority follows the leader
		return nil
	}
	members := s.members()
	var found []string
	for _, name := range p.names {
		own, hosts := p.nodes[name].hosts[s.Shard]
		// A later term than the leader's may mean that there is a newer leader.
		if hosts && !own.Leads && own.Term <= s.Term && !slices.Contains(members, name) {
			found = append(found, name)
		}
	}
	return found
}

func (p *planner) dropOrphans() {
	for _, s := range p.shards {
		for _, name := range p.orphansOf(s) {
			if p.state.droppable[replica{s.Shard, name}] && !slices.Contains(s.target, name) {
				p.steps = append(p.steps, step{
					kind: stepDrop, shard: s.Shard, node: name, leader: s.leader, term: s.Term, last: s.Last,
					reason: "its group does not count it",
				})
			}
		}
	}
}
