package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/cluster/placement"
	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// hostReplica creates an empty member of a shard's group on this node. It has no peers and waits
// until the leader that adds it sends its first message. to is the newest entry in the log of the
// group's leader, or a later place (see filling.go); the zero one where a node of an earlier version
// asks. If the node has a member already, nothing happens.
func (n *Node) hostReplica(shard storage.Shard, to logPoint) error {
	if int(shard) >= len(n.groups) {
		return errNoShard
	}
	n.hosting.Lock()
	defer n.hosting.Unlock()
	if g := n.groups[shard].Load(); g != nil {
		if failed := g.failed.Load(); failed != nil {
			return fmt.Errorf("host shard %d: the failed replica is not dropped yet: %w", shard, *failed)
		}
		return nil
	}
	if n.shut {
		return errClosing
	}
	if n.spoiled.Load() {
		return errSpoiled
	}
	if err := n.finishDrop(shard); err != nil { // left by an earlier attempt
		return err
	}
	g, err := openGroup(n, shard)
	if err != nil {
		return err
	}
	if to != (logPoint{}) && g.isEmpty() {
		if err := g.beginFilling(to); err != nil {
			return fmt.Errorf("host shard %d: %w", shard, err)
		}
	}
	if err := g.start(n.transports.transportFor(shard), n.watcher, false); err != nil {
		return errors.Join(err, g.stop(context.Background()))
	}
	n.groups[shard].Store(g)
	return nil
}

// dropOrphan stops the member of a shard's group on this node and deletes its data, unless it has heard
// of its group since the leader did not count it. The request may have waited for other replicas.
func (n *Node) dropOrphan(in dropRequest) error {
	shard := in.Shard
	if int(shard) >= len(n.groups) {
		return errNoShard
	}
	n.hosting.Lock()
	defer n.hosting.Unlock()
	g := n.groups[shard].Load()
	if g == nil {
		return n.finishDrop(shard)
	}
	if n.shut {
		return errClosing
	}
	if g.isEnding() { // a wait here would delay all other replicas of the node
		return fmt.Errorf("the replica of shard %d has not ended yet: %w", shard, *g.failed.Load())
	}
	err := g.checkOrphan(&in)
	if err == nil {
		err = g.checkDroppable()
	}
	if err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	// From here on the replica is deleted, by the next start at the latest. A replica that lost
	// half of its rows must never be opened.
	if err := n.cfg.Store.Raft().Set(raftstore.Key(shard, raftstore.KindDropping, nil), nil, pebble.Sync); err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	n.groups[shard].Store(nil)
	err = g.shutdown()
	n.compactor.shrunk(g.machine.pending.Load())
	if err != nil {
		err = fmt.Errorf("drop the replica of shard %d: %w", shard, err)
		n.setAside(g, err) // the next request drops it
		return err
	}
	return n.finishDrop(shard)
}

// reopen replaces a group's member by one opened from disk. It is needed when Raft can't follow the
// log with what it has in memory.
func (n *Node) reopen(old *group) {
	n.hosting.Lock()
	defer n.hosting.Unlock()
	if n.shut || n.groups[old.shard].Load() != old {
		return
	}
	n.reopening[old.shard].Store(true)
	defer n.reopening[old.shard].Store(false)
	n.groups[old.shard].Store(nil)
	err := old.shutdown()
	n.compactor.shrunk(old.machine.pending.Load())
	if err == nil {
		var g *group
		if g, err = openGroup(n, old.shard); err == nil {
			if err = g.start(n.transports.transportFor(g.shard), n.watcher, false); err == nil {
				n.groups[old.shard].Store(g)
				return
			}
		}
	}
	if err = n.quarantine(old, err); err != nil {
		n.fail(fmt.Errorf("reopen the replica of shard %d: %w", old.shard, err))
	}
}

// checkOrphan refuses to drop a replica that may have become a member again since a request.
func (g *group) checkOrphan(in *dropRequest) error {
	if !g.up.Load() {
		return in.check(&placement.GroupReport{Starting: g.failed.Load() == nil})
	}
	report, err := g.report()
	if err != nil {
		return err
	}
	return in.check(&report)
}

// checkDroppable refuses to drop a replica that other replicas need: its data would be lost.
func (g *group) checkDroppable() error {
	if g.raft == nil { // it could not be opened, and its group does not count it
		return nil
	}
	voters, _, err := g.members()
	switch {
	case err != nil:
		return err
	case g.raft.State() == raft.Leader:
		return errors.New("cluster: this node leads the group")
	case len(voters) == 1 && voters[0] == g.node:
		return errOnlyReplica
	}
	return nil
}

// finishDrop deletes the rows of a shard with the mark of a drop.
func (n *Node) finishDrop(shard storage.Shard) error {
	marker, err := raftstore.ReadRow(n.cfg.Store.Raft(), raftstore.Key(shard, raftstore.KindDropping, nil))
	if err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	if marker == nil {
		return nil
	}
	from, to := storage.ShardRange(shard)
	err = n.cfg.Store.ReplaceState(shard, func() error { return n.cfg.Store.State().DeleteRange(from, to, pebble.NoSync) })
	if err == nil {
		n.flusher.written()
		// The state has no log of its own: only a flush makes the deletion durable. The mark goes
		// after that.
		err = n.flusher.flush()
	}
	if err == nil {
		err = n.cfg.Store.Raft().DeleteRange(raftstore.Key(shard, raftstore.KindLog, nil), raftstore.Key(shard, raftstore.KindEnd, nil), pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	return nil
}

// shutdown stops the member without releasing the shard or writing a snapshot. After an error the member
// may still work on the shard's rows: they must not be touched before awaitEnd returns nil.
func (g *group) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), g.tuning.shutdown)
	defer cancel()
	close(g.stopping)
	_ = within(ctx, func() error { <-g.led; return nil })
	if g.raft != nil { // otherwise it could not be opened
		g.ended = make(chan struct{})
		go g.end()
	}
	return g.awaitEnd(ctx)
}

// end ends Raft, and then closes ended. It waits for the disk.
func (g *group) end() {
	defer close(g.ended)
	// Closing the streams ends the receipt of a snapshot, which Raft would wait for.
	err := errors.Join(g.tracking.Close(), g.raft.Shutdown().Error())
	<-g.led
	g.commit.stop()
	if err = errors.Join(err, g.snapshots.Discard()); err != nil {
		g.logger.Warn("end a replica", "error", err)
	}
}

// isEnding reports whether the member before a failed replica, which shutdown has stopped, still works on the
// shard's rows.
func (g *group) isEnding() bool {
	if g.ended == nil {
		return false
	}
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

// awaitEnd waits for the end of a member that shutdown has stopped.
func (g *group) awaitEnd(ctx context.Context) error {
	if g.ended == nil {
		return nil
	}
	return within(ctx, func() error { <-g.ended; return nil })
}

// hasReplica reports whether the store has rows of a shard's member.
func hasReplica(db *pebble.DB, shard storage.Shard) (bool, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: raftstore.Key(shard, raftstore.KindLog, nil), UpperBound: raftstore.Key(shard, raftstore.KindEnd, nil)})
	if err != nil {
		return false, fmt.Errorf("look for the replica of shard %d: %w", shard, err)
	}
	found := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return false, fmt.Errorf("look for the replica of shard %d: %w", shard, err)
	}
	return found, nil
}
