package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/cluster/gossip"
	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
	"switchyard/storage"
)

// peering connects this node to the others: peer port, gossip, registry, heartbeats and placement.
// A node alone has none.
type peering struct {
	node       *Node
	port       *peerPort
	gossip     *gossip.Gossip
	registry   *registry
	bootstrap  *bootstrap
	heartbeat  *heartbeat
	rebalancer *rebalancer
	reader     *replicaReader
	comparer   *comparer // nil: replicas are not compared

	peerAddr, httpAddr string      // as other nodes and clients reach them
	started            atomic.Bool // the node has opened its groups
	generations        *generations
	stopCheck          context.CancelFunc
	checked            chan struct{}
	counting           sync.WaitGroup
}

// newPeering listens. Nothing is sent or answered before run.
func newPeering(n *Node) (l *peering, err error) {
	cfg := &n.cfg
	l = &peering{node: n, checked: make(chan struct{})}
	made := l // the returns below set l to nil
	defer func() {
		if err == nil {
			return
		}
		if made.gossip != nil {
			err = errors.Join(err, made.gossip.Shutdown())
		}
		_ = cfg.Peer.Close() // nothing was accepted
	}()
	if l.peerAddr, err = gossip.AdvertisedAddr(cfg.Advertise, cfg.Peer.Addr()); err != nil {
		return nil, err
	}
	if l.httpAddr, err = advertisedHTTP(cfg.Advertise, cfg.HTTP); err != nil {
		return nil, err
	}
	keys, err := peerKeys(cfg.GossipKeys)
	if err != nil {
		return nil, err
	}
	known, err := lastKnown(cfg.Store.Raft())
	if err != nil {
		return nil, err
	}
	if l.generations, err = newGenerations(cfg.Store.Raft(), func() string { return n.identity.get().Instance }, known); err != nil {
		return nil, err
	}
	pc := peerConfig{
		Listener: cfg.Peer, Keys: keys, Self: l.self, Resolve: l.resolve, Format: n.Format, Logger: n.logger.With("component", "peer"),
		MaxForwarded: cfg.MaxForwarded, Generations: l.generations, Members: func() *membership.List { return l.registry.list() },
	}
	if cfg.TLS != nil {
		pc.TLS = newPeerTLS(cfg.TLS)
	}
	l.port = newPeerPort(pc)
	if l.registry, err = newRegistry(registryConfig{
		Identity: l.identity, Self: l.record, Directory: ownDirectory{n}, Formats: n.formats,
		Owner: func() string { node, _ := n.ownerOf(0); return node },
		Calls: l.port, Raft: cfg.Store.Raft(),
		IsReachable: n.isReachable, IsDown: l.isDown,
		Now: cfg.Clock, Logger: n.logger, Fatal: n.fail,
	}); err != nil {
		return nil, err
	}
	if l.gossip, err = gossip.New(gossip.Config{
		Bind: cfg.Gossip, Advertise: cfg.Advertise, Keys: cfg.GossipKeys, Seeds: cfg.Join, Self: l.meta(),
		Known: func() []membership.Record { return l.registry.list().Peers() }, Reachable: n.isReachable, Logger: n.logger,
	}); err != nil {
		return nil, err
	}
	l.bootstrap = newBootstrap(bootstrapConfig{
		Identity: &n.identity, Expect: cfg.BootstrapExpect, Gossip: l.gossip, Calls: l.port,
		Self: l.record, AdoptList: l.registry.adopt, Logger: n.logger,
	})
	clocks := newPeerClocks(cfg.Clock, n.logger)
	n.clockIsOff = clocks.isOff
	n.now = newServingClock(cfg.Clock, clocks, n.logger).now
	l.heartbeat = newHeartbeat(heartbeatConfig{
		Members: l.otherNodes,
		Owned:   func() []ownedShard { return n.owners.Load().ownedShards() },
		Send: func(ctx context.Context, node string, body []byte) ([]byte, error) {
			return l.port.call(ctx, node, rpcHeartbeat, body)
		},
		Generations: l.generations, Fatal: n.fail, Refused: l.registry.refusedBy,
		Map: n.owners.Load, NoRoom: n.room.none, Disconnect: l.port.disconnect, Clock: cfg.Clock, Clocks: clocks,
	})
	return l, err
}

// advertisedHTTP returns the address at which clients reach the node, empty if it is not known.
func advertisedHTTP(host, http string) (string, error) {
	if http == "" {
		return "", nil
	}
	addr, err := net.ResolveTCPAddr("tcp", http)
	if err != nil {
		return "", fmt.Errorf("read the HTTP address: %w", err)
	}
	return gossip.AdvertisedAddr(host, addr)
}

