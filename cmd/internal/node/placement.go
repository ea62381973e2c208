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

// Unowned implements httpapi.Placement.
func (p placement) Unowned(workspace [16]byte) time.Time {
	if !p.n.serving.Load() {
		return time.Time{}
	}
	return p.n.groups.Unowned(p.shard(workspace))
}

// Dial implements httpapi.Placement.
func (p placement) Dial(ctx context.Context, node string) (net.Conn, error) {
	return p.n.groups.DialPeer(ctx, node)
}
