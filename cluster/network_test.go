package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// network carries Raft's messages between nodes in one process, over links that
// can be cut, each direction by itself, and slowed down.
type network struct {
	mu      sync.Mutex
	at      map[storage.Shard]map[string]*wire
	cut     map[[2]string]bool          // from, to
	delay   time.Duration               // of each message, at most
	held    map[[2]string]chan struct{} // pipelines; closed when released
	once    map[shardLink]bool          // links that are cut when a request with entries was taken
	nodes   map[string]*running
	booting sync.Mutex // for nodes, where others start them
	tune    func(*tuning)
}

// shardLink is the link over which a shard's member sends to another one.
type shardLink struct {
	shard    storage.Shard
	from, to string
}

func newNetwork() *network {
	return &network{at: map[storage.Shard]map[string]*wire{}, cut: map[[2]string]bool{}, once: map[shardLink]bool{}, nodes: map[string]*running{}, tune: soonCommitted}
}

// ends are the transports of one node.
type ends struct {
	network *network
	node    string
}

func (e ends) transportFor(shard storage.Shard) raft.Transport {
	w := e.network
	w.mu.Lock()
	defer w.mu.Unlock()
	own := &wire{network: w, shard: shard, node: e.node, arrivals: make(chan raft.RPC), closed: make(chan struct{})}
	if w.at[shard] == nil {
		w.at[shard] = map[string]*wire{}
	}
	w.at[shard][e.node] = own
	return own
}

// set cuts or mends the link in one direction.
func (w *network) set(cut bool, from, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[[2]string{from, to}] = cut
}

// slow delays each message by up to d.
func (w *network) slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// link returns the transport that a message reaches, and its delay; nil if the link is cut.
func (w *network) link(shard storage.Shard, from, to string) (*wire, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut[[2]string{from, to}] {
		return nil, 0
	}
	var late time.Duration
	if w.delay > 0 {
		late = rand.N(w.delay)
	}
	return w.at[shard][to], late
}

// cutAfterEntries has the link between two nodes cut once a member has taken a request with entries of the other
// one. isCut reports whether that was so.
func (w *network) cutAfterEntries(l shardLink) (isCut func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.once[l] = true
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.once[l]
	}
}

// tookEntries notes that a request with entries was taken.
func (w *network) tookEntries(l shardLink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.once[l] {
		delete(w.once, l)
		w.cut[[2]string{l.from, l.to}], w.cut[[2]string{l.to, l.from}] = true, true
	}
}

// hold holds back the pipelined messages from one node to another until release is called.
func (w *network) hold(from, to string) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := make(chan struct{})
	w.held = map[[2]string]chan struct{}{{from, to}: held}
	return func() { close(held) }
}

// released returns a channel that is closed unless a pipeline is held.
func (w *network) released(from, to string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if held := w.held[[2]string{from, to}]; held != nil {
		return held
	}
	return flowing
}

// flowing is the closed channel of pipelines that are not held.
var flowing = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// isolate cuts a node off, or brings it back.
func (w *network) isolate(cut bool, node string, others ...string) {
	for _, other := range others {
		w.set(cut, node, other)
		w.set(cut, other, node)
	}
}

// mend mends all links, so that nodes stop without waiting for each other.
func (w *network) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cut)
}

// silence removes a dead node's transports.
func (w *network) silence(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wires := range w.at {
		delete(wires, node)
	}
}

