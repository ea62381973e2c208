package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// Watcher is notified of the shards that this node may serve. Calls for one shard come in order,
// from one goroutine; calls for different shards may run at the same time. No further call is made
// for a shard until Gained or Lost has returned.
type Watcher interface {
	// Gained is called when this node owns the shard in this epoch and may serve it.
	Gained(shard storage.Shard, epoch uint64)
	// Lost is called when this node may not serve the shard any more. Proposals of the epoch that
	// are still in flight may be answered later.
	Lost(shard storage.Shard, epoch uint64)
}

// Node is this process's part of the cluster.
type Node struct {
	cfg      Config
	id       identity // complete once Open has returned; its formats are in identity
	identity identityRow
	formats  *formats
	tuning   tuning
	logger   *slog.Logger
	flusher  flusher
	peering  *peering // nil for a node alone
	status   *statusCollector
	// clockIsOff reports whether this node's clock differs from those of most others.
	clockIsOff func() bool
	now        func() time.Time // see Now
	running    atomic.Bool      // Start has opened every replica, or given it up
	leaving    atomic.Bool      // see Leave
	spoiled    atomic.Bool      // see spoil

	compactor compactor
	watchdog  *leaderWatchdog // nil for a node alone

	room        diskRoom
	queueBudget queueBudget
	owners      atomic.Pointer[shardMap] // set by Open, once groups is made
	transports  transports
	watcher     Watcher
	groups      []atomic.Pointer[group] // by shard; nil without a replica on this node
	reopening   []atomic.Bool           // by shard; the replica is opened again
	// damagedBefore is set, by shard, once a part of the state could not be read.
	damagedBefore []atomic.Bool
	serveCall     atomic.Pointer[func(context.Context, []byte) ([]byte, error)]
	failed        chan error    // capacity 1
	keptLogs      chan struct{} // capacity 1
	diskHungAt    atomic.Int64  // when the disk was last found hanging, in nanoseconds; 0: never

	closing sync.Once
	closed  error
	opened  bool
	started bool

	hosting sync.Mutex // held while a replica is created or dropped
	shut    bool       // no replica is created or dropped any more; under hosting
}

