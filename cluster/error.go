package cluster

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Error is what Propose and ReadBarrier fail with.
type Error struct {
	message    string
	notApplied bool
	cause      error
}

// Error says what went wrong.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("cluster: %s: %v", e.message, e.cause)
	}
	return "cluster: " + e.message
}

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// NotApplied tells whether the proposal certainly was not and will not be
// applied. False means that nobody here knows.
func (e *Error) NotApplied() bool { return e.notApplied }

var (
	errNotOwner  = &Error{message: "this node does not own the shard", notApplied: true}
	errFenced    = &Error{message: "the shard has a newer owner", notApplied: true}
	errQueueFull = &Error{message: "too many batches wait for the shard", notApplied: true}
	errTooLarge  = &Error{message: "the batch is larger than an entry may be", notApplied: true}
	errMalformed = &Error{message: "the batch is not a Pebble batch", notApplied: true}
	errNoShard   = &Error{message: "there is no such shard", notApplied: true}
	errDeadline  = &Error{message: "leadership was not confirmed before the deadline", notApplied: true}
	errClosing   = &Error{message: "the node is shutting down", notApplied: true}

	// errReplayed answers an entry that the state machine had applied before. Only
	// entries read back from the log can be such; whoever sees it as the outcome of
	// a proposal of its own must not take it for success.
	errReplayed = &Error{message: "the entry's position was already applied"}
)

// proposalError turns the failure of a Raft future into what the proposer may
// conclude from it.
func proposalError(err error) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress),
		errors.Is(err, raft.ErrEnqueueTimeout):
		// Raft answers these before it appends anything.
		return &Error{message: "this node does not own the shard", notApplied: true, cause: err}
	}
	// Also ErrRaftShutdown: an entry may have been committed and not be applied
	// before the next start.
	return &Error{message: "the outcome is unknown", cause: err}
}
