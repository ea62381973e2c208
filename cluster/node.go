package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"switchyard/storage"
)

// Watcher is told which shards this node may serve. Calls for one shard come in
// order, from one goroutine; calls for different shards may come at once. Until
// Gained or Lost returns, nothing else is told about that shard.
type Watcher interface {
	// Gained: this node owns the shard in this epoch and may serve it.
	Gained(shard storage.Shard, epoch uint64)
	// Lost: it does no more. Proposals of the epoch still in flight may be answered
	// after that.
	Lost(shard storage.Shard, epoch uint64)
}

// Node is this process's part of the cluster.
type Node struct {
	cfg     Config
	id      identity
	tuning  tuning
	logger  *slog.Logger
	groups  []*group // by shard
	flusher flusher

	compactor compactor

	closing sync.Once
	closed  error
	started bool

	mu      sync.Mutex
	changed chan struct{} // closed when readiness may have changed
}

// New reads what the store holds and decides what is new. Start brings the node
// up. The error says which setting contradicts the store.
func New(cfg Config) (*Node, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	id, err := identify(cfg)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, id: id, tuning: defaultTuning(), logger: cfg.Logger, changed: make(chan struct{})}
	if cfg.tune != nil {
		cfg.tune(&n.tuning)
	}
	n.flusher.do = cfg.Store.FlushState
	n.compactor = compactor{
		tuning: &n.tuning,
		logger: n.logger,
		groups: func() []*group { return n.groups },
		wake:   make(chan struct{}, 1),
		ended:  make(chan struct{}),

		compactLog: cfg.Store.CompactRaft,
	}
	n.compactor.life, n.compactor.quit = context.WithCancel(context.Background())
	for _, shard := range id.allShards() {
		g, err := openGroup(n, shard)
		if err != nil {
			return nil, err
		}
		n.groups = append(n.groups, g)
	}
	return n, nil
}

// Start brings up every group, and returns when they run; who leads them shows
// later, see WaitReady. After an error, or when ctx ends first, the node is good
// for Close only.
func (n *Node) Start(ctx context.Context, w Watcher) error {
	n.started = true
	go n.compactor.run()
	transports := newTransports(n.id.Node)
	errs := make([]error, len(n.groups))
	var starts sync.WaitGroup
	for i, g := range n.groups {
		starts.Go(func() { errs[i] = g.start(transports.of(g.shard), w) })
	}
	starts.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return ctx.Err()
}

// Name of the node.
func (n *Node) Name() string { return n.id.Node }

// ClusterID tells clusters apart; it is made when the first node first starts.
func (n *Node) ClusterID() string { return n.id.Cluster }

// Shards is the number of workspace shards; shard 0, the directory, is beside them.
func (n *Node) Shards() int { return n.id.Shards }

func (n *Node) group(shard storage.Shard) *group {
	if int(shard) >= len(n.groups) {
		return nil
	}
	return n.groups[shard]
}

// Owner gives the epoch in which this node owns the shard; false when it does
// not.
func (n *Node) Owner(shard storage.Shard) (epoch uint64, ok bool) {
	g := n.group(shard)
	if g == nil {
		return 0, false
	}
	epoch = g.epoch.Load()
	return epoch, epoch != 0
}

// ReadBarrier returns nil when a read of the shard started now sees every write
// acknowledged before. When the proof has to be renewed it waits, until deadline at
// most (zero: as long as it takes). Its errors are *Error with NotApplied true.
func (n *Node) ReadBarrier(shard storage.Shard, deadline time.Time) error {
	g := n.group(shard)
	if g == nil {
		return errNoShard
	}
	if g.epoch.Load() == 0 {
		return errNotOwner
	}
	return g.lease.barrier(deadline)
}

// Propose replicates a batch: the representation of a Pebble batch with keys of
// the shard, which must stay untouched until done is called. done is called
// exactly once, with nil when the batch is durable on a quorum and applied here, or
// with an *Error. It is called from one of the shard's goroutines and must not
// block; a closed node calls it before Propose returns. Batches of one epoch are
// applied in the order in which they were proposed.
func (n *Node) Propose(shard storage.Shard, epoch uint64, batch []byte, done func(error)) {
	g := n.group(shard)
	if g == nil {
		done(errNoShard)
		return
	}
	g.commit.propose(epoch, batch, done)
}

// Ready tells whether every shard has an owner this node knows, itself included.
func (n *Node) Ready() bool {
	for _, g := range n.groups {
		if !g.ready() {
			return false
		}
	}
	return true
}

// WaitReady returns when the node is ready.
func (n *Node) WaitReady(ctx context.Context) error {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if n.Ready() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the shards' leaders: %w", ctx.Err())
		}
	}
}

// Reclaim has the logs give back what disk space they can. It does not block.
func (n *Node) Reclaim() { n.compactor.reclaim() }

// notice wakes WaitReady.
func (n *Node) notice() {
	n.mu.Lock()
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
}

// Close stops serving, lets what is in flight finish, writes Release to the logs
// the node owns, and flushes the state, so that the next start has next to nothing
// to replay. When ctx ends first the rest is left out: nothing acknowledged is
// lost by that, but a later start takes longer. The store may be closed after it.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Do(func() { n.closed = n.close(ctx) })
	return n.closed
}

func (n *Node) close(ctx context.Context) error {
	if !n.started {
		return nil
	}
	errs := make([]error, len(n.groups)+2)
	errs[0] = n.compactor.end(ctx)
	var stops sync.WaitGroup
	for i, g := range n.groups {
		stops.Go(func() { errs[i+1] = g.stop(ctx) })
	}
	stops.Wait()
	errs[len(errs)-1] = within(ctx, n.flusher.flush)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the node: %w", err)
	}
	return nil
}
