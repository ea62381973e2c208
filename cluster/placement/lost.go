package placement

import (
	"slices"
	"time"
)

// LostGrace is how long a voter must have been lost before it is replaced.
const LostGrace = 5 * time.Second

// Lost returns the replicas that count for nothing on nodes that answer: voters that their nodes do
// not hold, and replicas that failed. A voter is never created anew in place, because it would have
// forgotten its votes: its group removes it, and adds it as an empty member then.
func Lost(state State) map[Replica]bool {
	return state.replicas((*planner).lostMembers)
}

// replicas returns the replicas of all shards that a function finds in what was reported.
func (state State) replicas(find func(*planner, *placedShard) []string) map[Replica]bool {
	p := newPlanner(State{Shards: state.Shards, Members: state.Members, Reports: state.Reports}, time.Time{})
	found := map[Replica]bool{}
	for _, s := range p.shards {
		for _, name := range find(p, s) {
			found[Replica{s.Shard, name}] = true
		}
	}
	return found
}

// hasFailed reports whether a node has a replica of the shard that failed.
func (p *planner) hasFailed(s *placedShard, node string) bool {
	return p.nodes[node].hosts[s.Shard].Failed != ""
}

func (p *planner) lostMembers(s *placedShard) []string {
	if s.Epoch == 0 && s.Failed == "" { // no proof yet that a majority follows the leader
		return nil
	}
	var lost []string
	for _, name := range s.members() {
		n := p.nodes[name]
		own, hosts := n.hosts[s.Shard]
		if n.reported && name != s.leader && (own.Failed != "" || !hosts && slices.Contains(s.Voters, name)) {
			lost = append(lost, name)
		}
	}
	return lost
}

// removeLost adds the step that removes a lost member, if there is one and the group survives
// without it.
func (p *planner) removeLost(s *placedShard) bool {
	for _, name := range p.lostMembers(s) {
		if !p.state.Lost[Replica{s.Shard, name}] || slices.Contains(s.Voters, name) && !p.commits(s, without(s.Voters, name)) {
			continue
		}
		reason := "its node answers and holds no replica"
		if failed := p.nodes[name].hosts[s.Shard].Failed; failed != "" {
			reason = "its replica failed: " + failed
		}
		p.addStep(s, StepRemove, name, "%s", reason)
		return true
	}
	return false
}

// commits reports whether a group of these voters could commit now. A replica that failed while its node
// ran follows the log all the same, and counts here: of two that failed neither could be replaced
// otherwise. A replica whose disk takes no entries does not count.
func (p *planner) commits(s *placedShard, voters []string) bool {
	follow := 0
	for _, name := range voters {
		if own, hosts := p.nodes[name].hosts[s.Shard]; hosts && own.takesEntries() && (name == s.leader || s.lag[name].CaughtUp) {
			follow++
		}
	}
	return follow > len(voters)/2
}

// Releasable returns the removed nodes that no group counts any more: the leader of every shard has
// reported, is followed by a majority, and does not count the node, and that is committed. A shard
// without such a report may still need the node's vote.
func Releasable(state State) []string {
	p := newPlanner(State{Shards: state.Shards, Members: state.Members, Reports: state.Reports}, time.Time{})
	if !p.allLed() {
		return nil
	}
	var found []string
	for _, m := range state.Members {
		counted := func(s *placedShard) bool {
			return s.Epoch == 0 || s.Changing || p.margin(s, s.Voters) < 0 || slices.Contains(s.members(), m.Name)
		}
		if m.Removed && !m.Released && !slices.ContainsFunc(p.shards, counted) {
			found = append(found, m.Name)
		}
	}
	return found
}
