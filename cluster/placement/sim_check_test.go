package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// TestPlan_AnyHistory lets nodes join, die, drain, leave and come back in any order. No
// step costs a quorum. After the last change placement comes to rest, and every replica is
// where the rules want it.
func TestPlan_AnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulated(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 12).Draw(t, "shards"))
		for range rapid.IntRange(0, 5).Draw(t, "nodes") {
			s.join("")
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			s.event()
			for range s.rng.IntN(12) {
				s.round(t, true)
			}
		}
		for _, name := range s.names() {
			if n := s.nodes[name]; !n.up && (!n.Removed || s.rng.IntN(2) == 0) {
				s.revive(n)
			}
		}
		s.say("quiet")
		s.rest(t)
		s.checkRest(t)
	})
}

func (s *simulated) checkRest(t *rapid.T) {
	var takers []string
	for _, name := range s.names() {
		if n := s.nodes[name]; n.up && !n.Draining && !n.Removed {
			takers = append(takers, name)
		}
	}
	wanted := 1
	if s.everThree {
		wanted = replicasWanted
	}
	replicas, leads := map[string]int{}, map[string]int{}
	for id, g := range s.groups {
		if len(g.nonVoters) > 0 || g.leader == "" {
			s.fail(t, "shard %d is not at rest", id)
		}
		leads[g.leader]++
		for _, name := range g.voters {
			replicas[name]++
			n := s.nodes[name]
			if _, hosted := n.hosts[storage.Shard(id)]; n.failed[storage.Shard(id)] || !hosted {
				s.fail(t, "the replica of shard %d on %s was not replaced", id, name)
			}
			lost := !slices.ContainsFunc(g.voters, func(v string) bool { return !s.nodes[v].Removed })
			if n.Removed && (len(takers) > 0 || !lost) { // otherwise no node could take it
				s.fail(t, "shard %d stays with %s, which was removed", id, name)
			}
			if n.Draining && len(takers) >= wanted {
				s.fail(t, "shard %d stays with %s, which drains", id, name)
			}
		}
		if len(g.voters) > wanted || len(g.voters) < min(wanted, len(takers)) {
			s.fail(t, "shard %d has %d replicas", id, len(g.voters))
		}
		if s.nodes[g.leader].Draining && len(intersection(g.voters, takers)) > 0 {
			s.fail(t, "shard %d is led by %s, which drains", id, g.leader)
		}
		for name, n := range s.nodes {
			if _, hosted := n.hosts[storage.Shard(id)]; hosted && n.up && !slices.Contains(g.voters, name) {
				s.fail(t, "%s still has an orphan of shard %d", name, id)
			}
		}
	}
	if wanted > 1 && len(takers) >= wanted {
		checkEven(t, s, "replicas", takers, replicas)
		checkEven(t, s, "leaderships", takers, leads)
	}
}

func checkEven(t *rapid.T, s *simulated, what string, nodes []string, count map[string]int) {
	low, high := count[nodes[0]], count[nodes[0]]
	for _, name := range nodes {
		low, high = min(low, count[name]), max(high, count[name])
	}
	if high-low > 1 {
		s.fail(t, "%s are uneven: %v", what, count)
	}
}

// With enough zones no shard has two replicas in one zone, for zones of any size.
func TestPlan_Zones(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulated(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 12).Draw(t, "shards"))
		zones := rapid.IntRange(1, 4).Draw(t, "zones")
		for range rapid.IntRange(2, 7).Draw(t, "nodes") {
			s.join(fmt.Sprintf("z%d", s.rng.IntN(zones)))
			for range s.rng.IntN(40) {
				s.round(t, true)
			}
		}
		s.rest(t)
		used := map[string]bool{}
		for _, n := range s.nodes {
			used[n.Zone] = true
		}
		for id, g := range s.groups {
			in := map[string]bool{}
			for _, name := range g.voters {
				in[s.nodes[name].Zone] = true
			}
			if len(g.voters) != replicasWanted || len(in) != min(replicasWanted, len(used)) {
				s.fail(t, "shard %d is in %d zones of %d", id, len(in), len(used))
			}
		}
	})
}
