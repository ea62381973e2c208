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
	// maxMoves is how many shards may be copying, or be larger than wanted, at once.
	maxMoves = 2
	// maxTransfers is how many leaderships may change hands in one round.
	maxTransfers = 4
	// replicasWanted per shard, in a cluster that has had as many members.
	replicasWanted = 3
)

// clusterState is all that a plan is made from.
type clusterState struct {
	shards       int           // workspace shards; the directory is beside them
	everThree    bool          // three members not removed have been here at once
	replaceAfter time.Duration // how long a dead member's replicas wait for it
	members      []memberView
	reports      map[string][]groupReport // of the members that answered
	droppable    map[replica]bool         // orphans seen long enough to be dropped
}

// memberView is what the registry and gossip know of one member.
type memberView struct {
	Name, Zone, HTTP, Peer, Gossip, Version string

	State     NodeState // alive, suspect, dead or left; draining is taken for alive
	Draining  bool
	Removed   bool
	DeadSince time.Time // when it was last seen; zero when it is alive, or nobody knows
}

// replica is a shard on a node.
type replica struct {
	shard storage.Shard
	node  string
}

// stepKind is what a step does.
type stepKind string

const (
	stepAdd      stepKind = "add"      // host an empty replica and make it a non-voter
	stepHost     stepKind = "host"     // host a replica that its leader already counts
	stepPromote  stepKind = "promote"  // a non-voter to a voter
	stepRemove   stepKind = "remove"   // a member from its group
	stepTransfer stepKind = "transfer" // the leadership
	stepDrop     stepKind = "drop"     // a replica that is no member
)

// step is one change, carried out on a shard's leader or on the node itself.
type step struct {
	kind   stepKind
	shard  storage.Shard
	node   string // whom it is about
	leader string // who carries it out; not for host and drop
	term   uint64 // the leader's
	last   uint64 // newest entry in the leader's log, for drop
	reason string
}

// String is how a step is written in tests.
func (s step) String() string { return fmt.Sprintf("%d: %s %s: %s", s.shard, s.kind, s.node, s.reason) }

// LogValue is how a step is written in logs.
func (s step) LogValue() slog.Value {
	return slog.GroupValue(slog.String("kind", string(s.kind)), slog.Int("shard", int(s.shard)),
		slog.String("node", s.node), slog.String("leader", s.leader), slog.String("reason", s.reason))
}

// plan gives the steps to take now. It is a function of its input alone. No two
// steps of a plan depend on each other.
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

// planner is one round of planning.
type planner struct {
	state     clusterState
	nodes     map[string]*placedNode
	names     []string       // of nodes, sorted
	shards    []*placedShard // those with a known leader, by id
	wanted    int            // replicas per shard
	steps     []step
	moves     int // shards being copied or larger than wanted
	transfers int // leaderships transferred in this round
}

// rank orders members by how willingly a replica is left with them.
type rank int

const (
	rankAvailable   rank = iota // answers, and may be given replicas
	rankUnreachable             // does not answer, and may be back soon
	rankDraining                // to be emptied
	rankDead                    // dead for so long that it is replaced
	rankRemoved                 // told to leave for good
)

// placedNode is a member during planning.
type placedNode struct {
	memberView
	rank     rank
	reported bool // its report is here
	down     bool // known to be dead, or to have left
	hosts    map[storage.Shard]groupReport
	replicas int // shards it is going to hold
	leads    int // shards it is going to lead
}

// eligible tells whether the node may be given replicas and leaderships.
func (n *placedNode) eligible() bool { return n.rank == rankAvailable }

// placedShard is a group during planning.
type placedShard struct {
	groupReport // its leader's

	leader string
	lag    map[string]peerReport
	target []string // who is to hold it
	busy   bool     // has a step in this round
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

// findLeaders picks for each shard the report that counts: the one of the leader
// with the highest term.
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
		// A voter that nobody registered is left alone: it counts as one that is away.
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

// allLed tells whether every shard has a known leader.
func (p *planner) allLed() bool { return len(p.shards) == p.state.shards+1 }

func (s *placedShard) members() []string { return append(slices.Clone(s.Voters), s.NonVoters...) }

// caughtUp tells whether a member could take over, or vote, right now.
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

// transferLead hands a leadership over, within the round's limit.
func (p *planner) transferLead(s *placedShard, node, format string, args ...any) {
	if p.transfers == maxTransfers {
		return
	}
	p.transfers++
	p.nodes[s.leader].leads--
	p.nodes[node].leads++
	p.addStep(s, stepTransfer, node, format, args...)
}

// successor is who should lead the shard after its leader: of the voters that can and
// may, the one that leads least. A draining one is better than one that was
// removed. Empty when there is none.
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
