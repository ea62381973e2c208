package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// The read-only mode of the service is decided in the directory, whose row counts. Then it
// is copied to every shard, as one command each, so that each owner finds it in its own
// state, also after a restart or a fail-over. An answer is given when all shards have the
// copy. A timer makes the copies that a crash or a shard without an owner has prevented.

// GetReadOnly, PutReadOnly and DeleteReadOnly show and set the read-only mode of the service.
var (
	GetReadOnly = NewWorkflow[None, ReadOnlyOut]("ReadOnly", "Show the read-only mode of the service", Needs{Level: Operator}, func(f Flow, _ *None) (Reply, error) {
		state, err := ask[readOnlyState](f, storage.DirectoryID, serviceReadOnlyOp, &None{})
		if err != nil {
			return Reply{}, err
		}
		return jsonReply(Done, state.shown())
	})

	PutReadOnly = NewWorkflow[ReadOnlyIn, ReadOnlyOut]("PutReadOnly", "Make the service read-only", Needs{Level: Operator}, func(f Flow, in *ReadOnlyIn) (Reply, error) {
		return decideReadOnly(f, putReadOnlyOp, in)
	}, Audits(auditCluster))

	DeleteReadOnly = NewWorkflow[None, None]("DeleteReadOnly", "End the read-only mode of the service", Needs{Level: Operator}, func(f Flow, in *None) (Reply, error) {
		return decideReadOnly(f, deleteReadOnlyOp, in)
	}, WithSpaceEffect(FreesSpace), Audits(auditCluster))
)

// decideReadOnly decides the mode in the directory, and copies it to the shards.
func decideReadOnly(f Flow, decide *Op, in any) (Reply, error) {
	permit, err := permitOperator(f)
	if err != nil {
		return Reply{}, err
	}
	reply, err := f.CommandAs(permit, f.Request().Caller, storage.DirectoryID, decide, in)
	if err != nil {
		return Reply{}, err
	}
	return reply, copyReadOnly(f, permit)
}

var serviceReadOnlyOp = NewQuery[None, readOnlyState]("ServiceReadOnly", "Read the read-only mode of the service", Needs{}, func(v *View, _ *None) (Reply, error) {
	row, err := readOnlyRows.Get(v, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the read-only mode: %w", err)
	}
	if row == nil {
		return jsonReply(Done, readOnlyState{})
	}
	return jsonReply(Done, row.Value)
}, InDirectory)

var putReadOnlyOp = NewCommand[ReadOnlyIn, ReadOnlyOut]("DecideReadOnly", "Decide that the service is read-only", Needs{}, func(tx *Tx, in *ReadOnlyIn) (Reply, error) {
	mode := ReadOnly{Reason: in.Reason, CreatedAt: At(tx.now)}
	if err := tx.decideReadOnly(mode); err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, ReadOnlyOut{&mode})
}, InDirectory, Audits(auditCluster))

var deleteReadOnlyOp = NewCommand[None, None]("DecideReadWrite", "Decide that the service is not read-only", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
	return Reply{Outcome: NoContent}, tx.decideReadOnly(ReadOnly{})
}, InDirectory, WithSpaceEffect(FreesSpace), Audits(auditCluster))

const (
	timerCopyReadOnly = "copy.readOnly"
	// copyReadOnlyAfter is the time left to the request that decides to make all copies.
	copyReadOnlyAfter = 15 * time.Second
)

// RunsReadOnly reports whether timers of a kind run in read-only mode.
func RunsReadOnly(kind string) bool { return kind == timerCopyReadOnly }

// decideReadOnly stores the mode of the service, and sets the timer that copies it.
func (tx *Tx) decideReadOnly(mode ReadOnly) error {
	before, err := readOnlyRows.Get(tx, nil)
	if err != nil {
		return fmt.Errorf("read the read-only mode: %w", err)
	}
	state := readOnlyState{ReadOnly: mode, Version: 1}
	if before != nil {
		state.Version = before.Value.Version + 1
	}
	if _, err := tx.setReadOnly(&state); err != nil {
		return err
	}
	if mode.Reason != "" || before != nil && before.Value.Reason != "" {
		if err := tx.auditReadOnly(auditCluster, "service", before, &state); err != nil {
			return err
		}
	}
	return tx.SetTimer(timerCopyReadOnly, "", tx.now.Add(copyReadOnlyAfter))
}

// copyReadOnly copies the mode from the directory to every shard. It goes on after a shard
// that can't be written now.
func copyReadOnly(f Flow, permit Permit) error {
	state, err := ask[readOnlyState](f, storage.DirectoryID, serviceReadOnlyOp, &None{})
	if err != nil {
		return err
	}
	var failed error
	for n := range f.Shards() {
		if _, err := f.Command(permit, storage.ServiceID(storage.Shard(n+1)), copyReadOnlyOp, &state); err != nil && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return failed
	}
	_, err = f.Command(permit, storage.DirectoryID, copiedReadOnlyOp, &copiedReadOnly{state.Version})
	return err
}

// copyReadOnlyOp stores a shard's copy, unless it has a newer one.
var copyReadOnlyOp = NewCommand[readOnlyState, None]("CopyReadOnly", "Tell a shard of the service's read-only mode", Needs{}, func(tx *Tx, in *readOnlyState) (Reply, error) {
	row, err := readOnlyRows.Get(tx, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the read-only mode: %w", err)
	}
	if row != nil && row.Value.Version >= in.Version {
		return Reply{Outcome: NoContent}, nil
	}
	_, err = tx.setReadOnly(in)
	return Reply{Outcome: NoContent}, err
}, WithSpaceEffect(FreesSpace))

// copiedReadOnly is the version that all shards have.
type copiedReadOnly struct {
	Version uint64 `json:"version"`
}

// copiedReadOnlyOp clears the timer once all shards have the newest version.
var copiedReadOnlyOp = NewCommand[copiedReadOnly, None]("CopiedReadOnly", "Note that all shards know the read-only mode", Needs{}, func(tx *Tx, in *copiedReadOnly) (Reply, error) {
	row, err := readOnlyRows.Get(tx, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the read-only mode: %w", err)
	}
	if row != nil && row.Value.Version != in.Version {
		return Reply{Outcome: NoContent}, nil
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(timerCopyReadOnly, "")
}, InDirectory, WithSpaceEffect(FreesSpace))

// recopyReadOnlyOp makes the copies that the request did not.
var recopyReadOnlyOp = NewWorkflow[TimerIn, None]("RecopyReadOnly", "Tell the shards of the service's read-only mode", Needs{}, func(f Flow, _ *TimerIn) (Reply, error) {
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, copyReadOnly(f, permit)
}, WithSpaceEffect(FreesSpace))
