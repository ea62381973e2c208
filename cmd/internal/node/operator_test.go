package node

import (
	"errors"
	"testing"

	"switchyard/actors/tracker"
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

// Nodes that are removed already take nothing over, although they answer until the others have their replicas.
func TestRemove_OfTheLastNode(t *testing.T) {
	t.Parallel()
	const alive = cluster.NodeAlive
	for _, row := range []struct {
		name, node string
		nodes      []cluster.NodeStatus
		code       tracker.Code
	}{
		{"one of three", "a", []cluster.NodeStatus{{State: alive}, {State: alive}, {State: alive}}, ""},
		{"one of two", "a", []cluster.NodeStatus{{State: alive}, {State: alive}, {State: alive, Removed: true}}, ""},
		{"the last one, the others are removed", "a", []cluster.NodeStatus{{State: alive}, {State: alive, Removed: true}, {State: cluster.NodeSuspect, Removed: true}}, tracker.CodeConflict},
		{"the last one alive", "a", []cluster.NodeStatus{{State: alive}, {State: cluster.NodeDead}, {State: alive, Removed: true}}, tracker.CodeConflict},
		{"a removed one again", "a", []cluster.NodeStatus{{State: alive, Removed: true}, {State: cluster.NodeDraining}}, ""},
		{"a node unknown here", "new", []cluster.NodeStatus{{State: alive}}, ""},
	} {
		topology := cluster.Topology{Nodes: row.nodes}
		for i := range topology.Nodes {
			topology.Nodes[i].Name = string(rune('a' + i))
		}
		asked := false
		err := remove(topology, row.node, func() error {
			asked = true
			return nil
		})
		var code tracker.Code
		if refused := (*tracker.Error)(nil); errors.As(err, &refused) {
			code = refused.Code
		}
		if code != row.code || asked != (row.code == "") {
			t.Errorf("%s: %v, asked %t", row.name, err, asked)
		}
	}
}

// The node that is asked may not have heard of a new node yet, and the directory's owner has.
func TestBeginDrain_OfANodeUnknownHere(t *testing.T) {
	t.Parallel()
	const alive = cluster.NodeAlive
	for _, row := range []struct {
		name, node string
		known      []cluster.NodeState // of a, b and so on
		answer     error               // the owner's
		moves      string
		code       tracker.Code
		asks       bool
	}{
		{"a fourth node", "new", []cluster.NodeState{alive, alive, alive}, nil, httpapi.DrainsReplicas, "", true},
		{"a third node", "new", []cluster.NodeState{alive, alive}, nil, httpapi.DrainsLeaderships, "", true},
		{"no node could take over", "new", []cluster.NodeState{cluster.NodeDraining}, nil, httpapi.DrainsLeaderships, "", true},
		{"no such node", "new", []cluster.NodeState{alive, alive}, cluster.ErrUnknownNode, "", tracker.CodeNotFound, true},
		{"no such node, and none could take over", "new", []cluster.NodeState{cluster.NodeDraining}, cluster.ErrUnknownNode, "", tracker.CodeNotFound, true},
		{"the only node", "a", []cluster.NodeState{alive}, nil, "", tracker.CodeConflict, false},
		{"a node that the owner does not know any more", "a", []cluster.NodeState{alive, alive}, cluster.ErrUnknownNode, "", tracker.CodeNotFound, true},
	} {
		topology := cluster.Topology{Shards: []cluster.ShardStatus{{Voters: []string{"a"}}}}
		for i, state := range row.known {
			topology.Nodes = append(topology.Nodes, cluster.NodeStatus{Name: string(rune('a' + i)), State: state})
		}
		asked := false
		begun, err := beginDrain(topology, row.node, func() error {
			asked = true
			return row.answer
		})
		var code tracker.Code
		if refused := (*tracker.Error)(nil); errors.As(err, &refused) {
			code = refused.Code
		}
		if begun.Moves != row.moves || code != row.code || asked != row.asks || (err == nil) != (row.code == "") {
			t.Errorf("%s: %+v, %v, asked %t", row.name, begun, err, asked)
		}
	}
}
