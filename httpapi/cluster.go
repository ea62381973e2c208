package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cluster/topology"
)

// Cluster shows and changes the cluster for its operator (Decision 51). The node that is
// asked answers from its own knowledge; only Drain, Undrain and Remove need the rest
// of the cluster. The load of a node is asked of that node. Errors for the caller are *tracker.Error: NOT_FOUND for an unknown
// node, CONFLICT with a hint for a refused change, UNAVAILABLE if the cluster can't be
// changed now. All methods return by ctx's deadline. A repeat changes nothing more and
// succeeds again.
type Cluster interface {
	// Topology is the cluster as this node sees it, in a minority too.
	Topology(ctx context.Context) (Topology, error)
	// Load is the load of this node, without the counters of the server. The error is
	// NOT_FOUND if the name is not this node's.
	Load(ctx context.Context, node string) (NodeLoad, error)
	// Elsewhere reports whether a name is that of another node of the cluster.
	Elsewhere(node string) bool
	// WorkspaceOwner says where a workspace is served, whether it is there or not.
	WorkspaceOwner(ctx context.Context, workspace [16]byte) (WorkspaceOwner, error)
	// Drain marks a node as to be emptied and returns at once.
	Drain(ctx context.Context, node string) (DrainStart, error)
	// Undrain takes Drain and Remove back.
	Undrain(ctx context.Context, node string) error
	// Remove takes a node out of the cluster: it marks the node and returns at once.
	// For one that was removed before it returns nil.
	Remove(ctx context.Context, node string) error
}

// The status of the cluster is data that package cluster fills in.
type (
	// NodeStatus is one member.
	NodeStatus = topology.NodeStatus
	// ShardStatus is one shard.
	ShardStatus = topology.ShardStatus
)

// Topology is the cluster as one node sees it.
type Topology struct {
	topology.Topology
	// Backup is there if the node schedules backups.
	Backup *BackupStatus `json:"backup,omitempty"`
}

// BackupStatus is what a node knows of the scheduled backups.
type BackupStatus struct {
	To           string `json:"to"`
	EverySeconds int64  `json:"everySeconds"`
	// LastName, LastAt and AgeSeconds are those of the newest complete backup of the cluster;
	// null: there is none.
	LastName   *string            `json:"lastName"`
	LastAt     *tracker.Timestamp `json:"lastAt"`
	AgeSeconds *int64             `json:"ageSeconds"`
	// Failures are those of this node since its last success, and Error is the last one's.
	Failures int     `json:"failures"`
	Error    *string `json:"error"`
	// Log is there if the node archives logs.
	Log *BackupLogStatus `json:"log,omitempty"`
}

// BackupLogStatus is what a node knows of the archived logs.
type BackupLogStatus struct {
	EverySeconds int64 `json:"everySeconds"`
	// ReachesAt is the moment up to which the logs of all shards are archived, and AgeSeconds its age;
	// null: no log is archived.
	ReachesAt  *tracker.Timestamp `json:"reachesAt"`
	AgeSeconds *int64             `json:"ageSeconds"`
	// Gaps are the shards that can't be restored to a moment behind the newest backup.
	Gaps []int `json:"gaps"`
	// Failures are those of this node since its last success, and Error is the last one's.
	Failures int     `json:"failures"`
	Error    *string `json:"error"`
}

// WorkspaceOwner says where a workspace is served.
type WorkspaceOwner struct {
	Shard int    `json:"shard"`
	Owner string `json:"owner"` // a node's name; empty when none is known
}

// The values of DrainStart.Moves.
const (
	// DrainsReplicas: the other nodes are enough to take over every replica.
	DrainsReplicas = "replicas"
	// DrainsLeaderships: they are not, so the node keeps its replicas and leads
	// nothing (Decision 53).
	DrainsLeaderships = "leaderships"
)

// DrainStart is the answer to a drain.
type DrainStart struct {
	Node  string `json:"node"`
	Moves string `json:"moves" enum:"replicas,leaderships"`
}

// nodeIn names a node in the path.
type nodeIn struct {
	Name string `path:"name" rules:"min=1,max=255"`
}

