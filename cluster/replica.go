package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// hostReplica makes an empty member of a shard's group here. It knows nobody, and
// waits to be contacted by the leader that adds it. Where there is a member already,
// nothing happens.
func (n *Node) hostReplica(shard storage.Shard) error {
	if int(shard) >= len(n.groups) {
		return errNoShard
	}
	n.hosting.Lock()
	defer n.hosting.Unlock()
	if n.groups[shard].Load() != nil {
		return nil
	}
	if n.shut {
		return errClosing
	}
	if err := n.finishDrop(shard); err != nil { // that an earlier attempt left
		return err
	}
	g, err := openGroup(n, shard)
	if err != nil {
		return err
	}
	if err := g.start(n.transports.transportFor(shard), n.watcher, false); err != nil {
		return errors.Join(err, g.stop(context.Background()))
	}
	n.groups[shard].Store(g)
	return nil
}

// dropReplica ends the member of a shard's group here and deletes what it kept. Who
// asks knows that it is no member any more.
func (n *Node) dropReplica(shard storage.Shard) error {
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
	if err := g.checkDroppable(); err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	// From here on it is deleted, by the next start if need be. A replica that lost
	// half of its rows must never be opened.
	if err := n.cfg.Store.Raft().Set(raftKey(shard, kindDropping, nil), nil, pebble.Sync); err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	n.groups[shard].Store(nil)
	if err := g.shutdown(); err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	n.compactor.shrunk(g.machine.pending.Load())
	return n.finishDrop(shard)
}

// reopen makes a group's member anew from what it has on disk, where Raft can't
// follow the log any more with what it has in memory.
func (n *Node) reopen(old *group) {
	n.hosting.Lock()
	defer n.hosting.Unlock()
	if n.shut || n.groups[old.shard].Load() != old {
		return
	}
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
	n.fail(fmt.Errorf("make the replica of shard %d anew: %w", old.shard, err))
}

// checkDroppable refuses the end of a replica that others certainly need: they would
// have nobody to ask for what only it holds.
func (g *group) checkDroppable() error {
	voters, _, err := g.members()
	switch {
	case err != nil:
		return err
	case g.raft.State() == raft.Leader:
		return errors.New("cluster: it leads the group")
	case len(voters) == 1 && voters[0] == g.node:
		return errOnlyReplica
	}
	return nil
}

// finishDrop deletes the rows of a shard that is marked as dropped.
func (n *Node) finishDrop(shard storage.Shard) error {
	marker, err := readRow(n.cfg.Store.Raft(), raftKey(shard, kindDropping, nil))
	if err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	if marker == nil {
		return nil
	}
	from, to := storage.ShardRange(shard)
	err = n.cfg.Store.State().DeleteRange(from, to, pebble.NoSync)
	if err == nil {
		n.flusher.written()
		// The state has no log of its own: only a flush makes the deletion durable, and
		// only then may the marker go.
		err = n.flusher.flush()
	}
	if err == nil {
		err = n.cfg.Store.Raft().DeleteRange(raftKey(shard, kindLog, nil), raftKey(shard, kindEnd, nil), pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("drop the replica of shard %d: %w", shard, err)
	}
	return nil
}

// abandonWait bounds how long the end of a dropped replica is waited for.
const shutdownTimeout = 10 * time.Second

// shutdown ends the member without ceremony.
func (g *group) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	close(g.stopping)
	err := within(ctx, func() error { <-g.led; return nil })
	return errors.Join(err, within(ctx, g.raft.Shutdown().Error))
}

// hasReplica tells whether a shard's member was ever begun here.
func hasReplica(db *pebble.DB, shard storage.Shard) (bool, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: raftKey(shard, kindLog, nil), UpperBound: raftKey(shard, kindEnd, nil)})
	if err != nil {
		return false, fmt.Errorf("look for the replica of shard %d: %w", shard, err)
	}
	found := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return false, fmt.Errorf("look for the replica of shard %d: %w", shard, err)
	}
	return found, nil
}
