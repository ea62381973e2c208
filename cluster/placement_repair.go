package cluster

import (
	"cmp"
	"slices"
)

// moving tells whether a shard takes up one of the moves allowed at once.
func (p *planner) moving(s *placedShard) bool {
	return len(s.NonVoters) > 0 || len(s.Voters) > p.wanted
}

// learning are the non-voters to be promoted.
func (s *placedShard) learning() []string { return common(s.NonVoters, s.target) }

// missing are the nodes of the target that do not hold the shard.
func (s *placedShard) missing() []string { return beyond(s.target, s.members()) }

// surplus are the voters that are to go.
func (s *placedShard) surplus() []string { return beyond(s.Voters, s.target) }

// repair takes every shard a step nearer to its target: what was begun first, then
// those with the fewest replicas that live.
func (p *planner) repair() {
	order := slices.Clone(p.shards)
	slices.SortStableFunc(order, func(a, b *placedShard) int {
		return cmp.Or(cmp.Compare(truth(p.moving(b)), truth(p.moving(a))), cmp.Compare(p.living(a), p.living(b)))
	})
	for _, s := range order {
		if !s.busy {
			p.advance(s)
		}
	}
}

// living counts the replicas that can be relied on.
func (p *planner) living(s *placedShard) int {
	count := 0
	for _, name := range s.Voters {
		if n := p.nodes[name]; n.answers && n.standing != standsRemoved {
			count++
		}
	}
	return count
}

// advance takes one step for one shard, if there is one to take.
func (p *planner) advance(s *placedShard) {
	for _, name := range s.NonVoters {
		if !slices.Contains(s.target, name) {
			p.take(s, stepRemove, name, "a non-voter that %s", p.uselessness(name))
			return
		}
	}
	missing, learning, surplus := s.missing(), s.learning(), s.surplus()
	// Larger than wanted already: shrink before growing again, so that the voters
	// go 3, 4, 3 and not 3, 4, 5.
	if len(surplus) > 0 && len(s.Voters) > p.wanted {
		p.shrink(s, surplus)
		return
	}
	for _, name := range learning {
		if n := p.nodes[name]; n.answers && !p.hosted(s, name) {
			p.take(s, stepHost, name, "its leader counts on a replica that is not there")
			return
		}
		if !p.follows(s, name) {
			return // one copy at a time
		}
	}
	switch {
	case len(learning) == 1 && len(s.Voters) == 1 && len(missing) > 0:
		// Two voters stand no failure at all: the third is made ready before the
		// second votes.
		p.grow(s, missing[0])
	case len(learning) > 0:
		p.take(s, stepPromote, learning[0], "it has caught up")
	case len(missing) > 0:
		p.grow(s, missing[0])
	case len(surplus) > 0:
		p.shrink(s, surplus)
	}
}

func (p *planner) hosted(s *placedShard, node string) bool {
	_, ok := p.nodes[node].hosts[s.Shard]
	return ok
}

// uselessness says why a non-voter is not kept.
func (p *planner) uselessness(name string) string {
	switch n := p.nodes[name]; {
	case n.standing == standsRemoved:
		return "was removed from the cluster"
	case n.down:
		return "died before it had caught up"
	case n.Draining:
		return "drains"
	}
	return "is needed no more"
}

// grow adds a replica, when a move is free.
func (p *planner) grow(s *placedShard, node string) {
	if !p.moving(s) {
		if p.moves >= maxMoves {
			return
		}
		p.moves++
	}
	why := "the shard has too few replicas"
	if surplus := s.surplus(); len(surplus) > 0 {
		why = "it takes the place of " + p.departure(surplus[0])
	}
	p.take(s, stepAdd, node, "%s", why)
}

// departure says why a voter is to go.
func (p *planner) departure(name string) string {
	switch p.nodes[name].standing {
	case standsRemoved:
		return name + ", which was removed"
	case standsGone:
		return name + ", which is dead for too long"
	case standsDraining:
		return name + ", which drains"
	case standsAway:
		return name + ", which does not answer"
	}
	return name + ", which holds more than others"
}

// shrink removes a voter that is to go, the least useful first, if the group can
// do without.
func (p *planner) shrink(s *placedShard, surplus []string) {
	surplus = slices.Clone(surplus)
	slices.SortFunc(surplus, func(a, b string) int {
		x, y := p.nodes[a], p.nodes[b]
		return cmp.Or(cmp.Compare(truth(x.answers), truth(y.answers)), cmp.Compare(y.standing, x.standing),
			cmp.Compare(truth(a == s.leader), truth(b == s.leader)), cmp.Compare(a, b))
	})
	for _, name := range surplus {
		if !p.safeWithout(s, name) {
			continue
		}
		if name != s.leader {
			p.take(s, stepRemove, name, "the shard does without %s", p.departure(name))
			return
		}
		if heir := p.heir(s); heir != "" {
			p.give(s, heir, "the leader is to go: %s", p.departure(name))
			return
		}
	}
}

// safeWithout tells whether a group may lose a voter: those that stay, and follow
// right now, must be a majority of what is left. They must also stand as many
// failures as before, except that a member which was removed goes in any case.
func (p *planner) safeWithout(s *placedShard, node string) bool {
	before := p.margin(s, s.Voters)
	after := p.margin(s, without(s.Voters, node))
	return len(s.Voters) > 1 && after >= 0 && (after >= before || p.nodes[node].standing == standsRemoved)
}

// margin is how many of the voters that follow the group could lose and go on;
// negative when it could not commit as it is.
func (p *planner) margin(s *placedShard, voters []string) int {
	follow := 0
	for _, name := range voters {
		if p.follows(s, name) {
			follow++
		}
	}
	return follow - (len(voters)/2 + 1)
}

// common are the names of a that b has, too; beyond those it has not.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}

func beyond(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
}
