package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// group is one shard on this node: its Raft member, state, committer and lease.
type group struct {
	shard  storage.Shard
	node   string
	logger *slog.Logger
	tuning *tuning

	log       *logStore
	snapshots *snapshotStore
	machine   *stateMachine
	raft      *raft.Raft
	transport raft.Transport
	tracking  *trackingTransport // what Raft has for its transport
	commit    *committer
	lease     *lease

	watcher Watcher
	owners  *shardMap
	// gained and lost are told when the shard is served here from now on, or no more.
	gained, lost func(shard storage.Shard, epoch uint64)
	handovers    chan *handoverRequest
	changing     chan struct{} // capacity 1: one change of members at a time

	started        time.Time // when the member came up
	checkedContact time.Time // the leader's last word that the leaderWatchdog acted upon; the leader watchdog's

	up atomic.Bool // raft, watcher and began are set
	// epoch is the epoch this node owns the shard in; 0 when it does not.
	epoch  atomic.Uint64
	failed atomic.Pointer[error] // why the shard is served no more

	failure  chan struct{} // closed with failed set
	stopping chan struct{}
	led      chan struct{} // lead has returned
}

// openGroup reads what a shard has on disk and checks that it fits together.
func openGroup(n *Node, shard storage.Shard) (*group, error) {
	store := n.cfg.Store
	g := &group{
		shard:     shard,
		node:      n.id.Node,
		logger:    n.logger.With("shard", int(shard)),
		tuning:    &n.tuning,
		owners:    n.owners.Load(),
		gained:    n.gained,
		lost:      n.lost,
		handovers: make(chan *handoverRequest),
		changing:  make(chan struct{}, 1),
		failure:   make(chan struct{}),
		stopping:  make(chan struct{}),
		led:       make(chan struct{}),
	}
	g.commit = newCommitter(raftApplier{g}, g.tuning)
	g.lease = &lease{
		length: int64(g.tuning.lease),
		clock:  g.tuning.clock,
		verify: g.verifyLeadership,
	}
	var err error
	if g.log, err = openLog(store.Raft(), shard); err != nil {
		return nil, err
	}
	if g.machine, err = newStateMachine(store, shard, &n.flusher); err != nil {
		return nil, err
	}
	g.snapshots = newSnapshotStore(store, g.log, g.tuning, g.stopping)
	g.machine.snapshots = g.snapshots
	g.machine.needsReopen = func() { go n.reopen(g) }
	g.machine.fail = g.fail
	g.machine.grown, g.machine.shrunk = n.compactor.grown, n.compactor.shrunk
	if err := g.snapshots.resume(g.machine.at.applied); err != nil {
		return nil, err
	}
	if err := g.snapshots.fits(g.machine.at.applied); err != nil {
		return nil, err
	}
	return g, nil
}

// start brings up the group's Raft member. With found, a store without one becomes
// a group of one; else it waits for a leader that counts it in.
func (g *group) start(transport raft.Transport, w Watcher, found bool) error {
	g.watcher, g.transport = w, transport
	g.tracking = newTrackingTransport(transport, g.tuning.clock, func() uint64 { _, last := g.log.bounds(); return last }, g.interceptVote)
	stable := &stableStore{db: g.log.db, shard: g.shard}
	conf := g.raftConfig()
	exists, err := raft.HasExistingState(g.log, stable, g.snapshots)
	if err != nil {
		return fmt.Errorf("start shard %d: %w", g.shard, err)
	}
	if !exists && found {
		alone := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: transport.LocalAddr()}}}
		if err := raft.BootstrapCluster(conf, g.log, stable, g.snapshots, transport, alone); err != nil {
			return fmt.Errorf("make shard %d: %w", g.shard, err)
		}
	}
	if g.raft, err = raft.NewRaft(conf, g.machine, g.log, stable, g.snapshots, g.tracking); err != nil {
		return errors.Join(fmt.Errorf("start shard %d: %w", g.shard, err), g.tracking.Close())
	}
	g.started = time.Now()
	g.commit.run()
	go g.lead()
	g.up.Store(true)
	return g.electSelf()
}

