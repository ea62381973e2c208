package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/httpapi"
	"switchyard/storage"
)

// operator is the node's side of httpapi.Cluster.
type operator struct{ n *Node }

// Topology implements httpapi.Cluster.
func (o operator) Topology(ctx context.Context) (httpapi.Topology, error) {
	if !o.n.serving.Load() {
		return httpapi.Topology{}, errWaiting()
	}
	return httpapi.Topology{Topology: o.n.groups.Topology(ctx), Backup: o.n.schedule.wire(time.Now())}, nil
}

// WorkspaceOwner implements httpapi.Cluster.
func (o operator) WorkspaceOwner(_ context.Context, workspace [16]byte) (httpapi.WorkspaceOwner, error) {
	if !o.n.serving.Load() {
		return httpapi.WorkspaceOwner{}, errWaiting()
	}
	shard := storage.ShardOf(storage.ID(workspace), o.n.groups.Shards())
	owner, _, _ := o.n.groups.ShardOwner(shard)
	return httpapi.WorkspaceOwner{Shard: int(shard), Owner: owner}, nil
}

// Drain implements httpapi.Cluster.
func (o operator) Drain(ctx context.Context, name string) (httpapi.DrainStart, error) {
	if !o.n.serving.Load() {
		return httpapi.DrainStart{}, errWaiting()
	}
	return beginDrain(o.n.groups.Topology(ctx), name, func() error { return o.n.groups.Drain(ctx, name) })
}

// beginDrain asks the directory's owner to drain a node. The owner decides whether there is such a node: the
// topology that this node knows may be older than a join.
func beginDrain(t cluster.Topology, name string, ask func() error) (httpapi.DrainStart, error) {
	moves, ok := drains(t, name)
	switch {
	case ok:
	case member(t, name):
		return httpapi.DrainStart{}, tracker.Conflict(
			fmt.Sprintf("No other node could take over the shards of %q.", name),
			"Add a node that is alive and not draining, then drain this one.")
	default: // a new node, and none that could take over its replicas
		moves = httpapi.DrainsLeaderships
	}
	if err := ask(); err != nil {
		return httpapi.DrainStart{}, operatorError(err, name)
	}
	return httpapi.DrainStart{Node: name, Moves: moves}, nil
}

// Undrain implements httpapi.Cluster.
func (o operator) Undrain(ctx context.Context, name string) error {
	if !o.n.serving.Load() {
		return errWaiting()
	}
	return operatorError(o.n.groups.Undrain(ctx, name), name)
}

// Remove implements httpapi.Cluster.
func (o operator) Remove(ctx context.Context, name string) error {
	if !o.n.serving.Load() {
		return errWaiting()
	}
	return remove(o.n.groups.Topology(ctx), name, func() error { return o.n.groups.Remove(ctx, name) })
}

// remove asks the directory's owner to remove a node. The owner looks for another node that could serve again: of
// two removals at the same moment, neither is in the topology that the other one's node knows.
func remove(t cluster.Topology, name string, ask func() error) error {
	for _, n := range t.Nodes {
		if n.Name != name || n.Removed { // one that is removed already loses nothing
			continue
		}
		if _, ok := drains(t, name); !ok {
			return tracker.Conflict(
				fmt.Sprintf("%q is the only node that could serve.", name),
				"Add a node that is alive and not draining before you remove this one.")
		}
	}
	return operatorError(ask(), name)
}

// operatorError turns an error of the cluster into the operator's.
func operatorError(err error, node string) error {
	var refused *cluster.RefusedError
	var unmade *cluster.Error
	switch {
	case err == nil, errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, cluster.ErrUnknownNode):
		return errNoNode(node)
	case errors.As(err, &refused):
		return tracker.Conflict(refused.Message, "See GET /cluster for how the cluster stands.")
	case errors.As(err, &unmade) && unmade.NotApplied():
		return tracker.NotApplied("The change was not made: " + err.Error())
	}
	return tracker.OutcomeUnknown("The change was not confirmed: " + err.Error())
}

// drains returns what a drain would move off a node, replicas or leaderships; false if
// there is no other node that could take anything.
func drains(t cluster.Topology, name string) (moves string, ok bool) {
	others := 0
	for _, n := range t.Nodes {
		if n.Name != name && !n.Removed && (n.State == cluster.NodeAlive || n.State == cluster.NodeSuspect) {
			others++
		}
	}
	replicas := 0
	for _, s := range t.Shards {
		replicas = max(replicas, len(s.Voters))
	}
	nodes := len(t.Nodes)
	if !member(t, name) {
		nodes++ // it has just joined
	}
	if nodes >= 3 {
		replicas = max(replicas, 3) // each shard is about to have as many (Decision 53)
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

func errWaiting() error { return tracker.NotApplied("The node has not joined its cluster yet.") }
