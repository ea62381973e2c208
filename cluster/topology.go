package cluster

import (
	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
)

// The status of the cluster as Node.Topology returns it.
type (
	// Topology is the cluster as one node sees it (Decision 51).
	Topology = placement.Topology
	// NodeStatus is one member.
	NodeStatus = placement.NodeStatus
	// ShardStatus is one shard.
	ShardStatus = placement.ShardStatus
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
