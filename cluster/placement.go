package cluster

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"switchyard/storage"
)

// Placement decides which nodes hold and lead which shards. It keeps no memory of
// what it began: every round is planned anew from what the groups' leaders say, so
// that a half-done move is carried on, or undone, by whoever owns the directory
// next. A move of a replica is
//
//	add a non-voter -> it catches up -> promote -> remove the surplus voter
//
// and each round takes at most one of these steps per shard.

const (
	// maxMoves is the number of shards that may be copied, or have more replicas than wanted, at
	// the same time.
	maxMoves = 2
	// maxTransfers is the number of leaderships transferred in one round.
	maxTransfers = 4
	// replicasWanted is the number of replicas of a shard, in a cluster that has had as many
	// members.
	replicasWanted = 3
)

// clusterState is the input of plan.
type clusterState struct {
	shards       int           // workspace shards; the directory is not counted
	everThree    bool          // the cluster has had three members at the same time
	replaceAfter time.Duration // how long the replicas of a dead member wait for it
	members      []memberView
	reports      map[string][]groupReport // of the members that answered
	droppable    map[replica]bool         // orphans that are older than orphanGrace
}

// memberView is what the registry and gossip know of a member.
type memberView struct {
	Name, Zone, HTTP, Peer, Gossip, Version string

	State     NodeState // alive, suspect, dead or left; a draining member is alive
	Draining  bool
	Removed   bool
	DeadSince time.Time // when it was last seen; zero if it is alive or the time is unknown
}

// replica is a shard on a node.
type replica struct {
	shard storage.Shard
	node  string
}

// stepKind is the kind of a step.
type stepKind string

const (
	stepAdd      stepKind = "add"      // create an empty replica and make it a non-voter
	stepHost     stepKind = "host"     // create a replica that its leader already counts
	stepPromote  stepKind = "promote"  // make a non-voter a voter
	stepRemove   stepKind = "remove"   // remove a member from its group
	stepTransfer stepKind = "transfer" // transfer the leadership
	stepDrop     stepKind = "drop"     // delete a replica that is not a member
)

// step is one change. A shard's leader carries it out, or the node itself.
type step struct {
	kind   stepKind
	shard  storage.Shard
	node   string // the node that the step is about
	leader string // the node that carries it out; not set for host and drop
	term   uint64 // the leader's
	last   uint64 // newest entry in the leader's log, for drop
	reason string
}

// String formats a step for tests.
func (s step) String() string { return fmt.Sprintf("%d: %s %s: %s", s.shard, s.kind, s.node, s.reason) }

// LogValue formats a step for logs.
func (s step) LogValue() slog.Value {
	return slog.GroupValue(slog.String("kind", string(s.kind)), slog.Int("shard", int(s.shard)),
		slog.String("node", s.node), slog.String("leader", s.leader), slog.String("reason", s.reason))
}

// plan returns the steps to take now. It depends on its input alone. No two steps of a plan depend
// on each other.
func plan(state clusterState, now time.Time) []step {
	p := newPlanner(state, now)
	p.setTargets()
	p.drainLeaders()
	p.repair()
	p.balance()
	p.balanceLeaders()
	p.dropOrphans()
	return p.steps
}

// planner is the state of one round of planning.
type planner struct {
	state     clusterState
	nodes     map[string]*placedNode
	names     []string       // sorted names of nodes
	shards    []*placedShard // shards with a known leader, by id
	wanted    int            // replicas per shard
	steps     []step
	moves     int // shards being copied or larger than wanted
	transfers int // leaderships transferred in this round
}

// rank orders members: replicas are left with members of a lower rank first.
type rank int

const (
	rankAvailable   rank = iota // answers and may get replicas
	rankUnreachable             // does not answer, but may be back soon
	rankDraining                // its replicas move to other nodes
	rankDead                    // dead for so long that it is replaced
	rankRemoved                 // removed for good
)

// placedNode is a member during planning.
type placedNode struct {
	memberView
	rank     rank
	reported bool // its report is in the input
	down     bool // dead, or has left
	hosts    map[storage.Shard]groupReport
	replicas int // shards that it will hold
	leads    int // shards that it will lead
}

// eligible reports whether the node may get replicas and leaderships.
func (n *placedNode) eligible() bool { return n.rank == rankAvailable }

