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
	g := newGroup(n, old.shard)
	g.machine = &stateMachine{}
	close(g.led)
	g.fail(fmt.Errorf("open the replica: %w", cause))
	n.groups[old.shard].Store(g)
	return nil
}

// Damaged has the group of a shard replace this node's replica, of which a part can't be read: another
// member leads from now on. A group's only voter stays, since the other rows can be read.
func (n *Node) Damaged(shard storage.Shard, cause error) {
	if g := n.group(shard); g != nil {
		g.damaged(fmt.Errorf("read the state: %w", cause))
	}
}

// damaged fails a replica of which a part can't be read, unless it is its group's only voter. It does not
// block.
func (g *group) damaged(cause error) {
	if g.up.Load() && g.failed.Load() == nil && g.hasOthers() {
		g.fail(cause)
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
