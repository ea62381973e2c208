package cluster

import (
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// transports carries the groups' messages between nodes. Voters are recorded in
// Raft's configuration under their node names, also as addresses: where a node
// of that name listens is looked up when dialing, so that a node may move.
type transports interface {
	// transportFor gives the transport of one group; Raft closes it with the group.
	transportFor(shard storage.Shard) raft.Transport
}

// soloTransports is the transport of a node that has no peers: nothing leaves it.
type soloTransports struct{ node string }

func (a soloTransports) transportFor(storage.Shard) raft.Transport {
	_, transport := raft.NewInmemTransport(raft.ServerAddress(a.node))
	return transport
}
