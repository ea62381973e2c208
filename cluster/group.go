package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// group is one shard on this node: its Raft member, state, committer and lease.
type group struct {
	shard  storage.Shard
	node   string
	logger *slog.Logger
	tuning *tuning

	log       *raftstore.LogStore
	snapshots *raftstore.SnapshotStore
	machine   *stateMachine
	size      replicaSize
	raft      *raft.Raft
	transport raft.Transport
	tracking  *trackingTransport // wraps transport; Raft uses this one
	commit    *committer
	lease     *lease

	watcher Watcher
	owners  *shardMap
	// gained and lost are called when this node starts and stops serving the shard.
	gained, lost func(shard storage.Shard, epoch uint64)
	room         *diskRoom             // of the node's disk
	format       func() storage.Format // in which this node writes
	// passesOn reports whether the node should lead nothing: its clock is off, or it is about to stop.
	passesOn  func() bool
	handovers chan *handoverRequest
	changing  chan struct{} // capacity 1: serializes changes of the group's members

	started time.Time // when the member was started

	// Owned by the leader watchdog: the last contact with a leader that it has handled, the moment
	// before which the leader can't have been silent for too long, its view of the disk, and its view
	// of the followers.
	checkedContact time.Time
	silentFrom     time.Time
	watch          stuckWatch
	quiet          quietWatch
	stepping       atomic.Bool // a step of checkFollowers is under way

	relaxed    atomic.Int64             // Raft's time-outs while they are high, else 0; see relax.go
	filling    atomic.Pointer[logPoint] // nil: the replica is filled, see filling.go
	heardAfter atomic.Int64             // when a heartbeat was last answered in Raft's place: nanoseconds after started
	// When another member last asked for this one's pre-vote and could have it, and when this one last stood
	// for election because its leader was silent: by tuning.clock, 0 for never.
	candidateAsked, stood atomic.Int64

	untold untoldWatch // entries that this follower does not know to be committed

	declaring waitClock   // of the claim or release in flight
	stuck     atomic.Bool // the disk takes no entries

	truncating atomic.Bool // the compactor's snapshot is under way

	heldUntil atomic.Int64 // the log is kept for a reader until then; 0: it is not
	kept      kept
	keepLog   func(g *group, least uint64) // see Node.keepLog

	up atomic.Bool // raft, watcher and started are set
	// epoch is the epoch this node owns the shard in; 0 when it does not.
	epoch  atomic.Uint64
	failed atomic.Pointer[error] // why this node stopped serving the shard; nil while it may

	failure  chan struct{} // closed when failed is set
	stopping chan struct{}
	led      chan struct{} // closed when lead has returned
	ended    chan struct{} // closed when nothing works on the rows any more; nil before shutdown
}

// newGroup returns a group without data.
func newGroup(n *Node, shard storage.Shard) *group {
	g := &group{
		shard:     shard,
		node:      n.id.Node,
		logger:    n.logger.With("shard", int(shard)),
		tuning:    &n.tuning,
		owners:    n.owners.Load(),
		gained:    n.gained,
		lost:      n.lost,
		room:      &n.room,
		format:    n.Format,
		passesOn:  func() bool { return n.clockIsOff() || n.leaving.Load() },
		keepLog:   n.keepLog,
		handovers: make(chan *handoverRequest),
		changing:  make(chan struct{}, 1),
		failure:   make(chan struct{}),
		stopping:  make(chan struct{}),
		led:       make(chan struct{}),
	}
	g.commit = newCommitter(raftApplier{g}, g.tuning, &n.queueBudget, n.cfg.Store.WritePace().Wait)
	g.commit.check = g.checkRoom
	g.lease = &lease{
		length: int64(g.tuning.lease),
		clock:  g.tuning.leaseClock,
		proven: g.provenLeadership,
		verify: g.verifyLeadership,
	}
	return g
}

// openGroup reads a shard's data from disk and checks that state and log fit together.
func openGroup(n *Node, shard storage.Shard) (*group, error) {
	store, g := n.cfg.Store, newGroup(n, shard)
	var err error
	if g.log, err = raftstore.OpenLog(store.Raft(), shard); err != nil {
		return nil, err
	}
	if err := g.readFilling(); err != nil {
		return nil, err
	}
	g.log.Failed, g.log.Written = func(err error) { g.damaged(err) }, n.cfg.LogWritten
	if g.machine, err = newStateMachine(store, shard, &n.flusher); err != nil {
		return nil, err
	}
	g.snapshots = raftstore.NewSnapshotStore(store, g.log, g.tuning.clock, g.stopping)
	g.snapshots.Refused = func(err error) { g.logger.Error("a follower that needs all rows gets none", "error", err) }
	g.machine.snapshots = g.snapshots
	g.machine.needsReopen = func() { go n.reopen(g) }
	g.machine.fail, g.machine.spoil = g.fail, n.spoil
	g.machine.grown, g.machine.shrunk = n.compactor.grown, n.compactor.shrunk
	if err := g.snapshots.Resume(g.machine.at.applied); err != nil {
		return nil, err
	}
	if err := g.snapshots.CheckState(g.machine.at.applied); err != nil {
		return nil, err
	}
	return g, nil
}

