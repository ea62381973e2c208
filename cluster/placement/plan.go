package placement

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"switchyard/cluster/membership"
	"switchyard/storage"
)

const (
	// maxMoves is the number of shards that may be copied, or have more replicas than wanted, at
	// the same time.
	maxMoves = 2
	// MinSmallMoves is that number for small shards, which take no time to copy: those of a new
	// cluster should soon have all their replicas. State may allow more, as long as the shards have no more
	// than maxSmallBytes together.
	MinSmallMoves = 32
	// MostSmallMoves is the largest number of small shards that State may allow.
	MostSmallMoves = 256
	maxSmallBytes  = MinSmallMoves * smallBytes
	// smallBytes is the size up to which a shard is small. smallLast is the index of the newest entry up
	// to which a shard is small whose size is not known. A new shard has fewer than ten entries, and few
	// can have much data.
	smallBytes = 4 << 20
	smallLast  = 64
	// minTransfers and mostTransfers bound the number of leaderships transferred in one round. Each
	// takes some milliseconds of processor time.
	minTransfers  = 4
	mostTransfers = 32
	// replicasWanted is the number of replicas of a shard, in a cluster that has had as many
	// members.
	replicasWanted = 3
)

// State is the input of plan.
type State struct {
	Shards       int           // workspace shards; the directory is not counted
	EverThree    bool          // the cluster has had three members at the same time
	ReplaceAfter time.Duration // how long the replicas of a dead member wait for it
	SmallMoves   int           // small shards that may move at the same time, see MinSmallMoves
	Members      []Member
	Reports      map[string][]GroupReport // of the members that answered
	Droppable    map[Replica]bool         // orphans that are older than OrphanGrace
	Lost         map[Replica]bool         // lost replicas that are older than LostGrace
}

// Member is what the registry and gossip know of a member.
type Member struct {
	Name, Zone, HTTP, Peer, Gossip, Version string
	NewestFormat                            storage.Format

	State     membership.NodeState // alive, suspect, dead or left; a draining member is alive
	Draining  bool
	Leaving   bool // it is about to stop
	Stuck     bool // its disk hangs, or has done so a moment ago
	Full      bool // it should lead nothing and keep no replicas, as one whose disk is full or has hung for long
	Removed   bool
	Released  bool      // removed, and no group counts it any more
	DeadSince time.Time // when it was last seen; zero if it is alive or the time is unknown
}

// Replica is a shard on a node.
type Replica struct {
	Shard storage.Shard
	Node  string
}

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	StepAdd      StepKind = "add"      // create an empty replica and make it a non-voter
	StepHost     StepKind = "host"     // create a replica that its leader already counts
	StepPromote  StepKind = "promote"  // make a non-voter a voter
	StepRemove   StepKind = "remove"   // remove a member from its group
	StepTransfer StepKind = "transfer" // transfer the leadership
	StepDrop     StepKind = "drop"     // delete a replica that is not a member
)

// Step is one change. A shard's leader carries it out, or the node itself.
type Step struct {
	Kind   StepKind
	Shard  storage.Shard
	Node   string // the node that the step is about
	Leader string // the node that carries it out, or leads the shard
	Term   uint64 // the leader's
	Last   uint64 // newest entry in the leader's log
	Reason string
}

// String formats a step for tests.
func (s Step) String() string { return fmt.Sprintf("%d: %s %s: %s", s.Shard, s.Kind, s.Node, s.Reason) }

// LogValue formats a step for logs.
func (s Step) LogValue() slog.Value {
	return slog.GroupValue(slog.String("kind", string(s.Kind)), slog.Int("shard", int(s.Shard)),
		slog.String("node", s.Node), slog.String("leader", s.Leader), slog.String("reason", s.Reason))
}

// Plan returns the steps to take now. It depends on its input alone. No two steps of a plan depend
// on each other.
func Plan(state State, now time.Time) []Step {
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
	state     State
	nodes     map[string]*placedNode
	names     []string       // sorted names of nodes
	shards    []*placedShard // shards with a known leader, by id
	wanted    int            // replicas per shard
	steps     []Step
	moves     int    // shards being copied or larger than wanted, but for small ones
	small     int    // small ones of them
	smallSum  uint64 // bytes of the small ones
	transfers int    // leaderships transferred in this round
}

// rank orders members: replicas are left with members of a lower rank first.
type rank int

const (
	rankAvailable   rank = iota // answers and may get replicas
	rankUnreachable             // does not answer, is about to stop or has a disk that hangs, but may be back soon
	rankDraining                // its replicas move to other nodes
	rankDead                    // dead for so long that it is replaced
	rankRemoved                 // removed for good
)

// placedNode is a member during planning.
type placedNode struct {
	Member
	rank     rank
	reported bool // its report is in the input
	down     bool // dead, or has left
	hosts    map[storage.Shard]GroupReport
	replicas int // shards that it will hold
	leads    int // shards that it will lead
}

// eligible reports whether the node may get replicas and leaderships.
func (n *placedNode) eligible() bool { return n.rank == rankAvailable }

// placedShard is a group during planning.
type placedShard struct {
	GroupReport // the leader's report

	leader string
	lag    map[string]PeerReport
	target []string // nodes that are to hold the shard
	busy   bool     // the round has a step for it, or its members are changing
}

