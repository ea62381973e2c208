package placement

import (
	"cmp"
	"slices"
)

// drainLeaders takes leaderships from nodes and replicas that should have none, before anything
// else.
func (p *planner) drainLeaders() {
	for _, s := range p.shards {
		reason := p.voterReason(s.leader)
		switch {
		case s.Failed != "":
			reason = "its replica failed: " + s.Failed
		case p.nodes[s.leader].rank < rankDraining && !p.nodes[s.leader].Leaving:
			continue
		}
		if successor := p.successor(s); successor != "" {
			p.transferLead(s, successor, "%s", reason)
		}
	}
}

// balanceLeaders spreads leaderships evenly once all replicas are in their places.
func (p *planner) balanceLeaders() {
	if !p.allLed() || p.moves+p.small > 0 {
		return
	}
	for _, st := range p.steps {
		if st.Kind != StepTransfer {
			return
		}
	}
	for p.transfers < p.maxTransfers() {
		chain := p.leaderChain()
		if len(chain) == 0 {
			return
		}
		for _, h := range chain {
			p.transferLead(h.shard, h.to, "%s leads more shards", h.shard.leader)
		}
	}
}

// handover is a possible transfer of a leadership to a node.
type handover struct {
	shard *placedShard
	to    string
}

// leaderChain finds a chain of transfers from a node to one that leads at least two shards less;
// the nodes between keep their counts. Without such a chain the spread is as even as the replicas
// allow. The limit of a round may cut a chain short; the surplus is then on a node between, and the
// next round's chain is shorter.
func (p *planner) leaderChain() []handover {
	sources := slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return !p.nodes[name].eligible() })
	slices.SortStableFunc(sources, func(a, b string) int { return cmp.Compare(p.nodes[b].leads, p.nodes[a].leads) })
	for _, source := range sources {
		if chain := p.chainFrom(source); chain != nil {
			return chain
		}
	}
	return nil
}

// chainFrom searches breadth first. Of the nearest nodes that qualify it takes the one with the
// fewest leaderships.
func (p *planner) chainFrom(source string) []handover {
	type hop struct {
		handover
		from string
	}
	reached := map[string]hop{source: {}}
	for circle := []string{source}; len(circle) > 0; {
		var next []string
		for _, at := range circle {
			for _, h := range p.handovers(at) {
				if _, known := reached[h.to]; !known {
					reached[h.to] = hop{handover: h, from: at}
					next = append(next, h.to)
				}
			}
		}
		slices.SortStableFunc(next, func(a, b string) int { return cmp.Compare(p.nodes[a].leads, p.nodes[b].leads) })
		if len(next) > 0 && p.nodes[next[0]].leads <= p.nodes[source].leads-2 {
			var chain []handover
			for at := next[0]; at != source; at = reached[at].from {
				chain = append(chain, reached[at].handover)
			}
			slices.Reverse(chain)
			return chain
		}
		circle = next
	}
	return nil
}

// handovers lists the transfers that take a leadership from a node. The directory's comes last: it
// moves only if no other transfer helps.
func (p *planner) handovers(from string) []handover {
	var ways []handover
	for i := range p.shards {
		s := p.shards[(i+1)%len(p.shards)]
		if s.leader != from || s.busy {
			continue
		}
		for _, name := range slices.Sorted(slices.Values(s.Voters)) {
			if name != from && p.nodes[name].eligible() && p.caughtUp(s, name) {
				ways = append(ways, handover{shard: s, to: name})
			}
		}
	}
	return ways
}
