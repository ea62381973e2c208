package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"switchyard/actors"
	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/httpapi"
	"switchyard/storage"
)

// Node is a running node.
type Node struct {
	cfg      Config
	store    *storage.Store
	groups   *cluster.Node
	engine   *actors.Engine
	api      *httpapi.Server
	http     net.Listener
	metrics  *http.Server
	listen   net.Listener // of metrics
	registry *prometheus.Registry

	logWrites prometheus.Histogram
	images    *images     // of shards, for backups
	moves     *images     // rows of workspaces
	schedule  *schedule   // of backups; nil: none
	traces    *traces     // nil: none
	serving   atomic.Bool // set once the node belongs to a cluster
	failed    chan error  // the first part that ended by itself
}

// Start assembles a node and returns when its listeners accept connections. It
// serves nothing before Join.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg = cfg.withAddresses()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, registry: prometheus.NewRegistry(), logWrites: newLogWrites(), failed: make(chan error, 5), images: newImages(imagesAtOnce), moves: newImages(1)}
	if err := n.start(); err != nil {
		// Also when it was ctx that ended the start.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return nil, errors.Join(err, n.Stop(stop))
	}
	return n, nil
}

func (n *Node) start() (err error) {
	cfg := n.cfg
	// Take the addresses first: a port in use should cost nothing else.
	if n.http, err = listen("--http", cfg.HTTP); err != nil {
		return err
	}
	public, err := cfg.publicTLS()
	if err != nil {
		return err
	}
	if public != nil {
		n.http = public.listener(n.http)
	}
	if cfg.Metrics != "" {
		if n.listen, err = listen("--metrics", cfg.Metrics); err != nil {
			return err
		}
	}
	secure, err := cfg.clusterTLS()
	if err != nil {
		return err
	}
	if err := privateDir(cfg.Data); err != nil {
		return err
	}
	var peers net.Listener
	if cfg.clustered() {
		if peers, err = listen("--peer", cfg.Peer); err != nil {
			return err
		}
	}
	if err = n.open(peers, secure); err != nil {
		if peers != nil {
			_ = peers.Close() // nothing was accepted; closed before by a node that failed
		}
		var bind *net.OpError
		if errors.As(err, &bind) && bind.Op == "listen" {
			return addressError("--gossip", cfg.Gossip, bind)
		}
		return err
	}
	n.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), n.collector(), n.logWrites, newCertificateCollector(public, secure))
	shares, limits, err := cfg.limits()
	if err != nil {
		return err
	}
	var nodes httpapi.Placement
	if cfg.clustered() {
		nodes = placement{n}
	}
	provider, err := cfg.identityProvider()
	if err != nil {
		return err
	}
	if n.traces, err = n.newTraces(); err != nil {
		return err
	}
	if n.api, err = httpapi.New(httpapi.Config{
		Placement:      nodes,
		Cluster:        operator{n},
		Ready:          n.Ready,
		Version:        cfg.Version,
		PublicURL:      cfg.PublicURL,
		ClientURL:      cfg.ClientURL,
		CORSOrigins:    cfg.CORSOrigins,
		Secure:         cfg.TLSCert != "",
		RequestTimeout: cfg.RequestTimeout,
		Slow:           cfg.SlowOperations,
		Tracing:        n.traces.requests(),
		Rate:           cfg.Rate,

		WorkspaceRequests: cfg.LimitRequestsPerSecond,

		Limits:         limits,
		MaxConnections: shares.MaxConnections,
		RootToken:      cfg.RootToken,
		NoConsole:      cfg.NoConsole,
		ConsoleSession: cfg.ConsoleSession,
		SignIn:         provider,
		Logger:         cfg.Logger,
		Registry:       n.registry,
	}); err != nil {
		return err
	}
	if n.schedule, err = n.newSchedule(); err != nil {
		return err
	}
	go func() { n.failed <- n.api.Serve(n.http) }()
	if n.schedule != nil {
		n.registry.MustRegister(n.schedule.collector())
		if n.schedule.logs != nil {
			n.registry.MustRegister(newLogCollector(n.schedule.logs))
		}
		go func() { n.failed <- n.api.Serve(n.schedule.local) }()
	}
	if forwarded := n.groups.PeerListener(); forwarded != nil {
		go func() { n.failed <- n.api.ServePeers(forwarded) }()
	}
	if n.listen != nil {
		n.metrics = n.observationServer()
		go func() {
			if err := n.metrics.Serve(n.listen); !errors.Is(err, http.ErrServerClosed) {
				n.failed <- fmt.Errorf("serve metrics: %w", err)
			}
		}()
	}
	return nil
}