// The operator's operations concern the service and not its data, so no engine runs
// them: the node that is asked does. Like other operations they are admitted by the
// engine, bound, limited in time and described. They take no Idempotency-Key: repeating
// one is harmless, and there is no workspace that could keep the answer.
var (
	opTopology       = localOp[tracker.None, Topology]("ClusterTopology", "Show nodes and shards", tracker.Query)
	opWorkspaceOwner = localOp[tracker.None, WorkspaceOwner]("WorkspaceOwner", "Find the node that serves a workspace", tracker.Query)
	opDrainNode      = localOp[nodeIn, DrainStart]("DrainNode", "Move work off a node", tracker.Workflow, tracker.Refuses(tracker.CodeConflict), tracker.Audits("node"))
	opUndrainNode    = localOp[nodeIn, tracker.None]("UndrainNode", "Let a drained or removed node take work again", tracker.Workflow, tracker.Audits("node"))
	opRemoveNode     = localOp[nodeIn, tracker.None]("RemoveNode", "Remove a node from the cluster", tracker.Workflow, tracker.Refuses(tracker.CodeConflict), tracker.Audits("node"))
)

func localOp[In, Out any](name, summary string, kind tracker.Kind, options ...tracker.Option) *tracker.Op {
	switch kind {
	case tracker.Query:
		return tracker.NewQuery[In, Out](name, summary, tracker.Needs{Level: tracker.Operator}, nil, options...)
	default:
		return tracker.NewWorkflow[In, Out](name, summary, tracker.Needs{Level: tracker.Operator}, nil, options...)
	}
}

// localRun answers an operation on the node that was asked.
type localRun func(ctx context.Context, req *tracker.Request, in any) (outcome tracker.Outcome, body any, err error)

// localRuns are the operations that this node answers by itself; none without a
// Cluster.
func (s *Server) localRuns() map[*tracker.Op]localRun {
	c := s.cfg.Cluster
	if c == nil {
		return nil
	}
	return map[*tracker.Op]localRun{
		opTopology: func(ctx context.Context, _ *tracker.Request, _ any) (tracker.Outcome, any, error) {
			t, err := c.Topology(ctx)
			return tracker.Done, t, err
		},
		opNodeLoad: s.loadRun(c),
		opWorkspaceOwner: func(ctx context.Context, req *tracker.Request, _ any) (tracker.Outcome, any, error) {
			o, err := c.WorkspaceOwner(ctx, req.Workspace)
			return tracker.Done, o, err
		},
		opDrainNode: func(ctx context.Context, _ *tracker.Request, in any) (tracker.Outcome, any, error) {
			d, err := c.Drain(ctx, in.(*nodeIn).Name)
			return tracker.Done, d, err
		},
		opUndrainNode: func(ctx context.Context, _ *tracker.Request, in any) (tracker.Outcome, any, error) {
			return tracker.NoContent, nil, c.Undrain(ctx, in.(*nodeIn).Name)
		},
		opRemoveNode: func(ctx context.Context, _ *tracker.Request, in any) (tracker.Outcome, any, error) {
			return tracker.NoContent, nil, c.Remove(ctx, in.(*nodeIn).Name)
		},
	}
}

// isLocal reports whether the API's operation is one of those above.
func isLocal(op *tracker.Op) bool {
	switch op {
	case opTopology, opNodeLoad, opWorkspaceOwner, opDrainNode, opUndrainNode, opRemoveNode:
		return true
	}
	return false
}

// runHere runs an operation of a session of the console, or of the operator.
func (s *Server) runHere(x *exchange, req *tracker.Request, in any) error {
	if run := x.route.console; run != nil {
		return run(x, req, in)
	}
	return s.runLocal(x, req, in)
}

// runLocal runs an operation on this node and answers with its result.
func (s *Server) runLocal(x *exchange, req *tracker.Request, in any) error {
	deadline, act := req.Deadline, nodeActs[x.route.Op]
	if act != "" {
		deadline = deadline.Add(-time.Until(deadline) / auditPart)
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	outcome, body, err := x.route.local(ctx, req, in)
	if errors.Is(err, context.DeadlineExceeded) {
		err = tracker.OutcomeUnknown("The cluster did not answer in time.")
		if x.route.Op.Kind == tracker.Query {
			err = tracker.NotApplied("The node could not answer in time.")
		}
	}
	if act != "" {
		if told := (*tracker.Error)(nil); outcomeIsUnknown(err) && errors.As(err, &told) {
			told.Hint = "The change may have been made. GET /cluster and `switchyard cluster status` show it; a repeat does nothing more."
		}
		err = s.recordAct(req, act, in.(*nodeIn).Name, err)
	}
	if err != nil {
		return err
	}
	reply := tracker.Reply{Outcome: outcome}
	if body != nil {
		if reply.Body, err = encode(body); err != nil {
			return fmt.Errorf("operation %s: %w", x.route.Op.Name, err)
		}
	}
	return s.respond(x, &reply)
}
