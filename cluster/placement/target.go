package placement

import (
	"cmp"
	"slices"
)

// setTargets sets the target of every shard. Shards without a move come first, so that the others
// take their places into account.
func (p *planner) setTargets() {
	order := slices.Clone(p.shards)
	slices.SortStableFunc(order, func(a, b *placedShard) int { return cmp.Compare(p.repairPriority(a), p.repairPriority(b)) })
	for _, s := range order {
		members := s.members()
		p.count(members, -1)
		s.target = p.target(s)
		p.count(s.target, +1)
	}
	for _, s := range p.shards {
		if p.moving(s) {
			p.countMove(s)
		}
	}
}

func (p *planner) count(nodes []string, by int) {
	for _, name := range nodes {
		p.nodes[name].replicas += by
	}
}

// repairPriority returns 0 for a shard with the right replicas, 1 for a shard with too many, and 2
// for a shard that needs a node.
func (p *planner) repairPriority(s *placedShard) int {
	keep := len(p.keepers(s))
	switch {
	case keep < p.wanted:
		return 2
	case keep == p.wanted && len(s.members()) == keep:
		return 0
	}
	return 1
}

// keepers returns the members that count. An unreachable voter counts until it is dead for good; a
// non-voter does not count once its node is known to be down, or has a disk that hangs.
func (p *planner) keepers(s *placedShard) []string {
	var keep []string
	for _, name := range s.Voters {
		if p.nodes[name].rank <= rankUnreachable {
			keep = append(keep, name)
		}
	}
	for _, name := range s.NonVoters {
		if n := p.nodes[name]; n.rank <= rankUnreachable && !n.down && !n.Stuck {
			keep = append(keep, name)
		}
	}
	slices.Sort(keep)
	return keep
}

// target returns the nodes that are to hold the shard: the members that count, without the fullest
// if they are too many and with new nodes if they are too few. If there are not enough new nodes,
// voters that should leave stay: a shard never shrinks because a node is dead or drains, only
// because a node is removed.
func (p *planner) target(s *placedShard) []string {
	target := p.keepers(s)
	for len(target) > p.wanted {
		target = without(target, p.leastUseful(s, target))
	}
	members := s.members()
	for len(target) < p.wanted {
		node := p.pickNode(s, target, members)
		if node == "" {
			break
		}
		target = append(target, node)
	}
	stay := slices.DeleteFunc(slices.Clone(s.Voters), func(name string) bool {
		standing := p.nodes[name].rank
		return standing != rankDraining && standing != rankDead
	})
	slices.SortFunc(stay, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.nodes[a].rank, p.nodes[b].rank), cmp.Compare(boolInt(p.nodes[a].Stuck), boolInt(p.nodes[b].Stuck)),
			cmp.Compare(boolInt(p.nodes[b].reported), boolInt(p.nodes[a].reported)),
			cmp.Compare(boolInt(b == s.leader), boolInt(a == s.leader)), cmp.Compare(a, b))
	})
	for _, name := range stay {
		if len(target) < p.wanted {
			target = append(target, name)
		}
	}
	if len(target) == 0 { // all were removed, and no other node is here
		return slices.Clone(s.Voters)
	}
	return target
}

// leastUseful returns the member to leave out of a target that is too large.
func (p *planner) leastUseful(s *placedShard, target []string) string {
	return slices.MinFunc(target, func(a, b string) int {
		x, y := p.nodes[a], p.nodes[b]
		load := cmp.Compare(y.replicas, x.replicas)
		if p.wanted == 1 {
			load = 0 // a shard's only replica does not move to even out the load
		}
		return cmp.Or(
			cmp.Compare(boolInt(y.down || y.Stuck), boolInt(x.down || x.Stuck)),
			cmp.Compare(p.sharedZones(without(target, a)), p.sharedZones(without(target, b))),
			load,
			cmp.Compare(boolInt(slices.Contains(s.Voters, a)), boolInt(slices.Contains(s.Voters, b))),
			cmp.Compare(boolInt(a == s.leader), boolInt(b == s.leader)),
			cmp.Compare(b, a),
		)
	})
}

// pickNode returns the node to add to a target: in another zone if there is one, then the emptiest.
func (p *planner) pickNode(s *placedShard, target, members []string) string {
	best, bestZones := "", 0
	for _, name := range p.names {
		n := p.nodes[name]
		if !n.eligible() || p.hasFailed(s, name) || slices.Contains(target, name) || slices.Contains(members, name) {
			continue
		}
		zones := p.sharedZones(append(slices.Clone(target), name))
		if best == "" || cmp.Or(cmp.Compare(zones, bestZones), cmp.Compare(n.replicas, p.nodes[best].replicas)) < 0 {
			best, bestZones = name, zones
		}
	}
	return best
}

// sharedZones counts the nodes in the zone of an earlier one.
func (p *planner) sharedZones(nodes []string) int {
	zones := make(map[string]bool, len(nodes))
	for _, name := range nodes {
		zones[p.nodes[name].Zone] = true
	}
	return len(nodes) - len(zones)
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
