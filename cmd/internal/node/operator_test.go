package node

import (
	"testing"

	"switchyard/cluster"
	"switchyard/httpapi"
)

func TestDrains(t *testing.T) {
	t.Parallel()
	alive, dead := cluster.NodeAlive, cluster.NodeDead
	for _, row := range []struct {
		name   string
		others []cluster.NodeState
		voters int
		moves  string // nothing: no drain
	}{
		{"the only one", nil, 1, ""},
		{"the only one alive", []cluster.NodeState{dead, cluster.NodeLeft}, 3, ""},
		{"the last but those that drain", []cluster.NodeState{cluster.NodeDraining}, 1, ""},
		{"one of two with one replica each", []cluster.NodeState{alive}, 1, httpapi.DrainsReplicas},
		{"one of three, which the third has just joined", []cluster.NodeState{alive, alive}, 1, httpapi.DrainsLeaderships},
		{"one of three", []cluster.NodeState{alive, alive}, 3, httpapi.DrainsLeaderships},
		{"one of four, one dead", []cluster.NodeState{alive, alive, dead}, 3, httpapi.DrainsLeaderships},
		{"one of four", []cluster.NodeState{alive, cluster.NodeSuspect, alive}, 3, httpapi.DrainsReplicas},
	} {
		topology := cluster.Topology{Nodes: []cluster.NodeStatus{{Name: "it", State: alive}}, Shards: []cluster.ShardStatus{{Voters: make([]string, row.voters)}}}
		for _, state := range row.others {
			topology.Nodes = append(topology.Nodes, cluster.NodeStatus{Name: "other", State: state})
		}
		if moves, ok := drains(topology, "it"); moves != row.moves || ok != (row.moves != "") {
			t.Errorf("%s: %q, %t", row.name, moves, ok)
		}
	}
}
