package cluster

import (
	"switchyard/cluster/membership"
	"switchyard/cluster/topology"
)

// The status of the cluster as Node.Topology returns it.
type (
	// Topology is the cluster as one node sees it (Decision 51).
	Topology = topology.Topology
	// NodeStatus is one member.
	NodeStatus = topology.NodeStatus
	// ShardStatus is one shard.
	ShardStatus = topology.ShardStatus
	// NodeState is the state of a member.
	NodeState = membership.NodeState
)

// The states of a member.
const (
	NodeAlive    = membership.NodeAlive
	NodeSuspect  = membership.NodeSuspect
	NodeDead     = membership.NodeDead
	NodeDraining = membership.NodeDraining
	NodeLeft     = membership.NodeLeft
)