// start brings up the group's Raft member. With found set, an empty store becomes a group of one
// voter; otherwise the member waits until a leader adds it.
func (g *group) start(transport raft.Transport, w Watcher, found bool) (err error) {
	g.watcher, g.transport = w, transport
	g.tracking = newTrackingTransport(transport, g.tuning.clock, func() uint64 { _, last := g.log.Bounds(); return last }, g.intercept)
	g.tracking.leaseClock = g.tuning.leaseClock
	g.tracking.wanted, g.tracking.resume = g.leadsTo, g.appendEmpty
	g.tracking.hasRoom = func(id raft.ServerID) bool { return g.owners.hasRoom(string(id)) }
	defer func() {
		if g.raft == nil { // requests to the group must not wait for a member
			err = errors.Join(err, g.tracking.Close())
		}
	}()
	stable := g.log.Stable()
	conf := g.raftConfig()
	if g.isFilling() {
		conf.HeartbeatTimeout, conf.ElectionTimeout = fillingTimeout, fillingTimeout
	}
	exists, err := raft.HasExistingState(g.log, stable, g.snapshots)
	if err == nil && exists && found && g.isEmpty() {
		// A crash cut the creation off: Raft writes the term first, and then the entry with the voter.
		exists, err = false, stable.SetTerm(0)
	}
	if err != nil {
		return fmt.Errorf("start shard %d: %w", g.shard, err)
	}
	if !exists && found {
		alone := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: transport.LocalAddr()}}}
		if err := raft.BootstrapCluster(conf, g.log, stable, g.snapshots, transport, alone); err != nil {
			return fmt.Errorf("create shard %d: %w", g.shard, err)
		}
	}
	if g.raft, err = g.newRaft(conf, stable); err != nil {
		return fmt.Errorf("start shard %d: %w", g.shard, err)
	}
	g.started = time.Now()
	g.commit.run()
	go g.lead()
	g.up.Store(true)
	return g.electSelf()
}

// leadsTo reports whether this member leads in a term and has another member in its group.
func (g *group) leadsTo(term uint64, id raft.ServerID) bool {
	if !g.up.Load() || g.raft.State() != raft.Leader || g.raft.CurrentTerm() != term {
		return false
	}
	future := g.raft.GetConfiguration()
	return future.Error() == nil && slices.ContainsFunc(future.Configuration().Servers, func(s raft.Server) bool { return s.ID == id })
}

// appendEmpty appends an entry that changes nothing if this member leads: a release of no epoch, which
// every replica refuses. It doesn't wait for the commit. A member that has failed appends none: its
// followers could not get it, and none of them could take the leadership over without it.
//
// An entry of Raft's own kind, as of Barrier, would not do: the state machine doesn't get it, and its
// position would fall behind Raft's snapshots.
func (g *group) appendEmpty() {
	if g.up.Load() && g.failed.Load() == nil && g.raft.State() == raft.Leader {
		g.propose(appendEntry(nil, entryRelease, 0, ""), electionTimeout/8) // an error means that the member does not lead any more
	}
}

// newRaft opens Raft's member. Raft panics where an entry of the log can't be read.
func (g *group) newRaft(conf *raft.Config, stable raft.StableStore) (member *raft.Raft, err error) {
	defer func() {
		if v := recover(); v != nil {
			member, err = nil, fmt.Errorf("open the log: %v", v)
		}
	}()
	return raft.NewRaft(conf, g.machine, g.log, stable, g.snapshots, g.tracking)
}

// maxAppendEntries is the number of entries that one request to a follower carries. Entries have up
// to 4 MiB and come a few at a time: longer queues would only hold memory.
const maxAppendEntries = 16

