package cluster

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Error is the error of Propose, ReadBarrier and Call, and of changes of the cluster that could not be asked for.
type Error struct {
	message    string
	notApplied bool
	cause      error
}

// Error returns the message with its cause.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("cluster: %s: %v", e.message, e.cause)
	}
	return "cluster: " + e.message
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// NotApplied reports whether the proposal was certainly not applied and never will be. False means
// that the outcome is unknown.
func (e *Error) NotApplied() bool { return e.notApplied }

var (
	errNotOwner  = &Error{message: "this node does not own the shard", notApplied: true}
	errFenced    = &Error{message: "the shard has a newer owner", notApplied: true}
	errQueueFull = &Error{message: "too many batches wait for the shard", notApplied: true}
	// errVotersFull is returned while too few of a shard's voters have room for changes and follow.
	errVotersFull = &Error{message: "the disks of too many of the shard's voters have no room for changes", notApplied: true}

	errTooLarge  = &Error{message: "the batch is too large for an entry", notApplied: true}
	errMalformed = &Error{message: "the batch is not a Pebble batch", notApplied: true}
	errNoShard   = &Error{message: "there is no such shard", notApplied: true}
	errDeadline  = &Error{message: "leadership was not confirmed before the deadline", notApplied: true}
	errClosing   = &Error{message: "the node is shutting down", notApplied: true}

	// errReplayed is the result of an entry that the state machine has applied before. Only entries
	// read back from the log can have it; a proposer that gets it must not take it for success.
	errReplayed = &Error{message: "the entry's position was already applied"}
)

// proposalError turns the failure of a Raft future into the error for the proposer.
func proposalError(err error) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress),
		errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, errEntryFormat):
		// Raft returns these before it appends anything.
		return &Error{message: "this node does not own the shard", notApplied: true, cause: err}
	}
	// This includes ErrRaftShutdown: an entry may have been committed and be applied after the next
	// start.
	return &Error{message: "the outcome is unknown", cause: err}
}