// boot starts a node on a file system. The first is a cluster of one; others are
// members that hold nothing yet.
func (w *network) boot(t testing.TB, name string, fs vfs.FS, founder bool, shards int) *running {
	t.Helper()
	r := &running{store: openStore(t, fs, name), watcher: newRecorder()}
	if !founder {
		row, err := json.Marshal(identity{Format: identityUnnumbered, Cluster: "a cluster", Node: name, Shards: shards, Founded: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.Raft().Set(raftstore.Key(0, raftstore.KindIdentity, nil), row, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	r.spare.Store(1 << 20)
	var err error
	r.Node, err = New(Config{Store: r.store, Shards: shards, NodeName: name, Logger: quiet(), Spent: r.spent.Load, Spare: r.spare.Load, transports: ends{w, name}, tune: w.tune})
	if err != nil {
		t.Fatal(err)
	}
	r.clockIsOff = r.clockOff.Load
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	// For transfers of leadership, all nodes of these tests can reach each other.
	for _, other := range []string{"a", "b", "c", "d", "e"} {
		r.owners.Load().setReachable(other, true)
	}
	r.stop = sync.OnceFunc(func() {
		// The store must not be closed before the groups have ended, which takes long on a busy machine.
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		_ = r.Close(ctx) // a cut-off node can't hand over
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
		w.silence(name)
	})
	t.Cleanup(func() { r.stop() })
	if err := r.Start(t.Context(), r.watcher); err != nil {
		t.Fatal(err)
	}
	w.booting.Lock()
	w.nodes[name] = r
	w.booting.Unlock()
	return r
}

// node returns the running node of a name; it may be restarted meanwhile.
func (w *network) node(name string) *running {
	w.booting.Lock()
	defer w.booting.Unlock()
	return w.nodes[name]
}

// soonCommitted lets followers know soon what is committed: tests compare their replicas.
func soonCommitted(t *tuning) { t.commit = 250 * time.Millisecond }

// owner waits until one of the nodes owns the shard.
func (w *network) owner(t testing.TB, shard storage.Shard, among ...string) *running {
	t.Helper()
	var owner *running
	testkit.Eventually(t, fmt.Sprintf("one of %v owns shard %d", among, shard), func() bool {
		for _, name := range among {
			if _, ok := w.nodes[name].Owner(shard); ok {
				owner = w.nodes[name]
				return true
			}
		}
		return false
	})
	return owner
}

// keep has the shard's owner, one of the nodes, write a row until it is acknowledged, and returns that
// node. The shard may change hands before.
func (w *network) keep(t testing.TB, shard storage.Shard, row string, among ...string) *running {
	t.Helper()
	var owner *running
	testkit.Eventually(t, row+" is acknowledged", func() bool {
		owner = w.owner(t, shard, among...)
		epoch, ok := owner.Owner(shard)
		return ok && owner.propose(shard, epoch, write(t, owner.store, shard, row)) == nil
	})
	return owner
}

// lead waits until a node owns the shard, and has another owner hand it over. On a busy machine a leader may
// hear too late from its followers, and lose the shard.
func (w *network) lead(t testing.TB, shard storage.Shard, name string) *running {
	t.Helper()
	n := w.nodes[name]
	testkit.Eventually(t, fmt.Sprintf("%s owns shard %d", name, shard), func() bool {
		if _, ok := n.Owner(shard); ok {
			return true
		}
		for _, other := range w.nodes {
			if _, ok := other.Owner(shard); ok {
				_ = other.changeReplica(t.Context(), shard, replicaChange{replicaTransfer, name}) // it may not follow yet
			}
		}
		return false
	})
	return n
}

// change has a node, the shard's owner, change the group's members. The owner does it again if it was not the
// leader any more when the change was to be committed.
func (w *network) change(t testing.TB, owner *running, shard storage.Shard, change replicaChange) error {
	t.Helper()
	for {
		err := owner.changeReplica(t.Context(), shard, change)
		if !errors.Is(err, errNotLeading) && !errors.Is(err, raft.ErrLeadershipLost) && !errors.Is(err, raft.ErrNotLeader) {
			return err
		}
		w.lead(t, shard, owner.Name())
	}
}

// threeNodes is a shard on three nodes, grown from one.
func threeNodes(t testing.TB, shards int) (*network, map[string]vfs.FS) {
	t.Helper()
	w := newNetwork()
	disks := w.growToThree(t, shards)
	return w, disks
}

// growToThree boots three nodes with all shards on each, and returns their disks.
func (w *network) growToThree(t testing.TB, shards int) map[string]vfs.FS {
	t.Helper()
	disks := map[string]vfs.FS{}
	for _, name := range []string{"a", "b", "c"} {
		disks[name] = vfs.NewMem()
		w.boot(t, name, disks[name], name == "a", shards)
	}
	a := w.nodes["a"]
	for s := range storage.Shard(shards + 1) {
		w.owner(t, s, "a")
		for _, name := range []string{"b", "c"} {
			w.addVoter(t, a, s, name)
		}
	}
	// Raft votes only for voters that it knows. If the leader ended before all members knew
	// of the last voter, no member could succeed it.
	testkit.Eventually(t, "all know all voters", func() bool {
		for _, r := range w.nodes {
			for s := range storage.Shard(shards + 1) {
				if voters, _, err := r.group(s).members(); err != nil || len(voters) != 3 {
					return false
				}
			}
		}
		return true
	})
	return disks
}

// newest returns what the rebalancer knows of a leader: the term and the newest entry of its report.
func (r *running) newest(t testing.TB, shard storage.Shard) logPoint {
	t.Helper()
	report, err := r.group(shard).report()
	if err != nil || !report.Leads {
		t.Fatalf("%+v, %v", report, err)
	}
	return logPoint{report.Term, report.Last}
}

// addVoter adds a node to a shard's voters.
func (w *network) addVoter(t testing.TB, leader *running, shard storage.Shard, name string) {
	t.Helper()
	w.lead(t, shard, leader.Name())
	if err := w.nodes[name].hostReplica(shard, leader.newest(t, shard)); err != nil {
		t.Fatal(err)
	}
	if err := w.change(t, leader, shard, replicaChange{replicaAdd, name}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, name+" follows", func() bool {
		err := w.change(t, leader, shard, replicaChange{replicaPromote, name})
		if err != nil && !errors.Is(err, errNotCaughtUp) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// dropReplica drops a replica that is no member, whatever it has heard of its group.
func (n *Node) dropReplica(shard storage.Shard) error {
	return n.dropOrphan(dropRequest{Shard: shard, Term: math.MaxUint64})
}

// removeVoter removes a voter from a shard. A leader of a new term may have heard from no other
// member but the removed one; it refuses until it has.
func (w *network) removeVoter(t testing.TB, leader *running, shard storage.Shard, name string) {
	t.Helper()
	testkit.Eventually(t, name+" is removed", func() bool {
		err := w.change(t, leader, shard, replicaChange{replicaRemove, name})
		if err != nil && !errors.Is(err, errNoQuorumLeft) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// shardRows returns a shard's rows in a node's state, without the position.
func shardRows(t testing.TB, r *running, shard storage.Shard) []byte {
	t.Helper()
	from, to := storage.ShardRange(shard)
	it, err := r.store.State().NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = it.Close() }()
	var all bytes.Buffer
	for valid := it.First(); valid; valid = it.Next() {
		if !bytes.Equal(it.Key(), positionKey(shard)) {
			fmt.Fprintf(&all, "%q=%q\n", it.Key(), it.Value())
		}
	}
	return all.Bytes()
}

// same waits until the nodes' replicas are equal.
func (w *network) same(t testing.TB, shard storage.Shard, names ...string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("replicas of shard %d are equal", shard), func() bool {
		first := shardRows(t, w.nodes[names[0]], shard)
		return !slices.ContainsFunc(names[1:], func(name string) bool { return !bytes.Equal(first, shardRows(t, w.nodes[name], shard)) })
	})
}
