package actors

import (
	"errors"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// errNotServed answers requests for workspaces that this node doesn't serve now.
func errNotServed() error {
	return tracker.Moved("This node does not serve the workspace at the moment.")
}

// errClosing answers requests that come while the node stops.
func errClosing() error { return tracker.Moved("This node is stopping.") }

// hasSpace reports whether an operation may be carried out on a disk with so little
// space. What frees space takes some first, so it needs more than there may be.
func hasSpace(short storage.Shortage, op *tracker.Op, operator bool) bool {
	switch short {
	case storage.Ample:
		return true
	case storage.Short:
		return operator || op.Room == tracker.Frees || op.Room == tracker.Ends
	case storage.Scarce:
		return operator || op.Room == tracker.Ends
	}
	return false
}

// errDiskFull answers changes while the disk has no space for them.
func errDiskFull() error {
	err := tracker.NotApplied("The node's disk is full: it takes no changes until there is space again.")
	err.RetryAfter = 5 * time.Second
	return err
}

// internal is what a caller is told about a failure that was logged.
func internal() error {
	return &tracker.Error{
		Code:    tracker.CodeInternal,
		Message: "The service failed to carry out the request.",
		Hint:    "Report the request id to the operator if it happens again.",
	}
}

// certainlyNotApplied tells whether a replicator's error rules out that the batch
// was or will be applied.
func certainlyNotApplied(err error) bool {
	var e interface{ NotApplied() bool }
	return errors.As(err, &e) && e.NotApplied()
}

// outcome gives what an UNAVAILABLE error says about the request: "not_applied",
// "unknown", or nothing for other errors.
func outcome(err error) string {
	var e *tracker.Error
	if !errors.As(err, &e) || e.Code != tracker.CodeUnavailable {
		return ""
	}
	details, _ := e.Details.(tracker.OutcomeDetails)
	return details.Outcome
}

// told turns the error of an operation into what its caller gets: a panic is
// logged here, with its stack, and answered as INTERNAL; everything else is the
// receiver's to log.
func (e *Engine) told(req *tracker.Request, op *tracker.Op, err error) error {
	var p *tracker.PanicError
	if !errors.As(err, &p) {
		return err
	}
	e.stats.panics.Add(1)
	e.log.Error("operation panicked", "operation", op.Name, "request", req.ID, "workspace", req.Workspace.String(), "panic", p.Value, "stack", string(p.Stack))
	return internal()
}
