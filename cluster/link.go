package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"switchyard/storage"
)

// link is what ties this node to the others: the peer port, gossip, the registry,
// the pulse and placement. A node alone has none.
type link struct {
	node     *Node
	peers    *peers
	members  *members
	registry *registry
	forming  *forming
	pulse    *pulse
	mover    *mover

	peerAddr, httpAddr string      // as others reach them
	begun              atomic.Bool // the node has its groups
	stopCheck          context.CancelFunc
	checked            chan struct{}
}

// newLink listens; nothing is asked or answered before run.
func newLink(n *Node) (l *link, err error) {
	cfg := &n.cfg
	l = &link{node: n, checked: make(chan struct{})}
	defer func() {
		if err == nil {
			return
		}
		if l.members != nil {
			err = errors.Join(err, l.members.crash())
		}
		_ = cfg.Peer.Close() // nothing was accepted
	}()
	if l.peerAddr, err = advertised(cfg.Advertise, cfg.Peer.Addr()); err != nil {
		return nil, err
	}
	if l.httpAddr, err = advertisedHTTP(cfg.Advertise, cfg.HTTP); err != nil {
		return nil, err
	}
	key, err := peerKey(cfg.GossipKey)
	if err != nil {
		return nil, err
	}
	pc := peerConfig{Listener: cfg.Peer, Key: key, Self: l.self, Resolve: l.resolve, Logger: n.logger.With("component", "peer")}
	if cfg.TLS != nil {
		pc.TLS = newPeerTLS(cfg.TLS)
	}
	l.peers = newPeers(pc)
	if l.registry, err = newRegistry(registryConfig{
		Identity: l.identity, Self: l.record, Directory: ownDirectory{n},
		Owner: func() string { node, _, _ := n.ownerOf(0); return node },
		Calls: l.peers, Raft: cfg.Store.Raft(),
		Alive: n.answers, Held: l.held,
		Now: time.Now, Logger: n.logger, Fatal: n.end,
	}); err != nil {
		return nil, err
	}
	if l.members, err = newMembers(membersConfig{
		Bind: cfg.Gossip, Advertise: cfg.Advertise, Key: cfg.GossipKey, Seeds: cfg.Join, Self: l.card(),
		Known: func() []record { return l.registry.list().members() }, Reachable: n.answers, Logger: n.logger,
	}); err != nil {
		return nil, err
	}
	l.forming = newForming(n.id, formingConfig{
		Raft: cfg.Store.Raft(), Expect: cfg.BootstrapExpect, Gossip: l.members, Calls: l.peers,
		Self: l.record, Adopt: l.registry.adopt, Logger: n.logger,
	})
	l.pulse = newPulse(pulseConfig{
		Members: l.others,
		Owned:   func() []ownedShard { return n.owners.Load().own() },
		Ask: func(ctx context.Context, node string, body []byte) ([]byte, error) {
			return l.peers.call(ctx, node, rpcPing, body)
		},
		Map: n.owners.Load, CutOff: l.peers.cutOff, Clock: time.Now,
	})
	return l, err
}

// advertisedHTTP is the address clients reach the node at, as far as it is known.
func advertisedHTTP(host, http string) (string, error) {
	if http == "" {
		return "", nil
	}
	addr, err := net.ResolveTCPAddr("tcp", http)
	if err != nil {
		return "", fmt.Errorf("read the HTTP address: %w", err)
	}
	return advertised(host, addr)
}

// run answers other nodes and begins to gossip.
func (l *link) run() {
	l.peers.handle(rpcPing, l.whenBegun(l.pulse.answer))
	l.peers.handle(rpcJoin, answerJoin(l.forming, l.registry))
	l.peers.handle(rpcRegister, l.registry.handleRegister)
	l.peers.handle(rpcOperate, l.whenBegun(l.handleOperate))
	l.peers.handle(rpcCall, func(ctx context.Context, _ string, body []byte) ([]byte, error) {
		serve := l.node.serveCall.Load()
		if serve == nil {
			return nil, errNotOwner
		}
		return (*serve)(ctx, body)
	})
	for kind, h := range placementHandlers(l.node, l.learn) {
		l.peers.handle(kind, l.whenBegun(h))
	}
	l.peers.run()
	l.members.run()
}

// whenBegun refuses what comes before the node can answer it.
func (l *link) whenBegun(h rpcHandler) rpcHandler {
	return func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if !l.begun.Load() {
			return nil, errStarting
		}
		return h(ctx, from, body)
	}
}

var errStarting = errors.New("the node is still starting")

// join returns when the node belongs to a cluster.
func (l *link) join(ctx context.Context) (identity, error) {
	id, err := l.forming.run(ctx)
	if err != nil {
		return identity{}, err
	}
	card := l.card()
	card.Cluster = id.Cluster
	return id, l.members.update(card)
}

// begin takes part: the node belongs to a cluster and has its groups.
func (l *link) begin() {
	n := l.node
	l.mover = newMover(moverConfig{
		Self: n.id.Node, Own: n, Peers: l.peers, Members: n, ReplaceAfter: n.cfg.ReplaceAfter, Logger: n.logger,
	})
	n.owners.Load().tell = l.pulse.tell
	l.begun.Store(true)
	l.pulse.run()
	l.registry.run()
	ctx, stop := context.WithCancel(context.Background())
	l.stopCheck = stop
	go func() {
		defer close(l.checked)
		if err := l.forming.check(ctx); err != nil && ctx.Err() == nil {
			n.end(err)
		}
	}()
}

