package cluster

import (
	"errors"
	"fmt"

	"switchyard/storage"
)

// quarantine puts a failed replica in the place of one that can't be opened, so that the node's other
// shards serve. Its group replaces the replica. On a node without others the data on this disk may be
// the only copy: the node doesn't start then, and the cause is returned.
func (n *Node) quarantine(old *group, cause error) error {
	if _, alone := n.transports.(soloTransports); alone {
		return cause
	}
	if n.peering != nil && len(n.peering.registry.list().Peers()) < 2 {
		return cause
	}
	n.setAside(old, fmt.Errorf("open the replica: %w", cause))
	return nil
}

// setAside puts a failed replica in the place of one that does not serve any more. The other one may not
// have ended yet: its rows are deleted after that (see shutdown).
func (n *Node) setAside(old *group, cause error) {
	g := newGroup(n, old.shard)
	g.machine, g.ended = &stateMachine{}, old.ended
	close(g.led)
	g.fail(cause)
	n.groups[old.shard].Store(g)
}

// Damaged has the group of a shard replace this node's replica, of which a part can't be read: another
// member leads from now on. A group's only voter stays, since the other rows can be read.
func (n *Node) Damaged(shard storage.Shard, cause error) {
	g := n.group(shard)
	if g == nil || !g.damaged(fmt.Errorf("read the state: %w", cause)) {
		return
	}
	if n.damagedBefore[shard].Swap(true) {
		n.spoil(fmt.Errorf("shard %d was replaced before: %w", shard, cause))
	}
}

// damaged fails a replica of which a part can't be read, unless it is its group's only voter, and reports
// whether it did. It does not block.
func (g *group) damaged(cause error) bool {
	if !g.up.Load() || g.failed.Load() != nil || !g.hasOthers() {
		return false
	}
	g.fail(cause)
	return true
}

// errSpoiled refuses replicas on a node whose disk has damage that the replacement of a replica does not
// mend.
var errSpoiled = errors.New("cluster: the state of this node is damaged where two shards meet: start it with an empty data directory, after cluster remove")

// spoil has this node lead nothing and take no replicas until its next start: its state is damaged in a
// block that has rows of two shards. The rows of one of them can be replaced, but the block stays, and
// fails the reads and the installs of both. Each try would copy the whole shard.
func (n *Node) spoil(cause error) {
	if !n.spoiled.Swap(true) {
		n.logger.Error("this node takes no replicas any more", "error", errors.Join(errSpoiled, cause))
	}
}

// errAllFailed is returned when no replica of a node can be opened: the data is not that of one bad
// shard.
var errAllFailed = errors.New("cluster: no replica of this node can be opened")

// checkSomeOpened returns an error if every replica has failed.
func (n *Node) checkSomeOpened() error {
	var errs []error
	groups := n.hosted()
	for _, g := range groups {
		if failed := g.failed.Load(); failed != nil {
			errs = append(errs, *failed)
		}
	}
	if len(errs) == 0 || len(errs) < len(groups) {
		return nil
	}
	return errors.Join(append(errs, errAllFailed)...)
}
