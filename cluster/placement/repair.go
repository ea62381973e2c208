package placement

import (
	"cmp"
	"slices"
)

// moving reports whether a shard counts against the bounds of mayMove.
func (p *planner) moving(s *placedShard) bool {
	return len(s.NonVoters) > 0 || len(s.Voters) > p.wanted
}

// countMove counts a shard that moves, and mayMove reports whether one more may.
func (p *planner) countMove(s *placedShard) {
	if s.small() {
		p.small++
		p.smallSum += s.Bytes
	} else {
		p.moves++
	}
}

func (p *planner) mayMove(s *placedShard) bool {
	switch {
	case !s.small():
		return p.moves < maxMoves
	case p.small < MinSmallMoves:
		return true
	}
	return p.small < min(p.state.SmallMoves, MostSmallMoves) && p.smallSum+s.Bytes <= maxSmallBytes
}

func (s *placedShard) small() bool {
	if s.Bytes == 0 {
		return s.Last <= smallLast
	}
	return s.Bytes <= smallBytes
}

// promotable returns the non-voters to promote.
func (s *placedShard) promotable() []string { return intersection(s.NonVoters, s.target) }

// missing returns the nodes of the target that are to get a replica. A node with a failed replica
// gets another one when that is dropped.
func (p *planner) missing(s *placedShard) []string {
	return slices.DeleteFunc(difference(s.target, s.members()), func(name string) bool {
		return p.hasFailed(s, name)
	})
}

// surplus returns the voters that are not in the target.
func (s *placedShard) surplus() []string { return difference(s.Voters, s.target) }

// repair brings every shard one step nearer to its target: first the shards with a move under way,
// then those with the fewest live voters.
func (p *planner) repair() {
	order := slices.Clone(p.shards)
	slices.SortStableFunc(order, func(a, b *placedShard) int {
		return cmp.Or(cmp.Compare(boolInt(p.moving(b)), boolInt(p.moving(a))), cmp.Compare(p.liveVoters(a), p.liveVoters(b)))
	})
	for _, s := range order {
		if !s.busy {
			p.repairShard(s)
		}
	}
}

// liveVoters counts the voters that answer and were not removed.
func (p *planner) liveVoters(s *placedShard) int {
	count := 0
	for _, name := range s.Voters {
		if n := p.nodes[name]; n.reported && n.rank != rankRemoved {
			count++
		}
	}
	return count
}

// repairShard adds one step for a shard, if it needs one.
func (p *planner) repairShard(s *placedShard) {
	if p.removeLost(s) {
		return
	}
	for _, name := range s.NonVoters {
		if !slices.Contains(s.target, name) {
			p.addStep(s, StepRemove, name, "a non-voter that %s", p.nonVoterReason(name))
			return
		}
	}
	missing, learning, surplus := p.missing(s), s.promotable(), s.surplus()
	// A group that is larger than wanted shrinks before it grows again: the voters go 3, 4, 3 and
	// not 3, 4, 5.
	if len(surplus) > 0 && len(s.Voters) > p.wanted {
		p.shrink(s, surplus)
		return
	}
	for _, name := range learning {
		if n := p.nodes[name]; n.reported && !p.hosted(s, name) {
			p.addStep(s, StepHost, name, "its leader counts a replica that does not exist")
			return
		}
		if !p.acknowledges(s, name) {
			return // one copy at a time
		}
	}
	switch {
	case len(learning) == 1 && len(s.Voters) == 1 && len(missing) > 0:
		// A group of two voters survives no failure: the third replica is made ready before the
		// second votes.
		p.grow(s, missing[0])
	case len(learning) > 0:
		p.addStep(s, StepPromote, learning[0], "it has caught up")
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

// nonVoterReason says why a non-voter is removed.
func (p *planner) nonVoterReason(name string) string {
	switch n := p.nodes[name]; {
	case n.rank == rankRemoved:
		return "was removed from the cluster"
	case n.down:
		return "died before it had caught up"
	case n.Draining:
		return "drains"
	case n.Stuck:
		return "is on a disk that hangs"
	case n.Full:
		return "is on a node that should take none"
	}
	return "is not needed any more"
}

// grow adds a replica if mayMove allows.
func (p *planner) grow(s *placedShard, node string) {
	if !p.moving(s) {
		if !p.mayMove(s) {
			return
		}
		p.countMove(s)
	}
	reason := "the shard has too few replicas"
	if surplus := s.surplus(); len(surplus) > 0 {
		reason = "it replaces " + p.voterReason(surplus[0])
	}
	p.addStep(s, StepAdd, node, "%s", reason)
}

// voterReason says why a voter is removed.
func (p *planner) voterReason(name string) string {
	switch p.nodes[name].rank {
	case rankRemoved:
		return name + ", which was removed"
	case rankDead:
		return name + ", which has been dead for too long"
	case rankDraining:
		switch {
		case p.nodes[name].Draining:
			return name + ", which drains"
		case p.nodes[name].Stuck:
			return name + ", whose disk hangs"
		}
		return name + ", which should lead nothing"
	case rankUnreachable:
		switch {
		case p.nodes[name].Leaving:
			return name + ", which is about to stop"
		case p.nodes[name].Stuck:
			return name + ", whose disk hangs"
		}
		return name + ", which does not answer"
	}
	return name + ", which holds more than others"
}

// shrink removes a voter of the surplus, the least useful first, if the group survives without it.
func (p *planner) shrink(s *placedShard, surplus []string) {
	surplus = slices.Clone(surplus)
	slices.SortFunc(surplus, func(a, b string) int {
		x, y := p.nodes[a], p.nodes[b]
		return cmp.Or(cmp.Compare(boolInt(x.reported), boolInt(y.reported)), cmp.Compare(boolInt(y.Stuck), boolInt(x.Stuck)), cmp.Compare(y.rank, x.rank),
			cmp.Compare(boolInt(a == s.leader), boolInt(b == s.leader)), cmp.Compare(a, b))
	})
	for _, name := range surplus {
		if !p.canRemove(s, name) {
			continue
		}
		if name != s.leader {
			p.addStep(s, StepRemove, name, "the shard does not need %s", p.voterReason(name))
			return
		}
		if successor := p.successor(s); successor != "" {
			p.transferLead(s, successor, "the leader is to go: %s", p.voterReason(name))
			return
		}
	}
}

// canRemove reports whether a group may lose a voter: the voters that stay and follow now must be a
// majority of the rest. The group must also survive as many failures as before, unless the member
// was removed from the cluster.
func (p *planner) canRemove(s *placedShard, node string) bool {
	before := p.margin(s, s.Voters)
	after := p.margin(s, without(s.Voters, node))
	return len(s.Voters) > 1 && after >= 0 && (after >= before || p.nodes[node].rank == rankRemoved)
}

// margin returns the number of acknowledging voters that the group may lose and still commit; negative
// if it can't commit now.
func (p *planner) margin(s *placedShard, voters []string) int {
	follow := 0
	for _, name := range voters {
		if p.acknowledges(s, name) {
			follow++
		}
	}
	return follow - (len(voters)/2 + 1)
}

// intersection returns the names of a that are in b, and difference those that are not.
func intersection(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}

func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
}