// raftConfig returns the configuration of the group's Raft member. It suits groups of one and of
// several voters.
func (g *group) raftConfig() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(g.node)
	conf.Logger = raftLogger{g.logger.With("component", "raft")}
	// One millisecond above the values that electSelf sets, so that setting them is a change.
	conf.HeartbeatTimeout = electionTimeout + time.Millisecond
	conf.ElectionTimeout = electionTimeout + time.Millisecond
	// Raft's heartbeats wait for a follower's disk (see trackingTransport), so a leader waits for
	// its followers as long as they wait for it.
	conf.LeaderLeaseTimeout = electionTimeout
	conf.CommitTimeout = g.tuning.commit
	// dropOrphan stops the Raft member of a removed replica.
	conf.ShutdownOnRemove = false
	conf.MaxAppendEntries = maxAppendEntries
	conf.BatchApplyCh = true
	conf.TrailingLogs = g.tuning.trailing
	// The compactor decides by bytes when to snapshot; Raft would count entries.
	conf.SnapshotInterval = time.Hour
	conf.SnapshotThreshold = 1 << 62
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	return conf
}

// electSelf makes a group's only voter stand for election at once: it has no leader to wait for.
// Lowering Raft's time-outs makes Raft check them at once. (Time-outs of milliseconds would have
// the same effect, but the lowest of them, LeaderLeaseTimeout, can't be raised again when the group
// grows, and it would wake an idle group a hundred times a second.)
func (g *group) electSelf() error {
	if g.isFilling() {
		return nil
	}
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
	if !g.setTimeouts(electionTimeout) {
		return fmt.Errorf("start shard %d: set the time-outs of Raft", g.shard)
	}
	return nil
}

// fail stops serving the shard on this node until the next start. It does not block.
func (g *group) fail(err error) {
	if g.failed.CompareAndSwap(nil, &err) {
		g.logger.Error("stopped serving a shard on this node", "error", err)
		g.epoch.Store(0)
		close(g.failure)
	}
}

// stop gives up the leadership, writes the end of the log and stops Raft. The error names the steps
// that were skipped; no acknowledged write is lost by them.
func (g *group) stop(ctx context.Context) error {
	if g.raft == nil { // never started, or see setAside
		return g.awaitEnd(ctx)
	}
	close(g.stopping)
	if err := within(ctx, func() error { <-g.led; return nil }); err != nil {
		err = fmt.Errorf("give up shard %d: %w", g.shard, err)
		return errors.Join(err, within(ctx, g.raft.Shutdown().Error))
	}
	// Closing the streams ends Raft's wait for answers, and the receipt of a snapshot.
	if err := g.tracking.Close(); err != nil {
		g.logger.Debug("close the group's streams", "error", err)
	}
	// A start reads the log from the last snapshot on. A short log needs no snapshot.
	if g.failed.Load() == nil && g.machine.pending.Load() > closeSnapshotBytes {
		// Without the snapshot the next start reads more of the log.
		if missed := within(ctx, func() error { return g.snapshot(false) }); missed != nil {
			g.logger.Info("the log was not truncated", "error", missed)
		}
	}
	return within(ctx, func() error {
		err := g.raft.Shutdown().Error()
		g.commit.stop()
		return err
	})
}

// closeSnapshotBytes is the size of the log from which a closing node makes a snapshot.
const closeSnapshotBytes = 64 << 10

// snapshot flushes the state, records its position, and truncates the log up to what is kept: the
// entries since the snapshot before, and those that an archive lacks. With all it keeps none of them.
func (g *group) snapshot(all bool) error {
	least := uint64(0)
	if all {
		g.kept.forget()
	} else if g.tuning.keepPrevious {
		before, err := g.snapshots.Latest()
		if err != nil {
			return err
		}
		least = 1
		if before != nil {
			least = before.Index + 1
		}
	}
	g.keepLog(g, least)
	if err := g.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("snapshot shard %d: %w", g.shard, err)
	}
	return nil
}

// within runs fn and waits for it until ctx ends. Some calls to Raft never return while the disk
// hangs; a closing process must not wait for those.
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

// raftApplier hands entries to Raft. Raft's queue is longer than the number of entries that the
// committer keeps in flight, so Apply does not wait.
type raftApplier struct{ g *group }

// Apply proposes an entry.
func (a raftApplier) Apply(data []byte) raft.ApplyFuture { return a.g.propose(data, 0) }

// propose hands an entry to Raft. An entry of a kind that some node may not know is refused: its
// replica could not follow the log.
func (g *group) propose(data []byte, timeout time.Duration) raft.ApplyFuture {
	if err := checkEntryKind(data[0], g.format()); err != nil {
		return refusedEntry{err}
	}
	return g.raft.Apply(data, timeout)
}

// refusedEntry is the answer to an entry that was not handed to Raft.
type refusedEntry struct{ err error }

func (r refusedEntry) Error() error  { return r.err }
func (r refusedEntry) Response() any { return nil }
func (r refusedEntry) Index() uint64 { return 0 }
