package cluster

import (
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// transports makes the transports of the groups. Raft's configuration has the node names of voters
// as their addresses. A node's network address is looked up at each dial, so that the node may
// move.
type transports interface {
	// transportFor returns the transport of one group. Raft closes it with the group.
	transportFor(shard storage.Shard) raft.Transport
}

// soloTransports is for a node alone: its transports reach no other node.
type soloTransports struct{ node string }

func (a soloTransports) transportFor(storage.Shard) raft.Transport {
	_, transport := raft.NewInmemTransport(raft.ServerAddress(a.node))
	return transport
}