// open opens the store and the node's part of the cluster.
func (n *Node) open(peers net.Listener, secure *tls.Config) (err error) {
	cfg := n.cfg
	if n.store, err = storage.Open(storage.Config{
		Dir: cfg.Data, FS: machineDisk(), CacheBytes: cfg.cacheBytes(), RecordBytes: cfg.recordBytes(), RecordTables: tracker.RecordTables(), ListedTables: tracker.ListedTables(), SegmentBytes: cfg.segmentBytes(), SegmentTable: tracker.SegmentTable, Logger: cfg.Logger,
	}); err != nil {
		return err
	}
	own, err := n.clusterConfig(peers, secure)
	if err != nil {
		return err
	}
	n.groups, err = cluster.New(own)
	return err
}

// clusterConfig returns the configuration of the node's part of the cluster. The store is open.
func (n *Node) clusterConfig(peers net.Listener, secure *tls.Config) (cluster.Config, error) {
	cfg := n.cfg
	keys, err := cfg.gossipKeys()
	if err != nil {
		return cluster.Config{}, err
	}
	shares, _, err := cfg.limits()
	if err != nil {
		return cluster.Config{}, err
	}
	return cluster.Config{
		Store: n.store, NodeName: cfg.Name, Shards: cfg.Shards, Zone: cfg.Zone, Version: cfg.Version,
		Peer: peers, MaxForwarded: httpapi.MaxPeerConnections(shares.MaxConnections), TLS: secure, Gossip: cfg.Gossip, GossipKeys: keys, Advertise: cfg.Advertise,
		Join: cfg.seeds(), BootstrapExpect: cfg.BootstrapExpect, ReplaceAfter: cfg.ReplaceAfter, MaxFormat: cfg.MaxFormat,
		CompareEvery: cfg.CompareEvery, Rests: n.compareRests,
		HTTP: n.HTTPAddr(), Full: n.store.Space().Full, Logger: cfg.Logger,
		Spent:      func() bool { return n.store.Space().Shortage() == storage.Spent },
		Spare:      n.store.Space().SpentSpare,
		LogWritten: observing(n.logWrites),
		Clock:      machineClock,
	}, nil
}

