package node

import (
	"context"
	"fmt"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/httpapi"
	"switchyard/storage"
)

// operator is the node's side of httpapi.Cluster.
type operator struct{ n *Node }

// Topology implements httpapi.Cluster.
func (o operator) Topology(context.Context) (httpapi.Topology, error) {
	return wireTopology(o.n.topology()), nil
}

// WorkspaceOwner implements httpapi.Cluster.
func (o operator) WorkspaceOwner(_ context.Context, workspace [16]byte) (httpapi.WorkspaceOwner, error) {
	shard := storage.ShardOf(storage.ID(workspace), o.n.groups.Shards())
	return httpapi.WorkspaceOwner{Shard: int(shard), Owner: o.n.groups.ShardStats(shard).Leader}, nil
}

// Drain implements httpapi.Cluster.
func (o operator) Drain(_ context.Context, name string) (httpapi.DrainStart, error) {
	t := o.n.topology()
	if !member(t, name) {
		return httpapi.DrainStart{}, errNoNode(name)
	}
	moves, ok := drains(t, name)
	if !ok {
		return httpapi.DrainStart{}, tracker.Conflict(
			fmt.Sprintf("No other node could take over what %q holds.", name),
			"Add a node that is alive and not draining, then drain this one.")
	}
	return httpapi.DrainStart{Node: name, Moves: moves}, nil
}

// Undrain implements httpapi.Cluster.
func (o operator) Undrain(_ context.Context, name string) error {
	if !member(o.n.topology(), name) {
		return errNoNode(name)
	}
	return nil
}

// Remove implements httpapi.Cluster.
func (o operator) Remove(_ context.Context, name string) error {
	t := o.n.topology()
	if !member(t, name) {
		return errNoNode(name)
	}
	if _, ok := drains(t, name); !ok {
		return tracker.Conflict(
			fmt.Sprintf("%q is the only node that could serve.", name),
			"Add a node that is alive and not draining before you remove this one.")
	}
	return nil
}

// topology is the cluster of a node alone.
func (n *Node) topology() cluster.Topology {
	t := cluster.Topology{ClusterID: n.groups.ClusterID()}
	self := cluster.NodeStatus{
		Name: n.groups.Name(), State: cluster.NodeAlive, Zone: n.cfg.Zone,
		HTTP: n.cfg.advertised(n.HTTPAddr()), Peer: n.PeerAddr(), Gossip: n.GossipAddr(), Version: n.cfg.Version,
	}
	for i := 0; i <= n.groups.Shards(); i++ {
		s := n.groups.ShardStats(storage.Shard(i))
		t.Shards = append(t.Shards, cluster.ShardStatus{ID: i, Leader: s.Leader, Term: s.Term, Voters: []string{self.Name}, Applied: s.Applied})
		self.Replicas++
		if s.Epoch != 0 {
			self.Leads++
		}
	}
	t.Nodes = []cluster.NodeStatus{self}
	return t
}

// drains says what a drain of a node would take off it; false when there is no
// other node to take anything.
func drains(t cluster.Topology, name string) (moves string, ok bool) {
	others := 0
	for _, n := range t.Nodes {
		if n.Name != name && (n.State == cluster.NodeAlive || n.State == cluster.NodeSuspect) {
			others++
		}
	}
	replicas := 0
	for _, s := range t.Shards {
		replicas = max(replicas, len(s.Voters))
	}
	switch {
	case others == 0:
		return "", false
	case others < replicas:
		return httpapi.DrainsLeaderships, true
	}
	return httpapi.DrainsReplicas, true
}

func member(t cluster.Topology, name string) bool {
	for _, n := range t.Nodes {
		if n.Name == name {
			return true
		}
	}
	return false
}

func errNoNode(name string) error {
	return &tracker.Error{
		Code: tracker.CodeNotFound, Message: fmt.Sprintf("No node of the cluster is called %q.", name),
		Hint: "GET /cluster and `switchyard cluster status` list the nodes.",
	}
}

func wireTopology(t cluster.Topology) httpapi.Topology {
	out := httpapi.Topology{ClusterID: t.ClusterID}
	for _, n := range t.Nodes {
		out.Nodes = append(out.Nodes, httpapi.NodeStatus{
			Name: n.Name, State: string(n.State), Zone: n.Zone, HTTP: n.HTTP, Peer: n.Peer, Gossip: n.Gossip,
			Version: n.Version, Leads: n.Leads, Replicas: n.Replicas,
		})
	}
	for _, s := range t.Shards {
		out.Shards = append(out.Shards, httpapi.ShardStatus(s))
	}
	return out
}
