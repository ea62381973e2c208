package placement

import (
	"slices"
	"time"
)

// Orphans returns the replicas that their shard's leader does not count and that no step is about
// to add: a member that was removed while its node was away does not learn of it otherwise. A
// deposed leader may not know yet that it is deposed, so only an orphan of some age is dropped.
func Orphans(state State) map[Replica]bool {
	return state.replicas((*planner).orphansOf)
}

// orphansOf returns the nodes that hold the shard without being members of its group.
func (p *planner) orphansOf(s *placedShard) []string {
	// Without an epoch there is no proof yet that a majority follows the leader. A removal that is not
	// committed may never be, and the group then needs the replica's entries and its vote.
	if s.Epoch == 0 || s.Changing {
		return nil
	}
	members := s.members()
	var found []string
	for _, name := range p.names {
		own, hosts := p.nodes[name].hosts[s.Shard]
		// A later term than the leader's may mean that there is a newer leader. A drop would wait for a disk that
		// hangs, and the round with it.
		if hosts && !own.Starting && !own.Leads && !own.Stuck && own.Term <= s.Term && !slices.Contains(members, name) {
			found = append(found, name)
		}
	}
	return found
}

func (p *planner) dropOrphans() {
	for _, s := range p.shards {
		for _, name := range p.orphansOf(s) {
			// A failed replica is dropped before its node gets another one.
			wanted := slices.Contains(s.target, name) && !p.hasFailed(s, name)
			if p.state.Droppable[Replica{s.Shard, name}] && !wanted {
				p.steps = append(p.steps, Step{
					Kind: StepDrop, Shard: s.Shard, Node: name, Leader: s.leader, Term: s.Term, Last: s.Last,
					Reason: "its group does not count it",
				})
			}
		}
	}
}

// OrphanGrace is how long a replica must have been an orphan before it is dropped. A leader that was
// cut off from its group notices within a shorter time.
const OrphanGrace = 2 * time.Second

// Ages remembers, from one round to the next, when each replica or node was found first.
type Ages[K comparable] struct{ since map[K]time.Time }

// Update records what a round found and returns what was found first grace ago and in each round since.
func (a *Ages[K]) Update(found map[K]bool, now time.Time, grace time.Duration) map[K]bool {
	since := make(map[K]time.Time, len(found))
	aged := map[K]bool{}
	for r := range found {
		since[r] = now
		if first, ok := a.since[r]; ok {
			since[r] = first
			aged[r] = now.Sub(first) >= grace
		}
	}
	a.since = since
	return aged
}
