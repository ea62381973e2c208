package membership

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of the registry.
const (
	MaxNodes    = 1000
	keptRemoved = 100 // removed nodes remembered; older ones count as unknown when they return
)

// PermanentError is a refusal that does not change when the request is repeated: an operator has to
// act. Its text says how.
type PermanentError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Reasons of refusals. They are part of the protocol.
const (
	ReasonOtherCluster   = "other_cluster"
	ReasonNameTaken      = "name_taken"
	ReasonRemoved        = "removed"
	ReasonUnknownNode    = "unknown_node"
	ReasonOtherShards    = "other_shards"
	ReasonTooManyNodes   = "too_many_nodes"
	ReasonOtherGossipKey = "other_gossip_key"
	ReasonFormat         = "format"
	ReasonLastNode       = "last_node"
)

// Error returns the text for the operator.
func (d *PermanentError) Error() string { return d.Message }

// Permanent returns a *PermanentError.
func Permanent(reason, format string, args ...any) error {
	return &PermanentError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// RuleInput holds facts that the rules use beside the registry.
type RuleInput struct {
	IsReachable func(node string) bool // the node answers now; may be nil
	IsDown      func(node string) bool // the node left or is dead; may be nil
	Now         time.Time
}

// Join adds a node with empty data.
func (r *List) Join(rec Record, input RuleInput) error {
	old, known := r.Node(rec.Name)
	switch {
	case !known:
		if len(r.Members()) >= MaxNodes {
			return Permanent(ReasonTooManyNodes, "the cluster has %d nodes, the most there may be", MaxNodes)
		}
	case old.Instance == rec.Instance:
		return r.Register(rec)
	case old.Removed:
		// The groups know their members by name. An empty node under the name of an earlier voter
		// would vote without knowing the votes that the earlier one has given.
		if !old.Released {
			return fmt.Errorf("the removed node %q may still be a voter of some shard: its name is free when every shard's leader reports that it is none", rec.Name)
		}
	// A node that ended a moment ago may still count as reachable. It doesn't run where the new one does.
	case rec.Peer != old.Peer && input.IsReachable != nil && input.IsReachable(rec.Name):
		return Permanent(ReasonNameTaken, "a node named %q already runs in the cluster, at %s: give this one a name of its own with --node-name", rec.Name, old.Peer)
	default:
		return Permanent(ReasonNameTaken, "the cluster has a node named %q with other data (instance %s): if its data directory was lost or wiped, run 'switchyard cluster remove %s' and start this node again; "+
			"otherwise start it on its old data directory, or give it another --node-name", rec.Name, old.Instance, rec.Name)
	}
	if err := r.checkFormat(&rec); err != nil {
		return err
	}
	rec.FirstSeen = input.Now.UTC().Round(0)
	r.Add(rec)
	return nil
}

// Add stores a record without any checks.
func (r *List) Add(rec Record) {
	rec.Draining, rec.Removed, rec.Released = false, false, false
	r.put(rec)
	r.HadThree = r.HadThree || len(r.Members()) >= 3
}

// Register updates the data of a member, or of a removed node that is not released.
func (r *List) Register(rec Record) error {
	old, known := r.Node(rec.Name)
	switch {
	case !known:
		return Permanent(ReasonUnknownNode, "the cluster has no node named %q any more: to add this machine again, start it with an empty data directory", rec.Name)
	case old.Instance != rec.Instance:
		return Permanent(ReasonNameTaken, "the name %q belongs to another node of the cluster (instance %s, this one is %s): "+
			"start this machine with an empty data directory and another --node-name", rec.Name, old.Instance, rec.Instance)
	case old.Released:
		return Permanent(ReasonRemoved, "node %q was removed from the cluster and its replicas were replaced: to add this machine again, start it with an empty data directory", rec.Name)
	}
	if err := r.checkFormat(&rec); err != nil {
		return err
	}
	rec.Draining, rec.Removed, rec.Released, rec.FirstSeen = old.Draining, old.Removed, old.Released, old.FirstSeen
	r.put(rec)
	return nil
}

// Refuses reports whether a node's requests are to be refused: it is no peer. Known is the version of
// the newest list that the node has. One with a newer list than this may have joined since. Versions of
// the program that say no version send 0.
func (r *List) Refuses(name, instance string, known uint64) bool {
	if known > r.Version {
		return false
	}
	rec, ok := r.Node(name)
	if !ok {
		return known > 0 // its own list had it, and this one has forgotten it
	}
	return rec.Released || rec.Instance != instance
}

func (r *List) member(name string) (Record, error) {
	rec, ok := r.Node(name)
	if !ok || rec.Removed {
		return Record{}, &UnknownNodeError{name}
	}
	return rec, nil
}

// Drain starts the drain of a member. The last node that could serve is refused.
func (r *List) Drain(name string, input RuleInput) error {
	rec, err := r.member(name)
	if err != nil {
		return err
	}
	if !r.anotherServes(name, input) {
		return Permanent(ReasonLastNode, "no other node could take over the shards of %q: add a node that is alive and not draining, then drain this one", name)
	}
	rec.Draining = true
	r.put(rec)
	return nil
}

// Undrain ends the drain of a member, and takes the removal of a node back. Its data directory
// knows the votes that the node has given, so the node may have replicas again.
func (r *List) Undrain(name string) error {
	rec, ok := r.Node(name)
	if !ok {
		return &UnknownNodeError{name}
	}
	r.Add(rec)
	return nil
}

// Release records that no group counts a removed node.
func (r *List) Release(name string) {
	if rec, ok := r.Node(name); ok && rec.Removed {
		rec.Released = true
		r.put(rec)
	}
	for released := len(r.Nodes) - len(r.Peers()); released > keptRemoved; released-- {
		r.forgetOldestReleased()
	}
}

// Remove removes a member: it is to have no replicas. The last node that could serve is refused.
func (r *List) Remove(name string, input RuleInput) error {
	rec, err := r.member(name)
	if err != nil {
		return err
	}
	if !r.anotherServes(name, input) {
		return Permanent(ReasonLastNode, "%q is the only node that could serve: add a node that is alive and not draining before you remove this one", name)
	}
	rec.Removed, rec.Draining = true, false
	r.put(rec)
	return nil
}

// anotherServes reports whether a node other than the named one may have replicas: a member that is not draining and
// not down.
func (r *List) anotherServes(name string, input RuleInput) bool {
	return slices.ContainsFunc(r.Nodes, func(rec Record) bool {
		return rec.Name != name && !rec.Removed && !rec.Draining && (input.IsDown == nil || !input.IsDown(rec.Name))
	})
}

// forgetOldestReleased drops the released node with the oldest record.
func (r *List) forgetOldestReleased() {
	oldest := -1
	for i, rec := range r.Nodes {
		if rec.Released && (oldest < 0 || rec.FirstSeen.Before(r.Nodes[oldest].FirstSeen)) {
			oldest = i
		}
	}
	r.Nodes = slices.Delete(r.Nodes, oldest, oldest+1)
}

// UnknownNodeError is the answer to a change of a node that is not a member.
type UnknownNodeError struct{ name string }

// Error names the node.
func (e *UnknownNodeError) Error() string {
	return fmt.Sprintf("the cluster has no node named %q", e.name)
}
