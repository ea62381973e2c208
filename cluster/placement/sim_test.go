package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"switchyard/cluster/membership"
	"switchyard/storage"
)

// simulated is a cluster without disks and network, as placement sees it.
type simulated struct {
	rng       *rand.Rand
	now       time.Time
	shards    int
	everThree bool
	nodes     map[string]*simulatedNode
	groups    []*simulatedGroup
	orphans   Ages[Replica]
	lost      Ages[Replica]
	late      bool // some reports miss their round
	story     []string
}

type simulatedNode struct {
	Member
	up     bool
	hosts  map[storage.Shard]uint64 // term last heard of
	failed map[storage.Shard]bool
}

type simulatedGroup struct {
	shard             storage.Shard
	voters, nonVoters []string
	behind            map[string]int // rounds of copying that are left
	leader            string
	term              uint64
	last              uint64 // newest entry
}

func newSimulated(seed uint64, shards int) *simulated {
	s := &simulated{
		rng: rand.New(rand.NewPCG(seed, seed)), now: testNow, shards: shards, nodes: map[string]*simulatedNode{}, late: true,
	}
	s.join("")
	for id := range shards + 1 {
		s.groups = append(s.groups, &simulatedGroup{shard: storage.Shard(id), voters: []string{"n1"}, behind: map[string]int{}, leader: "n1", term: 1, last: s.rng.Uint64N(2 * smallLast)})
		s.nodes["n1"].hosts[storage.Shard(id)] = 1
	}
	return s
}

