// Package topology has the status of the cluster as the operator sees it (Decision 51). It is data
// alone: package placement fills it in, and package httpapi sends it as it is.
package topology

import "switchyard/cluster/membership"

// Topology is the cluster as one node sees it. Its lists are never nil.
type Topology struct {
	ClusterID string `json:"clusterId"`
	// Format is the one in which the cluster stores data and its nodes talk.
	Format int           `json:"format"`
	Nodes  []NodeStatus  `json:"nodes"`  // by name
	Shards []ShardStatus `json:"shards"` // by id, the directory's first
}

// NodeStatus is one member.
type NodeStatus struct {
	Name    string               `json:"name"`
	State   membership.NodeState `json:"state" enum:"alive,suspect,dead,draining,left"`
	Zone    string               `json:"zone"`
	HTTP    string               `json:"http"`
	Peer    string               `json:"peer"`
	Gossip  string               `json:"gossip"`
	Version string               `json:"version"`
	// NewestFormat is the newest format that the node's program agrees to.
	NewestFormat int `json:"newestFormat"`
	Leads        int `json:"leads"`    // shards it leads
	Replicas     int `json:"replicas"` // shards of which it has a replica, voter or not
	// Removed is set for a node that was removed and still serves what the other nodes have not taken over.
	Removed bool `json:"removed,omitempty"`
	// Note explains a removal or a drain that is not complete, or says why the node should lead nothing.
	Note string `json:"note,omitempty"`
}

// ShardStatus is one shard.
type ShardStatus struct {
	ID        int      `json:"id"`
	Leader    string   `json:"leader"` // empty if unknown
	Term      uint64   `json:"term"`
	Voters    []string `json:"voters"`
	NonVoters []string `json:"nonVoters"`
	Applied   uint64   `json:"applied"` // newest entry in the leader's state
	Lag       uint64   `json:"lag"`     // entries by which the slowest replica is behind
	// Failed lists the replicas that can't follow the shard's log and are being replaced.
	Failed []FailedReplica `json:"failed,omitempty"`
	// Differing lists the nodes whose replicas have other rows than those of the majority, by the last
	// comparison of the shard's owner, or all of them if no majority is equal.
	Differing []string `json:"differing,omitempty"`
}

// FailedReplica is a replica that can't follow its shard's log.
type FailedReplica struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}
