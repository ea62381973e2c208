package placement

import (
	"slices"
	"testing"

	"switchyard/cluster/membership"
)

func (t Topology) node(name string) NodeStatus {
	i := slices.IndexFunc(t.Nodes, func(n NodeStatus) bool { return n.Name == name })
	if i < 0 {
		return NodeStatus{}
	}
	return t.Nodes[i]
}

func TestTopology_Members(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, cluster, node string
		want                NodeStatus
	}{
		{"one of three drains, and leads still", `
			three
			node a
			node b
			node c draining
			shard 0 a b c*`, "c", NodeStatus{State: membership.NodeDraining, Leads: 1, Replicas: 1, Note: noteLeadersOnly}},
		{"it has drained as far as it can", `
			three
			node a
			node b
			node c draining
			shard 0 a* b c`, "c", NodeStatus{State: membership.NodeDraining, Replicas: 1, Drained: true, Note: noteLeadersOnly}},
		{"a spare node takes the replicas", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a* b c`, "c", NodeStatus{State: membership.NodeDraining, Replicas: 1}},
		{"it is empty", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a* b d`, "c", NodeStatus{State: membership.NodeDraining, Drained: true}},
		{"a shard is out of sight", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a* b d
			shard 1 a b c`, "c", NodeStatus{State: membership.NodeDraining}},
		{"the only node drains", `
			node a draining
			shard 0 a*`, "a", NodeStatus{State: membership.NodeDraining, Leads: 1, Replicas: 1, Note: noteNothingMoves}},
		{"a draining node died", `
			three
			node a
			node b
			node c draining dead=1m
			shard 0 a* b c`, "c", NodeStatus{State: membership.NodeDead, Replicas: 1, Drained: true, Note: noteLeadersOnly}},
		{"a removed node still holds replicas", `
			three
			node a
			node b
			node c removed dead=1m
			shard 0 a* b c`, "c", NodeStatus{
			State: membership.NodeDead, Replicas: 1, Note: "removed: other nodes take its replicas over",
		}},
		{"a removed node is forgotten", `
			three
			node a
			node b
			node c removed dead=1m
			shard 0 a* b`, "c", NodeStatus{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			state := parseCluster(t, test.cluster)
			got := state.Topology("c", testNow).node(test.node)
			if test.want.State != "" {
				test.want.Name = test.node
			}
			if got != test.want {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
		})
	}
}