// New reads the store, settles what is new, and listens on the node's addresses. Open and Start
// bring the node up. The error names the setting that contradicts the store. The caller must close
// a node that New returned.
func New(cfg Config) (*Node, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.ReplaceAfter == 0 {
		cfg.ReplaceAfter = DefaultReplaceAfter
	}
	if cfg.MaxFormat == 0 {
		cfg.MaxFormat = storage.FormatNewest
	}
	if cfg.MaxFormat < storage.FormatOldest || cfg.MaxFormat > storage.FormatNewest {
		return nil, fmt.Errorf("cluster: --max-format %d: this version of the program knows formats %d to %d", cfg.MaxFormat, storage.FormatOldest, storage.FormatNewest)
	}
	id, err := identify(cfg)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, id: id, tuning: defaultTuning(), logger: cfg.Logger, transports: cfg.transports,
		failed: make(chan error, 1), keptLogs: make(chan struct{}, 1), clockIsOff: func() bool { return false }, now: cfg.Clock,
	}
	n.identity.db, n.identity.id = cfg.Store.Raft(), id
	if n.formats, err = newFormats(cfg.MaxFormat, cfg.Store, &n.identity, n.logger); err != nil {
		return nil, err
	}
	n.tuning.leaseClock = newLeaseClock(cfg.Clock).now
	if cfg.tune != nil {
		cfg.tune(&n.tuning)
	}
	n.flusher.do = cfg.Store.FlushState
	n.queueBudget.most = n.tuning.nodeQueueBytes
	n.room.spent, n.room.spare = cfg.Spent, cfg.Spare
	n.compactor = compactor{
		tuning: &n.tuning,
		logger: n.logger,
		groups: n.runningGroups,
		wake:   make(chan struct{}, 1),
		ended:  make(chan struct{}),

		compactLog: cfg.Store.CompactRaft,
	}
	n.compactor.ctx, n.compactor.cancel = context.WithCancel(context.Background())
	if cfg.Peer == nil {
		if err = checkAlone(id.Node, cfg.Store.Raft()); err == nil {
			err = n.formats.alone()
		}
	} else {
		n.peering, err = newPeering(n)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// checkAlone refuses to start a node without peer and gossip ports if its cluster has other
// members: the node could neither lead nor follow.
func checkAlone(node string, db *pebble.DB) error {
	known, err := lastKnown(db)
	if err != nil {
		return err
	}
	for _, other := range known.Members() {
		if other.Name != node {
			return fmt.Errorf("cluster: the data of node %q belongs to a cluster with others, such as node %q: "+
				"give --peer and --gossip as before, or --join, so that they reach each other", node, other.Name)
		}
	}
	return nil
}

// Open returns when the node belongs to a cluster and has read its part of it. That is at once,
// unless the node has empty data and was told to join. Errors other than ctx's are written for an
// operator.
func (n *Node) Open(ctx context.Context) error {
	n.opened = true
	if n.peering != nil {
		n.peering.run()
		id, err := n.peering.join(ctx)
		if err != nil {
			return err
		}
		n.id = id
	}
	n.groups = make([]atomic.Pointer[group], n.id.Shards+1)
	n.reopening = make([]atomic.Bool, n.id.Shards+1)
	n.damagedBefore = make([]atomic.Bool, n.id.Shards+1)
	n.owners.Store(newShardMap(n.id.Node, n.id.Shards))
	switch {
	case n.transports != nil: // set by a test
	case n.peering != nil:
		n.transports = n.peering.port
	default:
		n.transports = soloTransports{n.id.Node}
	}
	var calls nodeCaller
	if n.peering != nil {
		calls = n.peering.port
	}
	n.status = newStatusCollector(rebalancerConfig{Self: n.id.Node, Own: n, Peers: calls, Members: n, ReplaceAfter: n.cfg.ReplaceAfter, Logger: n.logger})
	for _, shard := range n.id.allShards() {
		if err := n.finishDrop(shard); err != nil {
			return err
		}
		if here, err := hasReplica(n.cfg.Store.Raft(), shard); err != nil {
			return err
		} else if !here && !n.id.mustCreateGroups() {
			continue
		}
		g, err := openGroup(n, shard)
		if err == nil {
			n.groups[shard].Store(g)
		} else if err := n.quarantine(newGroup(n, shard), err); err != nil {
			return err
		}
	}
	return n.checkSomeOpened()
}

// gained records the ownership of a shard; the groups call it.
func (n *Node) gained(shard storage.Shard, epoch uint64) {
	n.owners.Load().gained(shard, epoch)
	if shard == 0 && n.peering != nil {
		n.peering.directoryGained()
	}
}

func (n *Node) lost(shard storage.Shard, epoch uint64) {
	n.owners.Load().lost(shard, epoch)
	if shard == 0 && n.peering != nil {
		n.peering.directoryLost()
	}
}

// hosted returns the groups of which this node is a member. Some of them may not run, since they are
// starting or could not be opened: those have no Raft member, and some have neither log nor snapshots.
func (n *Node) hosted() []*group {
	groups := make([]*group, 0, len(n.groups))
	for i := range n.groups {
		if g := n.groups[i].Load(); g != nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// runningGroups returns the groups of hosted whose Raft members run.
func (n *Node) runningGroups() (groups []*group) {
	for i := range n.groups {
		if g := n.groups[i].Load(); g != nil && g.up.Load() {
			groups = append(groups, g)
		}
	}
	return groups
}

// Start brings up every group and returns when they run. Leaders are elected later, see WaitReady.
// After an error, or when ctx ends first, only Close may be called.
func (n *Node) Start(ctx context.Context, w Watcher) error {
	n.hosting.Lock()
	defer n.hosting.Unlock()
	if n.peering != nil {
		if err := n.peering.checkGeneration(ctx); err != nil {
			return err
		}
	}
	n.started, n.watcher = true, w
	go n.compactor.run()
	if _, single := n.transports.(soloTransports); !single {
		n.watchdog = newLeaderWatchdog(n)
		go n.watchdog.run()
	}
	if n.peering != nil {
		n.peering.start()
	}
	groups := n.hosted()
	errs := make([]error, len(groups))
	var starts sync.WaitGroup
	for i, g := range groups {
		if g.failed.Load() != nil {
			continue
		}
		starts.Go(func() {
			err := g.start(n.transports.transportFor(g.shard), w, n.id.mustCreateGroups())
			if err != nil {
				errs[i] = n.quarantine(g, err)
			}
		})
	}
	starts.Wait()
	if err := errors.Join(errors.Join(errs...), n.checkSomeOpened()); err != nil {
		return err
	}
	if n.id.mustCreateGroups() {
		// Every group exists now. A group that is missing at a later start was moved to other
		// nodes. n.id is read by then, and stays as it was.
		if _, err := n.identity.change(identity.markFounded); err != nil {
			return err
		}
	}
	n.running.Store(true)
	return ctx.Err()
}

// Name returns the node's name.
func (n *Node) Name() string { return n.id.Node }

// ClusterID identifies the cluster. It is made when the first node starts for the first time.
func (n *Node) ClusterID() string { return n.id.Cluster }

// Shards returns the number of workspace shards. Shard 0, the directory, is not counted.
func (n *Node) Shards() int { return n.id.Shards }

func (n *Node) group(shard storage.Shard) *group {
	if int(shard) >= len(n.groups) {
		return nil
	}
	return n.groups[shard].Load()
}

// Owner returns the epoch in which this node owns the shard, or false if it does not own it.
func (n *Node) Owner(shard storage.Shard) (epoch uint64, ok bool) {
	g := n.group(shard)
	if g == nil {
		return 0, false
	}
	epoch = g.epoch.Load()
	return epoch, epoch != 0
}

// ReadBarrier returns nil when a read of the shard that starts now sees every write acknowledged
// before. If the lease has to be renewed it waits, until deadline at most; a zero deadline means no
// limit. Its errors are *Error with NotApplied true.
func (n *Node) ReadBarrier(shard storage.Shard, deadline time.Time) error {
	if int(shard) >= len(n.groups) {
		return errNoShard
	}
	g := n.group(shard)
	if g == nil || g.epoch.Load() == 0 {
		return errNotOwner
	}
	return g.lease.barrier(deadline)
}

// Propose replicates a batch: the representation of a Pebble batch with keys of the shard. The
// caller must not change it until done is called. done is called exactly once: with nil when the
// batch is durable on a quorum and applied on this node, or with an *Error. It is called from one
// of the shard's goroutines and must not block; a closed node calls it before Propose returns.
// An empty batch is applied after every batch that was proposed before it. Other batches whose answers
// are outstanding at the same time are applied in any order.
func (n *Node) Propose(shard storage.Shard, epoch uint64, batch []byte, done func(error)) {
	if int(shard) >= len(n.groups) {
		done(errNoShard)
		return
	}
	g := n.group(shard)
	if g == nil {
		done(errNotOwner)
		return
	}
	g.commit.propose(epoch, batch, done)
}

// Ready returns nil if this node knows and reaches the owner of every shard, and has opened its own
// replicas. With fewer of them open, the stop of another node could leave a shard without a quorum, and a
// rolling restart goes on as soon as a node is ready.
func (n *Node) Ready() error {
	if !n.running.Load() {
		return errors.New("its replicas are being opened")
	}
	if all, _ := n.owners.Load().allOwned(); !all {
		return errors.New("not every shard has a leader that it reaches")
	}
	return nil
}

// WaitReady returns when the node is ready. It is called after Start.
func (n *Node) WaitReady(ctx context.Context) error {
	for {
		ready, changed := n.owners.Load().allOwned()
		if ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the shards' owners: %w", ctx.Err())
		}
	}
}

// Reclaim asks the logs to give back disk space. It does not block.
func (n *Node) Reclaim() { n.compactor.reclaim() }
