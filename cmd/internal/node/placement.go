package node

import (
	"context"
	"net"
	"time"

	"switchyard/storage"
)

// placement tells the API which node serves a workspace.
type placement struct{ n *Node }

// Owner implements httpapi.Placement.
func (p placement) Owner(workspace [16]byte) (node string, here bool, changed <-chan struct{}) {
	if !p.n.serving.Load() {
		return "", true, nil // for the API to refuse
	}
	shard := p.shard(workspace)
	if int(shard) > p.n.groups.Shards() {
		return "", true, nil // there is no such shard, as this node can say
	}
	return p.n.groups.ShardOwner(shard)
}

// shard returns the shard of a workspace, or the directory for the zero id.
func (p placement) shard(workspace [16]byte) storage.Shard {
	if id := storage.ID(workspace); id != (storage.ID{}) {
		return storage.ShardOf(id, p.n.groups.Shards())
	}
	return storage.DirectoryShard
}

// OwnerDue implements httpapi.Placement.
func (p placement) OwnerDue(workspace [16]byte, missing time.Time) time.Time {
	if !p.n.serving.Load() {
		return p.n.groups.OwnerDue(storage.DirectoryShard, missing) // the number of shards may not be known yet
	}
	return p.n.groups.OwnerDue(p.shard(workspace), missing)
}

// Dial implements httpapi.Placement.
func (p placement) Dial(ctx context.Context, node string) (net.Conn, error) {
	return p.n.groups.DialPeer(ctx, node)
}
