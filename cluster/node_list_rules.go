package cluster

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of the registry.
const (
	maxNodes    = 1000
	keptRemoved = 100 // removed nodes remembered; older ones count as unknown when they return
)

// permanentError is a refusal that does not change when the request is repeated: an operator has to
// act. Its text says how.
type permanentError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Reasons of refusals. They are part of the protocol.
const (
	refusedCluster = "other_cluster"
	refusedName    = "name_taken"
	refusedRemoved = "removed"
	refusedUnknown = "unknown_node"
	refusedShards  = "other_shards"
	refusedFull    = "too_many_nodes"
	refusedKey     = "other_gossip_key"
)

// Error returns the text for the operator.
func (d *permanentError) Error() string { return d.Message }

func permanent(reason, format string, args ...any) error {
	return &permanentError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ruleInput holds facts that the rules use beside the registry. The functions may be nil.
type ruleInput struct {
	isReachable   func(node string) bool // the node answers now
	isGroupMember func(node string) bool // the node is still a member of some shard's group
	now           time.Time
}

// join adds a node with empty data.
func (r *nodeList) join(rec record, input ruleInput) error {
	old, known := r.node(rec.Name)
	switch {
	case !known:
		if len(r.members()) >= maxNodes {
			return permanent(refusedFull, "the cluster has %d nodes, the most there may be", maxNodes)
		}
	case old.Instance == rec.Instance:
		return r.register(rec)
	case old.Removed:
		// The groups know their members by name. An empty node under the name of an earlier voter
		// would vote without knowing the votes that the earlier one has given.
		if input.isGroupMember != nil && input.isGroupMember(rec.Name) {
			return fmt.Errorf("the shards of the removed node %q are still being replaced; its name is free when that is done", rec.Name)
		}
	case input.isReachable != nil && input.isReachable(rec.Name):
		return permanent(refusedName, "a node named %q already runs in the cluster, at %s: give this one a name of its own with --node-name", rec.Name, old.Peer)
	default:
		return permanent(refusedName, "the cluster has a node named %q with other data (instance %s): if its data directory was lost or wiped, run 'switchyard cluster remove %s' and start this node again; "+
			"otherwise start it on its old data directory, or give it another --node-name", rec.Name, old.Instance, rec.Name)
	}
	rec.FirstSeen = input.now.UTC().Round(0)
	r.addMember(rec)
	return nil
}

// addMember stores a record without any checks.
func (r *nodeList) addMember(rec record) {
	rec.Draining, rec.Removed = false, false
	r.put(rec)
	r.HadThree = r.HadThree || len(r.members()) >= 3
}

// register updates a member's own data.
func (r *nodeList) register(rec record) error {
	old, known := r.node(rec.Name)
	switch {
	case !known:
		return permanent(refusedUnknown, "the cluster has no node named %q any more: to add this machine again, start it with an empty data directory", rec.Name)
	case old.Instance != rec.Instance:
		return permanent(refusedName, "the name %q belongs to another node of the cluster (instance %s, this one is %s): "+
			"start this machine with an empty data directory and another --node-name", rec.Name, old.Instance, rec.Instance)
	case old.Removed:
		return permanent(refusedRemoved, "node %q was removed from the cluster and its replicas were replaced: to add this machine again, start it with an empty data directory", rec.Name)
	}
	rec.Draining, rec.Removed, rec.FirstSeen = old.Draining, old.Removed, old.FirstSeen
	r.put(rec)
	return nil
}

func (r *nodeList) member(name string) (record, error) {
	rec, ok := r.node(name)
	if !ok || rec.Removed {
		return record{}, &unknownNodeError{name}
	}
	return rec, nil
}

// setDraining starts or ends the drain of a member.
func (r *nodeList) setDraining(name string, draining bool) error {
	rec, err := r.member(name)
	if err != nil {
		return err
	}
	rec.Draining = draining
	r.put(rec)
	return nil
}

// remove removes a member for good: its instance is never admitted again.
func (r *nodeList) remove(name string) error {
	rec, err := r.member(name)
	if err != nil {
		return err
	}
	rec.Removed, rec.Draining = true, false
	r.put(rec)
	for removed := len(r.Nodes) - len(r.members()); removed > keptRemoved; removed-- {
		r.forgetOldestRemoved()
	}
	return nil
}

// forgetOldestRemoved drops the removed node with the oldest record.
func (r *nodeList) forgetOldestRemoved() {
	oldest := -1
	for i, rec := range r.Nodes {
		if rec.Removed && (oldest < 0 || rec.FirstSeen.Before(r.Nodes[oldest].FirstSeen)) {
			oldest = i
		}
	}
	r.Nodes = slices.Delete(r.Nodes, oldest, oldest+1)
}

// unknownNodeError is the answer to a change of a node that is not a member.
type unknownNodeError struct{ name string }

// Error names the node.
func (e *unknownNodeError) Error() string {
	return fmt.Sprintf("the cluster has no node named %q", e.name)
}