// raftConfig is that of a group that may grow.
func (g *group) raftConfig() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(g.node)
	conf.Logger = raftLogger{g.logger.With("component", "raft")}
	// One above what electSelf sets, or it would not be a change.
	conf.HeartbeatTimeout = electionTimeout + time.Millisecond
	conf.ElectionTimeout = electionTimeout + time.Millisecond
	// Heartbeats wait for a follower's disk (see trackingTransport): as long as followers wait
	// for their leader, a leader waits for its followers.
	conf.LeaderLeaseTimeout = electionTimeout
	// Whoever is removed is dropped by name, see dropReplica.
	conf.ShutdownOnRemove = false
	// Entries carry up to 4 MiB and come a few at a time: long queues would only
	// hold memory.
	conf.MaxAppendEntries = 16
	conf.BatchApplyCh = true
	conf.TrailingLogs = g.tuning.trailing
	// The compactor decides when to snapshot, by bytes; Raft only counts entries.
	conf.SnapshotInterval = time.Hour
	conf.SnapshotThreshold = 1 << 62
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	return conf
}

// electSelf has a member without peers stand for election at once: there is no
// leader it could hear from. Raft looks at once when its time-outs are lowered.
// (Time-outs of milliseconds would do it too, but the least of them,
// LeaderLeaseTimeout, can't be raised again when the group grows, and it would
// wake an idle group a hundred times a second.)
func (g *group) electSelf() error {
	future := g.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return fmt.Errorf("start shard %d: %w", g.shard, err)
	}
	voters := 0
	for _, server := range future.Configuration().Servers {
		switch {
		case server.Suffrage != raft.Voter:
		case server.ID != raft.ServerID(g.node):
			return nil
		default:
			voters++
		}
	}
	if voters == 0 {
		return nil
	}
	settings := g.raft.ReloadableConfig()
	settings.HeartbeatTimeout, settings.ElectionTimeout = electionTimeout, electionTimeout
	if err := g.raft.ReloadConfig(settings); err != nil {
		return fmt.Errorf("start shard %d: %w", g.shard, err)
	}
	return nil
}

// fail stops serving the shard on this node for good. It does not block.
func (g *group) fail(err error) {
	if g.failed.CompareAndSwap(nil, &err) {
		g.logger.Error("a shard is served no more on this node", "error", err)
		g.epoch.Store(0)
		close(g.failure)
	}
}

// stop gives the shard up, writes the log's end and ends Raft. An error says
// what was not done; nothing acknowledged is lost by it.
func (g *group) stop(ctx context.Context) error {
	if g.raft == nil { // never started
		return nil
	}
	close(g.stopping)
	if err := within(ctx, func() error { <-g.led; return nil }); err != nil {
		err = fmt.Errorf("give up shard %d: %w", g.shard, err)
		return errors.Join(err, within(ctx, g.raft.Shutdown().Error))
	}
	// A start reads the log from the last snapshot on; a short one costs nothing.
	if g.failed.Load() == nil && g.machine.pending.Load() > closeSnapshotBytes {
		// Without one, the next start reads more of the log.
		if missed := within(ctx, g.snapshot); missed != nil {
			g.logger.Info("the log was not shortened", "error", missed)
		}
	}
	// Without its streams Raft does not wait for answers any more.
	if err := g.tracking.Close(); err != nil {
		g.logger.Debug("close the group's streams", "error", err)
	}
	return within(ctx, g.raft.Shutdown().Error)
}

// closeSnapshotBytes of log are worth a snapshot when a node closes.
const closeSnapshotBytes = 64 << 10

// snapshot flushes the state, records how far it goes, and truncates the log.
func (g *group) snapshot() error {
	if err := g.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("snapshot shard %d: %w", g.shard, err)
	}
	return nil
}

// within runs fn and waits for it until ctx ends. Raft has calls that a hung disk
// never answers; a closing process must not wait for those.
func within(ctx context.Context, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// raftApplier hands entries to Raft. Its queue is longer than what the committer
// keeps in flight, so this does not wait.
type raftApplier struct{ g *group }

// Apply proposes an entry.
func (a raftApplier) Apply(data []byte) raft.ApplyFuture { return a.g.raft.Apply(data, 0) }