func newPlanner(state State, now time.Time) *planner {
	p := &planner{state: state, nodes: map[string]*placedNode{}, wanted: 1}
	if state.EverThree {
		p.wanted = replicasWanted
	}
	for _, m := range state.Members {
		reports, answers := state.Reports[m.Name]
		n := &placedNode{Member: m, reported: answers, hosts: map[storage.Shard]GroupReport{}}
		for _, r := range reports {
			n.hosts[r.Shard] = r
		}
		n.down = !answers && (m.State == membership.NodeDead || m.State == membership.NodeLeft)
		gone := n.down && !m.DeadSince.IsZero() && now.Sub(m.DeadSince) >= state.ReplaceAfter
		switch {
		case m.Removed:
			n.rank = rankRemoved
		case gone:
			n.rank = rankDead
		case m.Draining || m.Full:
			n.rank = rankDraining
		case !answers || m.Leaving || m.Stuck:
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
				// Raft takes one change of members at a time.
				found[r.Shard] = &placedShard{GroupReport: r, leader: name, busy: r.Changing}
			}
		}
	}
	for _, s := range found {
		s.lag = map[string]PeerReport{}
		for _, peer := range s.Peers {
			s.lag[peer.Node] = peer
		}
		// A voter that is not registered stays; it counts as unreachable.
		for _, name := range s.members() {
			if p.nodes[name] == nil {
				p.nodes[name] = &placedNode{Member: Member{Name: name}, rank: rankUnreachable}
			}
			p.nodes[name].replicas++
		}
		p.nodes[s.leader].leads++
		p.shards = append(p.shards, s)
	}
	slices.SortFunc(p.shards, func(a, b *placedShard) int { return cmp.Compare(a.Shard, b.Shard) })
}

// allLed reports whether every shard has a known leader.
func (p *planner) allLed() bool { return len(p.shards) == p.state.Shards+1 }

func (s *placedShard) members() []string { return append(slices.Clone(s.Voters), s.NonVoters...) }

// caughtUp reports whether a member could take over the leadership now.
func (p *planner) caughtUp(s *placedShard, node string) bool {
	own, hosts := p.nodes[node].hosts[s.Shard]
	return hosts && own.Failed == "" && (node == s.leader || s.lag[node].CaughtUp)
}

// acknowledges reports whether a member counts for the quorum of a change now.
func (p *planner) acknowledges(s *placedShard, node string) bool {
	own := p.nodes[node].hosts[s.Shard]
	return p.caughtUp(s, node) && own.takesEntries()
}

// addStep adds a step.
func (p *planner) addStep(s *placedShard, kind StepKind, node, format string, args ...any) {
	s.busy = true
	p.steps = append(p.steps, Step{
		Kind: kind, Shard: s.Shard, Node: node, Leader: s.leader, Term: s.Term, Last: s.Last,
		Reason: fmt.Sprintf(format, args...),
	})
}

// maxTransfers returns the number of leaderships transferred in one round: a drain should not take longer
// where there are more shards.
func (p *planner) maxTransfers() int { return min(max(minTransfers, p.state.Shards/8), mostTransfers) }

// transferLead adds a transfer of a leadership, within the limit of a round.
func (p *planner) transferLead(s *placedShard, node, format string, args ...any) {
	if p.transfers >= p.maxTransfers() {
		return
	}
	p.transfers++
	p.nodes[s.leader].leads--
	p.nodes[node].leads++
	p.addStep(s, StepTransfer, node, format, args...)
}

// successor returns the next leader of the shard: the voter with the fewest leaderships among those
// that are caught up and allowed to lead. A draining voter is better than a removed one, and
// any voter better than a failed one. One whose disk has hung a moment ago, or that is about to stop, is worse than one
// that drains. Of those of one rank, one whose disk has room for changes is better.
// A voter whose disk hangs can't take over, since it has to write its vote. It returns "" if there is none.
func (p *planner) successor(s *placedShard) string {
	worst := rankAvailable
	if p.nodes[s.leader].rank == rankRemoved {
		worst = rankDraining
	}
	if s.Failed != "" {
		worst = rankRemoved
	}
	able := slices.DeleteFunc(slices.Clone(s.Voters), func(name string) bool {
		n := p.nodes[name]
		return name == s.leader || n.rank > worst || n.hosts[s.Shard].Stuck || !p.caughtUp(s, name) || s.Failed == "" && !slices.Contains(s.target, name)
	})
	if len(able) == 0 {
		return ""
	}
	return slices.MinFunc(able, func(a, b string) int {
		x, y := p.nodes[a], p.nodes[b]
		return cmp.Or(cmp.Compare(boolInt(x.Removed), boolInt(y.Removed)), cmp.Compare(boolInt(x.Stuck || x.Leaving), boolInt(y.Stuck || y.Leaving)),
			cmp.Compare(x.rank, y.rank), cmp.Compare(boolInt(!p.acknowledges(s, a)), boolInt(!p.acknowledges(s, b))),
			cmp.Compare(x.leads, y.leads), cmp.Compare(a, b))
	})
}
