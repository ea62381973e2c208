package cluster

import (
	"cmp"
	"slices"
)

// setTargets decides for every shard who is to hold it. Shards at rest come first,
// so that those on the move see where the others are going to be.
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
			p.moves++
		}
	}
}

func (p *planner) count(nodes []string, by int) {
	for _, name := range nodes {
		p.nodes[name].replicas += by
	}
}

// repairPriority is 0 for a shard that has what it wants, 1 for one that has too much, 2
// for one that needs a node.
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

// keepers are the members that count. A voter that is away counts until it is
// gone for good; a non-voter is worth nothing when its node is known to be down.
func (p *planner) keepers(s *placedShard) []string {
	var keep []string
	for _, name := range s.Voters {
		if p.nodes[name].rank <= rankUnreachable {
			keep = append(keep, name)
		}
	}
	for _, name := range s.NonVoters {
		if n := p.nodes[name]; n.rank <= rankUnreachable && !n.down {
			keep = append(keep, name)
		}
	}
	slices.Sort(keep)
	return keep
}

// target is who is to hold the shard: members that count, the fullest left out
// when they are too many and recruits added when they are too few. When even
// those do not suffice, voters that should leave stay: a shard never shrinks because
// a node died or drains, only because one is removed.
func (p *planner) target(s *placedShard) []string {
	target := p.keepers(s)
	for len(target) > p.wanted {
		target = without(target, p.leastUseful(s, target))
	}
	members := s.members()
	for len(target) < p.wanted {
		node := p.pickNode(target, members)
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
		return cmp.Or(cmp.Compare(p.nodes[a].rank, p.nodes[b].rank),
			cmp.Compare(boolInt(p.nodes[b].reported), boolInt(p.nodes[a].reported)),
			cmp.Compare(boolInt(b == s.leader), boolInt(a == s.leader)), cmp.Compare(a, b))
	})
	for _, name := range stay {
		if len(target) < p.wanted {
			target = append(target, name)
		}
	}
	if len(target) == 0 { // all are removed, and nobody else is here
		return slices.Clone(s.Voters)
	}
	return target
}

// leastUseful is the member to leave out of a target that is too large.
func (p *planner) leastUseful(s *placedShard, target []string) string {
	return slices.MinFunc(target, func(a, b string) int {
		x, y := p.nodes[a], p.nodes[b]
		load := cmp.Compare(y.replicas, x.replicas)
		if p.wanted == 1 {
			load = 0 // a replica alone moves for no evenness
		}
		return cmp.Or(
			cmp.Compare(boolInt(y.down), boolInt(x.down)),
			cmp.Compare(p.sharedZones(without(target, a)), p.sharedZones(without(target, b))),
			load,
			cmp.Compare(boolInt(slices.Contains(s.Voters, a)), boolInt(slices.Contains(s.Voters, b))),
			cmp.Compare(boolInt(a == s.leader), boolInt(b == s.leader)),
			cmp.Compare(b, a),
		)
	})
}

// pickNode is the node to hold a shard next to those of target: in another zone
// when there is one, then the emptiest.
func (p *planner) pickNode(target, members []string) string {
	best, bestZones := "", 0
	for _, name := range p.names {
		n := p.nodes[name]
		if !n.eligible() || slices.Contains(target, name) || slices.Contains(members, name) {
			continue
		}
		zones := p.sharedZones(append(slices.Clone(target), name))
		if best == "" || cmp.Or(cmp.Compare(zones, bestZones), cmp.Compare(n.replicas, p.nodes[best].replicas)) < 0 {
			best, bestZones = name, zones
		}
	}
	return best
}

// sharedZones counts the nodes that share their zone with an earlier one.
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
