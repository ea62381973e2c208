package placement

import (
	"slices"
	"testing"

	"switchyard/cluster/membership"
	"switchyard/cluster/topology"
)

func statusOf(t topology.Topology, name string) topology.NodeStatus {
	i := slices.IndexFunc(t.Nodes, func(n topology.NodeStatus) bool { return n.Name == name })
	if i < 0 {
		return topology.NodeStatus{}
	}
	return t.Nodes[i]
}

func TestTopology_Members(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, cluster, node string
		want                topology.NodeStatus
	}{
		{"one of three drains, and leads still", `
			three
			node a
			node b
			node c draining
			shard 0 a b c*`, "c", topology.NodeStatus{State: membership.NodeDraining, Leads: 1, Replicas: 1, Note: noteLeadersOnly}},
		{"it has drained as far as it can", `
			three
			node a
			node b
			node c draining
			shard 0 a* b c`, "c", topology.NodeStatus{State: membership.NodeDraining, Replicas: 1, Note: noteLeadersOnly}},
		{"a spare node takes the replicas", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a* b c`, "c", topology.NodeStatus{State: membership.NodeDraining, Replicas: 1}},
		{"the spare node should take none", `
			three
			node a
			node b
			node c draining
			node d full
			shard 0 a* b c`, "c", topology.NodeStatus{State: membership.NodeDraining, Replicas: 1, Note: noteLeadersOnly}},
		{"the disk of the spare node hangs", `
			three
			node a
			node b
			node c draining
			node d stuck
			shard 0 a* b c
			shard 1 a* b >d`, "c", topology.NodeStatus{State: membership.NodeDraining, Replicas: 1, Note: noteLeadersOnly}},
		{"its disk has hung a moment ago", `
			three
			node a
			node b
			node c
			shard 0 a* b <c`, "c", topology.NodeStatus{State: membership.NodeAlive, Replicas: 1, Note: noteHung}},
		{"it is empty", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a* b d`, "c", topology.NodeStatus{State: membership.NodeDraining}},
		{"a shard is out of sight", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a* b d
			shard 1 a b c`, "c", topology.NodeStatus{State: membership.NodeDraining}},
		{"the only node drains", `
			node a draining
			shard 0 a*`, "a", topology.NodeStatus{State: membership.NodeDraining, Leads: 1, Replicas: 1, Note: noteNothingMoves}},
		{"a draining node died", `
			three
			node a
			node b
			node c draining dead=1m
			shard 0 a* b c`, "c", topology.NodeStatus{State: membership.NodeDead, Replicas: 1, Note: noteLeadersOnly}},
		{"a removed node still holds replicas", `
			three
			node a
			node b
			node c removed dead=1m
			shard 0 a* b c`, "c", topology.NodeStatus{
			State: membership.NodeDead, Replicas: 1, Removed: true, Note: "removed: other nodes take its replicas over",
		}},
		{"the disk of a node has no room", `
			three
			node a
			node b
			node c
			shard 0 a* b c-`, "c", topology.NodeStatus{State: membership.NodeAlive, Replicas: 1, Note: noteNoRoom}},
		{"the disk of a node hangs", `
			three
			node a
			node b
			node c
			shard 0 a* b >c`, "c", topology.NodeStatus{State: membership.NodeAlive, Replicas: 1, Note: noteStuck}},
		{"a node should lead nothing for another reason", `
			three
			node a
			node b
			node c
			shard 0 a* b =c`, "c", topology.NodeStatus{State: membership.NodeAlive, Replicas: 1, Note: noteFull}},
		{"a removed node is forgotten", `
			three
			node a
			node b
			node c removed dead=1m
			shard 0 a* b`, "c", topology.NodeStatus{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			state := parseCluster(t, test.cluster)
			got := statusOf(state.Topology("c", testNow), test.node)
			if test.want.State != "" {
				test.want.Name = test.node
			}
			if got != test.want {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
		})
	}
}
