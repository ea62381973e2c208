package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
	"switchyard/storage"
)

// simCluster is a cluster in memory. Its groups change at once, and calls fail or hang if a
// test says so.
type simCluster struct {
	mu      sync.Mutex
	known   clusterView
	groups  []*simGroup
	nodes   map[string]*simNode
	learnt  map[string]int
	asked   map[string]int                     // reports asked of each node
	fail    map[string]error                   // calls to a node
	hang    map[string]bool                    // calls to a node never come back
	changed func(node string, c replicaChange) // called before a change is made
}

type simGroup struct {
	leader            string
	term              uint64
	voters, nonVoters []string
}

// simNode is one node's hosting.
type simNode struct {
	w     *simCluster
	name  string
	hosts map[storage.Shard]bool
	// noRoom has it report a full disk.
	noRoom atomic.Bool
	stuck  atomic.Bool // it reports that its disk hangs
	hung   atomic.Bool // it reports that its disk has hung a moment ago
}

func newSimCluster(shards int, names ...string) *simCluster {
	w := &simCluster{
		known: clusterView{clusterID: "c", shards: shards, everThree: len(names) >= 3},
		nodes: map[string]*simNode{}, learnt: map[string]int{}, asked: map[string]int{},
		fail: map[string]error{}, hang: map[string]bool{},
	}
	for _, name := range names {
		w.nodes[name] = &simNode{w: w, name: name, hosts: map[storage.Shard]bool{}}
		w.known.members = append(w.known.members, placement.Member{Name: name, State: membership.NodeAlive, HTTP: name + ":8080"})
	}
	for id := range shards + 1 {
		w.groups = append(w.groups, &simGroup{leader: names[0], term: 3, voters: []string{names[0]}})
		w.nodes[names[0]].hosts[storage.Shard(id)] = true
	}
	return w
}

func (w *simCluster) membersView() (clusterView, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.known
	r.members = slices.Clone(r.members)
	return r, true
}

func (w *simCluster) registrySnapshot() []byte { return []byte("registry") }

func (w *simCluster) call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error) {
	w.mu.Lock()
	hang, err, n := w.hang[node], w.fail[node], w.nodes[node]
	if kind == rpcReport {
		w.asked[node]++
	}
	w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	learn := func(string, []byte) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.learnt[node]++
	}
	return placementHandlers(n, learn)[kind](ctx, "a", body)
}

func (n *simNode) report() []placement.GroupReport {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	var reports []placement.GroupReport
	for id, g := range n.w.groups {
		if !n.hosts[storage.Shard(id)] {
			continue
		}
		r := placement.GroupReport{Shard: storage.Shard(id), Term: g.term, Leader: g.leader, Applied: 7, Full: n.full(), Stuck: n.stuck.Load(), Hung: n.hung.Load()}
		r.Voters, r.NonVoters = slices.Clone(g.voters), slices.Clone(g.nonVoters)
		if g.leader == n.name {
			r.Leads, r.Epoch, r.Applied = true, g.term, 9
			for _, name := range append(slices.Clone(g.voters), g.nonVoters...) {
				if name != n.name {
					r.Peers = append(r.Peers, placement.PeerReport{Node: name, Lag: 2, CaughtUp: n.w.nodes[name].hosts[r.Shard]})
				}
			}
		}
		reports = append(reports, r)
	}
	return reports
}

func (n *simNode) full() bool { return n.noRoom.Load() || n.stuck.Load() }

func (n *simNode) has(shard storage.Shard) bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return n.hosts[shard]
}

func (n *simNode) hostReplica(shard storage.Shard, _ logPoint) error {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.hosts[shard] = true
	return nil
}

func (n *simNode) dropOrphan(in dropRequest) error {
	if report, ok := reportOf(n, in.Shard); ok {
		if err := in.check(&report); err != nil {
			return err
		}
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	delete(n.hosts, in.Shard)
	return nil
}

func (n *simNode) changeReplica(ctx context.Context, shard storage.Shard, c replicaChange) error {
	n.w.mu.Lock()
	rpcErr := n.w.changed
	n.w.mu.Unlock()
	if rpcErr != nil {
		rpcErr(n.name, c)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	g := n.w.groups[shard]
	switch c.Action {
	case replicaAdd:
		g.nonVoters = append(g.nonVoters, c.Node)
	case replicaPromote:
		g.nonVoters = namesBut(g.nonVoters, c.Node)
		g.voters = append(g.voters, c.Node)
	case replicaRemove:
		g.nonVoters, g.voters = namesBut(g.nonVoters, c.Node), namesBut(g.voters, c.Node)
	case replicaTransfer:
		g.leader = c.Node
		g.term++
	}
	return nil
}

// holders returns the number of nodes that have each shard, and whether a replica is moving.
func (w *simCluster) holders() (counts []int, learning bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		counts = append(counts, len(g.voters))
		learning = learning || len(g.nonVoters) > 0
	}
	return counts, learning
}

// change changes the cluster while nothing else does.
func (w *simCluster) change(edit func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit()
}

// held returns the number of shards of which a node has a voter.
func (w *simCluster) held(node string) (shards int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		if slices.Contains(g.voters, node) {
			shards++
		}
	}
	return shards
}

func (w *simCluster) rebalancer(out *bytes.Buffer) *rebalancer {
	return newRebalancer(rebalancerConfig{
		Self: "a", Own: w.nodes["a"], Peers: w, Members: w, ReplaceAfter: 5 * time.Minute,
		Logger: slog.New(slog.NewTextHandler(out, nil)),
	})
}

// diskOfBHangs starts a cluster of four nodes, places its shards and has the disk of b hang.
func diskOfBHangs() (*simCluster, *rebalancer) {
	w := newSimCluster(3, "a", "b", "c", "d")
	m := w.rebalancer(&bytes.Buffer{})
	m.gained()
	time.Sleep(time.Minute)
	w.nodes["b"].stuck.Store(true)
	return w, m
}