// run starts to answer other nodes and to gossip.
func (l *peering) run() {
	l.port.handle(rpcHeartbeat, l.onceStarted(l.heartbeat.answer))
	l.port.handle(rpcJoin, answerJoin(l.bootstrap, l.registry))
	l.port.handle(rpcRegister, l.registry.handleRegister)
	l.port.handle(rpcOperate, l.onceStarted(l.handleOperate))
	l.port.handle(rpcCompare, l.onceStarted(func(ctx context.Context, from string, body []byte) ([]byte, error) {
		return l.reader.handle(ctx, from, body)
	}))
	l.port.handle(rpcCall, func(ctx context.Context, _ string, body []byte) ([]byte, error) {
		serve := l.node.serveCall.Load()
		if serve == nil {
			return nil, errNotOwner
		}
		return (*serve)(ctx, body)
	})
	for kind, h := range placementHandlers(l.node, l.adoptRegistry) {
		l.port.handle(kind, l.onceStarted(h))
	}
	l.port.run()
	l.gossip.Run()
}

// onceStarted refuses requests until the node can answer them.
func (l *peering) onceStarted(h rpcHandler) rpcHandler {
	return func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if !l.started.Load() {
			return nil, errStarting
		}
		return h(ctx, from, body)
	}
}

var errStarting = errors.New("the node is still starting")

// join returns when the node belongs to a cluster.
func (l *peering) join(ctx context.Context) (identity, error) {
	id, err := l.bootstrap.run(ctx)
	if err != nil {
		return identity{}, err
	}
	meta := l.meta()
	meta.Cluster = id.Cluster
	return id, l.gossip.Update(meta)
}

// start begins the node's work in the cluster. The node belongs to a cluster and has opened its
// groups.
func (l *peering) start() {
	n := l.node
	l.rebalancer = newRebalancer(rebalancerConfig{
		Self: n.id.Node, Own: n, Peers: l.port, Members: n, ReplaceAfter: n.cfg.ReplaceAfter, Logger: n.logger,
		Release: l.registry.release, LostGrace: n.tuning.lostGrace,
	})
	l.reader = newReplicaReader(n.group, n.cfg.Rests)
	if n.cfg.CompareEvery > 0 {
		l.comparer = newComparer(comparerConfig{
			Self: n.id.Node, Shards: n.id.Shards, Every: n.cfg.CompareEvery, Group: n.group, Own: l.reader, Calls: l.port, Logger: n.logger,
		})
	}
	n.owners.Load().onChange = l.heartbeat.sendNow
	l.started.Store(true)
	l.heartbeat.run()
	l.registry.run()
	ctx, stop := context.WithCancel(context.Background())
	l.stopCheck = stop
	l.counting.Go(func() { l.generations.own.run(ctx, n.logger) })
	if l.comparer != nil {
		l.counting.Go(func() { l.comparer.run(ctx) })
	}
	go func() {
		defer close(l.checked)
		if err := l.bootstrap.check(ctx); err != nil && ctx.Err() == nil {
			n.fail(err)
		}
	}()
}

// stopWork stops placement, comparisons and the registry's requests.
func (l *peering) stopWork() {
	if l.rebalancer == nil {
		return
	}
	l.rebalancer.close()
	l.registry.close()
	l.stopCheck()
	<-l.checked
	l.counting.Wait()
	l.reader.close()
}

// close announces the departure and closes every connection. The groups have stopped before.
func (l *peering) close() error {
	l.heartbeat.close()
	err := l.gossip.Close()
	l.port.close()
	return err
}

func (l *peering) identity() identity { return l.node.identity.get() }

func (l *peering) self() peerSelf {
	id := l.identity()
	return peerSelf{cluster: id.Cluster, node: id.Node, instance: id.Instance}
}

func (l *peering) meta() gossip.Meta {
	id := l.node.id
	return gossip.Meta{
		Node: id.Node, Instance: id.Instance, Cluster: id.Cluster, Peer: l.peerAddr, HTTP: l.httpAddr,
		Zone: l.node.cfg.Zone, Version: l.node.cfg.Version,
	}
}

// record returns this node's record for the registry.
func (l *peering) record() membership.Record {
	id := l.identity()
	return membership.Record{
		Name: id.Node, Instance: id.Instance, Zone: l.node.cfg.Zone, Peer: l.peerAddr, HTTP: l.httpAddr,
		Gossip: l.gossip.Addr, Version: l.node.cfg.Version,
		Oldest: storage.FormatOldest, Newest: l.node.formats.newest, Format: id.promised(),
	}
}

