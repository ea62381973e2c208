package placement

import (
	"cmp"
	"slices"
)

// balance adds moves that spread replicas over zones, then evenly over nodes. It waits until no
// shard needs anything else. Each move makes the shared zones fewer, or keeps them and makes the
// counts of two nodes more equal, so the moves come to an end and never go back and forth.
func (p *planner) balance() {
	takers := slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return !p.nodes[name].eligible() })
	if p.wanted == 1 || len(takers) <= p.wanted || !p.healthy() {
		return
	}
	for range maxBalanceMoves {
		s, from, to := p.bestMove(p.leastLoaded(takers))
		if s == nil {
			return
		}
		reason := "%s holds more shards"
		if p.nodes[from].Zone != p.nodes[to].Zone && p.sharedZones(s.target) > p.sharedZones(append(without(s.target, from), to)) {
			reason = "%s is in a zone with another replica"
		}
		s.target = append(without(s.target, from), to)
		p.nodes[from].replicas--
		p.nodes[to].replicas++
		p.countMove(s)
		p.addStep(s, StepAdd, to, reason, from)
	}
}

// maxBalanceMoves is the number of moves that one round adds: to find one takes time in proportion to the
// shards.
const maxBalanceMoves = 16

// leastLoaded returns, of each zone, the nodes with the fewest replicas: as many as a shard has replicas,
// which can't take it again, and one more. The order is kept.
func (p *planner) leastLoaded(takers []string) []string {
	byLoad := slices.Clone(takers)
	slices.SortStableFunc(byLoad, func(a, b string) int { return cmp.Compare(p.nodes[a].replicas, p.nodes[b].replicas) })
	few, chosen := map[string]int{}, map[string]bool{}
	for _, name := range byLoad {
		if zone := p.nodes[name].Zone; few[zone] <= p.wanted {
			few[zone]++
			chosen[name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(takers), func(name string) bool { return !chosen[name] })
}

// healthy reports whether every shard has all its replicas on nodes that answer, or is giving up a
// surplus.
func (p *planner) healthy() bool {
	if !p.allLed() {
		return false
	}
	for _, s := range p.shards {
		if len(p.missing(s)) > 0 || len(s.target) < p.wanted || len(s.Voters) < p.wanted {
			return false
		}
		for _, name := range s.target {
			if !p.nodes[name].eligible() {
				return false
			}
		}
	}
	return true
}

// bestMove returns the move with the largest gain; nil if no move gains anything.
func (p *planner) bestMove(takers []string) (shard *placedShard, from, to string) {
	var best [3]int // change of shared zones; load of to minus load of from; 1 if the leader must move
	for _, s := range p.shards {
		if s.busy || p.moving(s) || !p.mayMove(s) {
			continue
		}
		before := p.sharedZones(s.target)
		for _, x := range s.target {
			rest := without(s.target, x)
			for _, y := range takers {
				if slices.Contains(s.target, y) || p.hasFailed(s, y) {
					continue
				}
				move := [3]int{
					p.sharedZones(append(rest, y)) - before,
					p.nodes[y].replicas - p.nodes[x].replicas,
					boolInt(x == s.leader),
				}
				if move[0] > 0 || (move[0] == 0 && move[1] > -2) {
					continue
				}
				if shard == nil || slices.CompareFunc(move[:], best[:], cmp.Compare) < 0 {
					shard, from, to, best = s, x, y, move
				}
			}
		}
	}
	return shard, from, to
}
