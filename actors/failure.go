package actors

import (
	"errors"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// errNotServed is the error for workspaces that this node doesn't serve now.
func errNotServed() error {
	return tracker.Moved("This node does not serve the workspace at the moment.")
}

// errInFlight is the error for changes that were being replicated when the workspace stopped on this
// node.
func errInFlight() error {
	return tracker.OutcomeUnknown("The change was being committed when the workspace stopped on this node.")
}

// errClosing is the error for requests that arrive while the node stops.
func errClosing() error { return tracker.Moved("This node is stopping.") }

// hasSpace reports whether an operation may run on a disk with so little space.
// Operations that free space first need some, so they are refused below a limit.
func hasSpace(short storage.Shortage, op *tracker.Op, operator bool) bool {
	switch short {
	case storage.Ample:
		return true
	case storage.Short:
		return operator || op.Space == tracker.FreesSpace || op.Space == tracker.EndsWorkspace
	case storage.Scarce:
		return operator || op.Space == tracker.EndsWorkspace
	}
	return false
}

// shortage returns how little space there is for changes of a shard: on this node's disk, or on those of the
// shard's voters, without whose room no change is committed.
func (e *Engine) shortage(shard storage.Shard) storage.Shortage {
	if !e.replicator.HasRoom(shard) {
		return storage.Spent
	}
	return e.cfg.Shortage()
}

// errDiskFull is the error for changes while the disk has no space for them.
func errDiskFull() error {
	err := tracker.NotApplied("The node's disk is full: changes are refused until there is space again.")
	err.RetryAfter = 5 * time.Second
	return err
}

// internal returns the error for a failure that was logged; it reveals nothing about
// it.
func internal() error {
	return &tracker.Error{
		Code:    tracker.CodeInternal,
		Message: "The service failed to carry out the request.",
		Hint:    "Report the request id to the operator if it happens again.",
	}
}

// certainlyNotApplied reports whether a replicator's error rules out that the batch was
// or will be applied.
func certainlyNotApplied(err error) bool {
	var e interface{ NotApplied() bool }
	return errors.As(err, &e) && e.NotApplied()
}

// outcome returns the outcome of an UNAVAILABLE error, "not_applied" or "unknown", or
// "" for other errors.
func outcome(err error) string {
	var e *tracker.Error
	if !errors.As(err, &e) || e.Code != tracker.CodeUnavailable {
		return ""
	}
	details, _ := e.Details.(tracker.OutcomeDetails)
	return details.Outcome
}

// unknownAfter returns the error for a request that had changed something when refusal ended it.
func unknownAfter(refusal *tracker.Error, message string) *tracker.Error {
	err := tracker.OutcomeUnknown(message)
	err.ReadOnly = refusal.ReadOnly
	return err
}

// refusedReadOnly reports whether a read-only mode has refused an operation or one of its steps.
func refusedReadOnly(err error) bool {
	var e *tracker.Error
	return errors.As(err, &e) && e.ReadOnly != ""
}

// clientError returns the error for the caller of an operation. It logs a panic, with its
// stack, and replaces it by INTERNAL; the receiver logs any other error. It tells the replicator of
// damage.
func (e *Engine) clientError(req *tracker.Request, op *tracker.Op, err error) error {
	var p *tracker.PanicError
	if !errors.As(err, &p) {
		if storage.IsDamage(err) {
			e.replicator.Damaged(e.shardOf(target(req, op)).number, err)
		}
		return err
	}
	e.stats.panics.Add(1)
	e.log.Error("operation panicked", "operation", op.Name, "request", req.ID, "workspace", req.Workspace.String(), "panic", p.Value, "stack", string(p.Stack))
	return internal()
}