// resolve returns a node's peer address, from gossip if it is there, otherwise from the registry.
func (l *peering) resolve(node string) (string, bool) {
	if addr, ok := l.gossip.Resolve(node); ok {
		return addr, true
	}
	rec, ok := l.registry.list().Node(node)
	return rec.Peer, ok && rec.Peer != "" && !rec.Released
}

// isDown reports whether a node has left or is dead.
func (l *peering) isDown(node string) bool {
	return !l.node.isReachable(node) && slices.ContainsFunc(l.gossip.Status(), func(m gossip.MemberStatus) bool {
		return m.Name == node && (m.State == membership.NodeDead || m.State == membership.NodeLeft)
	})
}

// otherNodes lists the nodes that take part in groups, except this one.
func (l *peering) otherNodes() []string {
	var names []string
	for _, rec := range l.registry.list().Peers() {
		if rec.Name != l.node.id.Node {
			names = append(names, rec.Name)
		}
	}
	return names
}

// adoptRegistry stores the registry sent by the directory's owner.
func (l *peering) adoptRegistry(from string, registry []byte) {
	var list membership.List
	err := json.Unmarshal(registry, &list)
	if err == nil {
		err = l.registry.adopt(&list)
	}
	if err != nil {
		l.node.logger.Warn("store the registry", "from", from, "error", err)
	}
}

// directoryGained is called when this node becomes the owner of the directory.
func (l *peering) directoryGained() {
	if err := l.registry.reload(); err != nil {
		l.node.logger.Warn("read the registry", "error", err)
	}
	l.rebalancer.gained()
}

func (l *peering) directoryLost() { l.rebalancer.lost() }

// ownerOf returns the node that owns a shard (empty if no reachable owner is known), and a channel
// that is closed when the answer changes.
func (n *Node) ownerOf(shard storage.Shard) (node string, changed <-chan struct{}) {
	m := n.owners.Load()
	if m == nil {
		return "", nil
	}
	node, _, changed = m.owner(shard)
	return node, changed
}

// unownedSince returns since when no owner of a shard is known that answers, or the zero time if
// one is.
func (n *Node) unownedSince(shard storage.Shard) time.Time {
	m := n.owners.Load()
	if m == nil {
		return time.Time{}
	}
	return m.unowned(shard)
}

// isReachable reports whether a node answers on its peer port.
func (n *Node) isReachable(node string) bool {
	m := n.owners.Load()
	return m != nil && m.isReachable(node)
}

// fail delivers, through Failed, the reason why this node must stop.
func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default: // only the first reason counts
	}
}

// membersView implements memberSource.
func (n *Node) membersView() (clusterView, bool) {
	v := clusterView{clusterID: n.id.Cluster, shards: n.id.Shards, format: n.Format()}
	if n.peering == nil {
		v.members = []placement.Member{{Name: n.id.Node, Zone: n.cfg.Zone, HTTP: n.cfg.HTTP, Version: n.cfg.Version, NewestFormat: n.formats.newest, State: membership.NodeAlive}}
		return v, true
	}
	list := n.peering.registry.list()
	v.everThree = list.HadThree
	for _, m := range n.peering.gossip.Status() {
		v.members = append(v.members, viewOf(m.Record, m.State, m.Since))
	}
	for _, rec := range list.Nodes {
		if rec.Released {
			state := membership.NodeDead
			if n.isReachable(rec.Name) {
				state = membership.NodeAlive
			}
			v.members = append(v.members, viewOf(rec, state, time.Time{}))
		}
	}
	if m := n.owners.Load(); m != nil {
		for i := range v.members {
			v.members[i].Leaving = m.isLeaving(v.members[i].Name)
		}
	}
	return v, len(list.Nodes) > 0
}

func viewOf(rec membership.Record, state membership.NodeState, since time.Time) placement.Member {
	m := placement.Member{
		Name: rec.Name, Zone: rec.Zone, HTTP: rec.HTTP, Peer: rec.Peer, Gossip: rec.Gossip, Version: rec.Version,
		NewestFormat: max(rec.Newest, storage.FormatFirst), State: state, Draining: rec.Draining, Removed: rec.Removed, Released: rec.Released,
	}
	if state == membership.NodeDead || state == membership.NodeLeft {
		m.DeadSince = since
	}
	return m
}

// registrySnapshot implements memberSource.
func (n *Node) registrySnapshot() []byte {
	if n.peering == nil {
		return nil
	}
	b, err := json.Marshal(n.peering.registry.list())
	if err != nil { // can't fail for strings, times and numbers
		return nil
	}
	return b
}

// errNoPeerPort is returned where only a node with a peer port can act.
var errNoPeerPort = errors.New("this node has no peer port: it was started alone, without --peer and --gossip")

var _ memberSource = (*Node)(nil)
var _ hosting = (*Node)(nil)
var _ directory = ownDirectory{}