// leave ends placement and the registry's part: nothing more is begun here.
func (l *link) leave() {
	if l.mover == nil {
		return
	}
	l.mover.close()
	l.registry.close()
	l.stopCheck()
	<-l.checked
}

// close says goodbye and closes every connection; after the groups' end.
func (l *link) close() error {
	l.pulse.close()
	err := l.members.close()
	l.peers.close()
	return err
}

func (l *link) identity() identity {
	if l.forming == nil { // while it is being made
		return l.node.id
	}
	return l.forming.identity()
}

func (l *link) self() peerSelf {
	id := l.identity()
	return peerSelf{cluster: id.Cluster, node: id.Node, instance: id.Instance}
}

func (l *link) card() card {
	id := l.node.id
	return card{
		Node: id.Node, Instance: id.Instance, Cluster: id.Cluster, Peer: l.peerAddr, HTTP: l.httpAddr,
		Zone: l.node.cfg.Zone, Version: l.node.cfg.Version,
	}
}

// record is this node in the registry.
func (l *link) record() record {
	id := l.identity()
	return record{
		Name: id.Node, Instance: id.Instance, Zone: l.node.cfg.Zone, Peer: l.peerAddr, HTTP: l.httpAddr,
		Gossip: l.members.gossip, Version: l.node.cfg.Version,
	}
}

// resolve gives a node's peer address: gossip has the newest, the registry one of
// each member.
func (l *link) resolve(node string) (string, bool) {
	if addr, ok := l.members.resolve(node); ok {
		return addr, true
	}
	rec, ok := l.registry.list().node(node)
	return rec.Peer, ok && rec.Peer != "" && !rec.Removed
}

// others are the members beside this node.
func (l *link) others() []string {
	var names []string
	for _, rec := range l.registry.list().members() {
		if rec.Name != l.node.id.Node {
			names = append(names, rec.Name)
		}
	}
	return names
}

// held tells whether a group still has a node as a member.
func (l *link) held(node string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*gatherWait)
	defer cancel()
	for _, n := range l.node.Topology(ctx).Nodes {
		if n.Name == node {
			return n.Replicas > 0
		}
	}
	return false
}

// learn takes in the registry as the directory's owner has it.
func (l *link) learn(from string, registry []byte) {
	var list roster
	err := json.Unmarshal(registry, &list)
	if err == nil {
		err = l.registry.adopt(&list)
	}
	if err != nil {
		l.node.logger.Warn("take in the registry", "from", from, "error", err)
	}
}

// directoryGained follows the ownership of the directory shard.
func (l *link) directoryGained() {
	if err := l.registry.reload(); err != nil {
		l.node.logger.Warn("read the registry", "error", err)
	}
	l.mover.gained()
}

func (l *link) directoryLost() { l.mover.lost() }

// ownerOf gives the node that owns a shard.
func (n *Node) ownerOf(shard storage.Shard) (node string, epoch uint64, changed <-chan struct{}) {
	m := n.owners.Load()
	if m == nil {
		return "", 0, nil
	}
	return m.owner(shard)
}

// answers tells whether a node answers on its peer port.
func (n *Node) answers(node string) bool {
	m := n.owners.Load()
	return m != nil && m.answers(node)
}

// end has Failed deliver why this node must not go on.
func (n *Node) end(err error) {
	select {
	case n.failed <- err:
	default: // one reason is enough
	}
}

// view implements registrar.
func (n *Node) view() (clusterView, bool) {
	v := clusterView{clusterID: n.id.Cluster, shards: n.id.Shards}
	if n.link == nil {
		v.members = []memberView{{Name: n.id.Node, Zone: n.cfg.Zone, HTTP: n.cfg.HTTP, Version: n.cfg.Version, State: NodeAlive}}
		return v, true
	}
	list := n.link.registry.list()
	v.everThree = list.Three
	for _, m := range n.link.members.status() {
		v.members = append(v.members, viewOf(m.record, m.State, m.Since))
	}
	for _, rec := range list.Nodes {
		if rec.Removed {
			state := NodeDead
			if n.answers(rec.Name) {
				state = NodeAlive
			}
			v.members = append(v.members, viewOf(rec, state, time.Time{}))
		}
	}
	return v, len(list.Nodes) > 0
}

func viewOf(rec record, state NodeState, since time.Time) memberView {
	m := memberView{
		Name: rec.Name, Zone: rec.Zone, HTTP: rec.HTTP, Peer: rec.Peer, Gossip: rec.Gossip, Version: rec.Version,
		State: state, Draining: rec.Draining, Removed: rec.Removed,
	}
	if state == NodeDead || state == NodeLeft {
		m.DeadSince = since
	}
	return m
}

// snapshot implements registrar.
func (n *Node) snapshot() []byte {
	if n.link == nil {
		return nil
	}
	b, err := json.Marshal(n.link.registry.list())
	if err != nil { // strings, times and numbers
		return nil
	}
	return b
}

// errAlone answers what only a node with others can do.
var errAlone = errors.New("this node has no peer port: it was started alone, without --peer and --gossip")

var _ registrar = (*Node)(nil)
var _ hosting = (*Node)(nil)
var _ directory = ownDirectory{}