// Join returns when the node belongs to a cluster and takes part in it. The shards may
// still be electing leaders, see Ready. A node without the flags of a cluster forms its
// own at once.
func (n *Node) Join(ctx context.Context) (err error) {
	if err := n.groups.Open(ctx); err != nil {
		return err
	}
	var remote actors.Remote
	if n.cfg.clustered() {
		remote = n.groups
	}
	webhooks, err := n.cfg.webhooks()
	if err != nil {
		return err
	}
	webhooks.Wrap = n.traces.deliveries()
	shares, _, err := n.cfg.limits()
	if err != nil {
		return err
	}
	if n.engine, err = actors.NewEngine(actors.Config{
		Store:          n.store,
		Replicator:     n.groups,
		Remote:         remote,
		RootToken:      n.cfg.RootToken,
		OpenOnboarding: n.cfg.OpenOnboarding,
		Inbound: tracker.InboundSettings{
			SMSSecret: n.cfg.SMSSecret, VCSSecret: n.cfg.VCSSecret, PublicURL: n.publicURL(),
			OpenRoutes: n.cfg.OpenInboundRoutes, Routes: n.cfg.InboundRoutes, Claims: n.cfg.InboundClaims,
		},
		Webhooks: webhooks,
		Agents: tracker.AgentSettings{
			StallAfter: n.cfg.StallAfter, LaneLife: n.cfg.LaneLife, MaxActiveChildren: n.cfg.MaxActiveChildren, PublicURL: n.publicURL(),
			WorkspacesPerUser: shares.WorkspacesPerUser, AuditRetention: n.cfg.AuditRetention, SweepInterval: n.cfg.SweepInterval,
		},
		Workspace: n.cfg.workspaceLimits(),
		Limits:    actors.Limits{Idle: n.cfg.Idle, WorkspaceWaiting: shares.WorkspaceWaiting, WorkspaceListening: shares.WorkspaceStreams, Exports: shares.Exports},
		Clock:     n.groups.Now,
		Random:    rand.Reader,
		TailBytes: n.cfg.tailBytes(),
		Logger:    n.cfg.Logger,
		Shortage:  n.store.Space().Shortage,
		Format:    n.groups.Format,
		ListBytes: n.cfg.listBytes(),

		ChangeBytes:   n.cfg.changeBytes(),
		DeliveryBytes: n.cfg.deliveryBytes(),
	}); err != nil {
		return err
	}
	n.store.Space().OnLow(n.groups.Reclaim)
	n.store.Space().OnLost(func(err error) {
		select {
		case n.failed <- err:
		default: // it ends already
		}
	})
	n.store.Watch(n.cfg.DiskReserve)
	n.registry.MustRegister(n.engine.Collector())
	n.groups.HandleCalls(n.engine.ServeCall)
	n.serving.Store(true)
	n.api.UseEngine(&imageEngine{n.engine, n})
	if err := n.groups.Start(ctx, n.engine); err != nil {
		return err
	}
	n.store.OnDamage(n.groups.Damaged)
	if n.schedule != nil {
		n.schedule.begin()
	}
	return nil
}

// Ready is nil when this node can answer for every shard, and its own replicas are open.
func (n *Node) Ready() error {
	lost := n.store.Space().Lost()
	switch {
	case lost != nil:
		return errors.New("its data directory is gone")
	case !n.serving.Load():
		return errors.New("it has not joined its cluster yet")
	}
	return n.groups.Ready()
}

// WaitReady returns nil once the node is ready, or an error when ctx ends first.
func (n *Node) WaitReady(ctx context.Context) error { return n.groups.WaitReady(ctx) }

// HTTPAddr is where the API is served.
func (n *Node) HTTPAddr() string { return n.http.Addr().String() }

// Scheme is the beginning of URLs at HTTPAddr.
func (n *Node) Scheme() string {
	if n.cfg.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// publicURL returns the URL at which clients reach the service, as far as this node knows;
// empty if it listens on all addresses of its machine.
func (n *Node) publicURL() string {
	if n.cfg.PublicURL != "" {
		return strings.TrimRight(n.cfg.PublicURL, "/")
	}
	if at, ok := n.http.Addr().(*net.TCPAddr); ok && at.IP.IsUnspecified() {
		return ""
	}
	return n.Scheme() + n.HTTPAddr()
}

// MetricsAddr is where metrics are served; empty when they are off.
func (n *Node) MetricsAddr() string {
	if n.listen == nil {
		return ""
	}
	return n.listen.Addr().String()
}

// PeerAddr is where other nodes reach this one; empty for a node alone.
func (n *Node) PeerAddr() string { return n.groups.PeerAddr() }

// GossipAddr is where other nodes join this one; empty for a node alone.
func (n *Node) GossipAddr() string { return n.groups.GossipAddr() }

// Wait returns ctx's error when that ends, or the error of a part that ended by
// itself: a listener, or this node's place in the cluster.
func (n *Node) Wait(ctx context.Context) error {
	select {
	case err := <-n.failed:
		return err
	case err := <-n.groups.Failed():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