// placedShard is a group during planning.
type placedShard struct {
	groupReport // the leader's report

	leader string
	lag    map[string]peerReport
	target []string // nodes that are to hold the shard
	busy   bool     // the round has a step for it
}

func newPlanner(state clusterState, now time.Time) *planner {
	p := &planner{state: state, nodes: map[string]*placedNode{}, wanted: 1}
	if state.everThree {
		p.wanted = replicasWanted
	}
	for _, m := range state.members {
		reports, answers := state.reports[m.Name]
		n := &placedNode{memberView: m, reported: answers, hosts: map[storage.Shard]groupReport{}}
		for _, r := range reports {
			n.hosts[r.Shard] = r
		}
		n.down = !answers && (m.State == NodeDead || m.State == NodeLeft)
		gone := n.down && !m.DeadSince.IsZero() && now.Sub(m.DeadSince) >= state.replaceAfter
		switch {
		case m.Removed:
			n.rank = rankRemoved
		case gone:
			n.rank = rankDead
		case m.Draining:
			n.rank = rankDraining
		case !answers:
			n.rank = rankUnreachable
		}
		p.nodes[m.Name] = n
		p.names = append(p.names, m.Name)
	}
	slices.Sort(p.names)
	p.findLeaders()
	return p
}

// findLeaders picks the report that counts for each shard: that of the leader with the highest
// term.
func (p *planner) findLeaders() {
	found := map[storage.Shard]*placedShard{}
	for _, name := range p.names {
		for _, r := range p.nodes[name].hosts {
			if known := found[r.Shard]; r.Leads && (known == nil || known.Term < r.Term) {
				found[r.Shard] = &placedShard{groupReport: r, leader: name}
			}
		}
	}
	for _, s := range found {
		s.lag = map[string]peerReport{}
		for _, peer := range s.Peers {
			s.lag[peer.Node] = peer
		}
		// A voter that is not registered stays; it counts as unreachable.
		for _, name := range s.members() {
			if p.nodes[name] == nil {
				p.nodes[name] = &placedNode{memberView: memberView{Name: name}, rank: rankUnreachable}
			}
			p.nodes[name].replicas++
		}
		p.nodes[s.leader].leads++
		p.shards = append(p.shards, s)
	}
	slices.SortFunc(p.shards, func(a, b *placedShard) int { return cmp.Compare(a.Shard, b.Shard) })
}

// allLed reports whether every shard has a known leader.
func (p *planner) allLed() bool { return len(p.shards) == p.state.shards+1 }

func (s *placedShard) members() []string { return append(slices.Clone(s.Voters), s.NonVoters...) }

// caughtUp reports whether a member could take over the leadership, or vote, now.
func (p *planner) caughtUp(s *placedShard, node string) bool {
	return p.nodes[node].reported && (node == s.leader || s.lag[node].CaughtUp)
}

// addStep adds a step.
func (p *planner) addStep(s *placedShard, kind stepKind, node, format string, args ...any) {
	s.busy = true
	p.steps = append(p.steps, step{
		kind: kind, shard: s.Shard, node: node, leader: s.leader, term: s.Term, last: s.Last,
		reason: fmt.Sprintf(format, args...),
	})
}

// transferLead adds a transfer of a leadership, within the limit of a round.
func (p *planner) transferLead(s *placedShard, node, format string, args ...any) {
	if p.transfers == maxTransfers {
		return
	}
	p.transfers++
	p.nodes[s.leader].leads--
	p.nodes[node].leads++
	p.addStep(s, stepTransfer, node, format, args...)
}

// successor returns the next leader of the shard: the voter with the fewest leaderships among those
// that are caught up and allowed to lead. A draining voter is better than a removed one. It returns
// "" if there is none.
func (p *planner) successor(s *placedShard) string {
	worst := rankAvailable
	if p.nodes[s.leader].rank == rankRemoved {
		worst = rankDraining
	}
	best := ""
	for _, name := range s.Voters {
		n := p.nodes[name]
		if name == s.leader || n.rank > worst || !p.caughtUp(s, name) || !slices.Contains(s.target, name) {
			continue
		}
		if best == "" || cmp.Or(cmp.Compare(n.rank, p.nodes[best].rank),
			cmp.Compare(n.leads, p.nodes[best].leads), cmp.Compare(name, best)) < 0 {
			best = name
		}
	}
	return best
}