func (s *simulated) say(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

func (s *simulated) join(zone string) {
	name := fmt.Sprintf("n%d", len(s.nodes)+1)
	s.nodes[name] = &simulatedNode{
		Member: Member{Name: name, Zone: zone, State: membership.NodeAlive}, up: true, hosts: map[storage.Shard]uint64{},
		failed: map[storage.Shard]bool{},
	}
	s.say("join %s %s", name, zone)
	present := 0
	for _, n := range s.nodes {
		present += boolInt(!n.Removed)
	}
	s.everThree = s.everThree || present >= 3
}

func (s *simulated) names() []string {
	var names []string
	for name := range s.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// votes counts voters that are up and have the log; lasting, those that are or
// may come back.
func (s *simulated) votes(g *simulatedGroup, lasting bool) int {
	count := 0
	for _, name := range g.voters {
		n := s.nodes[name]
		_, hosted := n.hosts[g.shard]
		switch {
		case n.failed[g.shard] || !hosted:
		case lasting:
			count += boolInt(n.up || !n.Removed)
		default:
			count += boolInt(n.up && g.behind[name] == 0)
		}
	}
	return count
}

func (g *simulatedGroup) quorum() int { return len(g.voters)/2 + 1 }

// survives reports whether a node may be switched off, or removed, for good.
func (s *simulated) survives(change func(), undo func()) bool {
	change()
	for _, g := range s.groups {
		if s.votes(g, true) < g.quorum() {
			undo()
			return false
		}
	}
	return true
}

func (s *simulated) event() {
	names := s.names()
	n := s.nodes[names[s.rng.IntN(len(names))]]
	switch what := s.rng.IntN(9); {
	case what == 7 && n.up:
		s.lose(n)
	case what == 8 && n.Removed:
		n.Removed = false
		s.say("remove %s no more", n.Name)
	case what == 0 && len(s.nodes) < 8:
		s.join("")
	case what == 1 && n.up:
		if s.survives(func() { n.up = false }, func() { n.up = true }) {
			s.die(n)
		}
	case what == 2 && !n.up:
		s.revive(n)
	case what == 3:
		n.Draining = !n.Draining
		s.say("draining %s: %v", n.Name, n.Draining)
	case what == 4 && s.rng.IntN(3) == 0 && s.others(n):
		if s.survives(func() { n.Removed = true }, func() { n.Removed = false }) {
			s.say("remove %s", n.Name)
		}
	case what == 5:
		s.now = s.now.Add(6 * time.Minute)
		s.say("wait")
	}
}

// lose makes a replica fail, or removes it, if its group survives that.
func (s *simulated) lose(n *simulatedNode) {
	shard := storage.Shard(s.rng.IntN(len(s.groups)))
	term, hosted := n.hosts[shard]
	if !hosted || n.failed[shard] {
		return
	}
	if s.rng.IntN(2) == 0 {
		if s.survives(func() { n.failed[shard] = true }, func() { delete(n.failed, shard) }) {
			s.say("%d fails on %s", shard, n.Name)
		}
	} else if s.groups[shard].leader != n.Name && s.survives(func() { delete(n.hosts, shard) }, func() { n.hosts[shard] = term }) {
		s.say("%d is gone from %s", shard, n.Name)
	}
}

// others reports whether the cluster has another node that was not removed.
func (s *simulated) others(than *simulatedNode) bool {
	for _, n := range s.nodes {
		if n != than && !n.Removed {
			return true
		}
	}
	return false
}

// die ends a node. It leads nothing any more, even if it is back before the next election: a
// leader that is behind its own group does not exist.
func (s *simulated) die(n *simulatedNode) {
	n.State, n.DeadSince = membership.NodeDead, s.now
	for _, g := range s.groups {
		if g.leader == n.Name {
			g.leader = ""
		}
	}
	s.say("die %s", n.Name)
}

func (s *simulated) revive(n *simulatedNode) {
	n.up, n.State, n.DeadSince = true, membership.NodeAlive, time.Time{}
	for id, g := range s.groups {
		if _, ok := n.hosts[storage.Shard(id)]; ok && s.rng.IntN(2) == 0 {
			g.behind[n.Name] = 2
		}
	}
	s.say("back %s", n.Name)
}

// settle lets a second pass: copies go on, and leaders are elected.
func (s *simulated) settle() {
	s.now = s.now.Add(time.Second)
	for _, g := range s.groups {
		for name, left := range g.behind {
			if s.nodes[name].up && left > 0 {
				g.behind[name]--
			}
		}
		if g.leader != "" && s.nodes[g.leader].up && s.votes(g, false) >= g.quorum() {
			continue
		}
		g.leader = ""
		for _, name := range g.voters {
			_, hosted := s.nodes[name].hosts[g.shard]
			if s.votes(g, false) >= g.quorum() && s.nodes[name].up && hosted && !s.nodes[name].failed[g.shard] && g.behind[name] == 0 && (g.leader == "" || s.rng.IntN(2) == 0) {
				g.leader = name
			}
		}
		if g.leader != "" {
			g.term++
		}
	}
}

func (s *simulated) state() State {
	state := State{
		Shards: s.shards, EverThree: s.everThree, ReplaceAfter: 5 * time.Minute,
		Reports: map[string][]GroupReport{},
	}
	for _, name := range s.names() {
		n := s.nodes[name]
		state.Members = append(state.Members, n.Member)
		if late := s.late && s.rng.IntN(40) == 0; !n.up || late {
			continue
		}
		state.Reports[name] = nil
		for id := range s.groups {
			if _, ok := n.hosts[storage.Shard(id)]; !ok {
				continue
			}
			g := s.groups[id]
			r := GroupReport{Shard: storage.Shard(id), Term: n.hosts[storage.Shard(id)]}
			if g.leader == name {
				r.Leads, r.Term, r.Epoch, r.Leader, r.Last = true, g.term, g.term, name, g.last
				r.Voters, r.NonVoters = slices.Clone(g.voters), slices.Clone(g.nonVoters)
				for _, peer := range append(slices.Clone(g.voters), g.nonVoters...) {
					r.Peers = append(r.Peers, PeerReport{Node: peer, CaughtUp: g.behind[peer] == 0})
				}
			}
			if n.failed[g.shard] {
				r.Failed = "bad"
			}
			state.Reports[name] = append(state.Reports[name], r)
		}
	}
	state.Lost = s.lost.Update(Lost(state), s.now, LostGrace)
	state.Droppable = s.orphans.Update(Orphans(state), s.now, OrphanGrace)
	return state
}

// round plans, checks the plan and carries it out; some steps fail.
func (s *simulated) round(t *rapid.T, mayFail bool) []Step {
	s.settle()
	state := s.state()
	large, small := s.copying(state)
	steps := Plan(state, s.now)
	if len(steps) > 0 {
		s.say("round: %d reports, %d copying and %d small ones", len(state.Reports), large, small)
	}
	transfers, seen := 0, map[storage.Shard]bool{}
	for _, st := range steps {
		if st.Kind != StepDrop {
			if seen[st.Shard] {
				s.fail(t, "two steps for shard %d: %v", st.Shard, steps)
			}
			seen[st.Shard] = true
		}
		transfers += boolInt(st.Kind == StepTransfer)
		s.say("  %v", st)
		if mayFail && s.rng.IntN(8) == 0 {
			s.say("  ... failed")
			continue
		}
		s.carry(t, st)
	}
	if transfers > max(minTransfers, s.shards/8) {
		s.fail(t, "%d transfers in a round", transfers)
	}
	if nowLarge, nowSmall := s.copying(state); nowLarge > max(large, maxMoves) || nowSmall > max(small, MinSmallMoves) {
		s.fail(t, "%d shards and %d small ones are copying", nowLarge, nowSmall)
	}
	return steps
}

// copying counts the shards with non-voters, large and small ones, as far as their leaders reported.
func (s *simulated) copying(state State) (large, small int) {
	for _, g := range s.groups {
		if _, ok := state.Reports[g.leader]; !ok || len(g.nonVoters) == 0 {
			continue
		}
		if g.last <= smallLast {
			small++
		} else {
			large++
		}
	}
	return large, small
}

func (s *simulated) carry(t *rapid.T, st Step) {
	g, n := s.groups[st.Shard], s.nodes[st.Node]
	ready := s.votes(g, false)-g.quorum() >= 0
	switch st.Kind {
	case StepAdd:
		if n.Draining || n.Removed || !n.up || slices.Contains(g.voters, n.Name) || slices.Contains(g.nonVoters, n.Name) {
			s.fail(t, "bad step %v", st)
		}
		for _, name := range g.nonVoters {
			if g.behind[name] > 0 {
				s.fail(t, "a second copy at once: %v", st)
			}
		}
		if n.failed[st.Shard] {
			s.fail(t, "a failed replica was added: %v", st)
		}
		n.hosts[st.Shard] = g.term
		g.nonVoters = append(g.nonVoters, n.Name)
		g.behind[n.Name] = 1 + s.rng.IntN(4)
	case StepHost:
		n.hosts[st.Shard] = g.term
	case StepPromote:
		if g.behind[n.Name] > 0 || !slices.Contains(g.nonVoters, n.Name) {
			s.fail(t, "bad step %v", st)
		}
		g.nonVoters = without(g.nonVoters, n.Name)
		g.voters = append(g.voters, n.Name)
	case StepRemove:
		if n.Name == g.leader {
			s.fail(t, "bad step %v", st)
		}
		g.voters, g.nonVoters = without(g.voters, n.Name), without(g.nonVoters, n.Name)
		delete(g.behind, n.Name)
	case StepTransfer:
		leaves := n.Draining && !s.nodes[g.leader].Removed || n.Removed
		if leaves && !s.nodes[g.leader].failed[st.Shard] || !n.up || g.behind[n.Name] > 0 || n.failed[st.Shard] || !slices.Contains(g.voters, n.Name) {
			s.fail(t, "bad step %v", st)
		}
		g.leader = n.Name
		g.term++
	case StepDrop:
		if slices.Contains(g.voters, n.Name) || slices.Contains(g.nonVoters, n.Name) {
			s.fail(t, "dropped a member: %v", st)
		}
		delete(n.hosts, st.Shard)
		delete(n.failed, st.Shard)
	}
	if ready && s.votes(g, false) < g.quorum() {
		s.fail(t, "step %v cost the quorum", st)
	}
}

func (s *simulated) fail(t *rapid.T, format string, args ...any) {
	t.Fatalf("%s\nnow %v\n%s", fmt.Sprintf(format, args...), s.groupsText(), strings.Join(s.story, "\n"))
}

func (s *simulated) groupsText() string {
	var b strings.Builder
	for id, g := range s.groups {
		fmt.Fprintf(&b, "\n%d: leader %s voters %v learning %v behind %v", id, g.leader, g.voters, g.nonVoters, g.behind)
	}
	return b.String()
}

// rest runs rounds until nothing is left to do, and checks that it stays so. In the last of them
// no report is late: a lost replica is replaced once it was reported for LostGrace without a gap.
func (s *simulated) rest(t *rapid.T) {
	quiet := 0
	for round := 0; quiet < 20; round++ {
		if round > 1000 {
			s.fail(t, "no end")
		}
		quiet++
		s.late = quiet <= 5
		if steps := s.round(t, false); len(steps) > 0 {
			quiet = 0
		}
	}
}
