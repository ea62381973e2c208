package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// maxCheckpoint limits a session's checkpoint in bytes.
const maxCheckpoint = 256 << 10

// PutCheckpointIn is what an agent wants to find when it, or another one, goes on with the
// session.
type PutCheckpointIn struct {
	ID    SessionID `path:"id"`
	Value []byte    `raw:"value"`
}

// PutCheckpoint stores a session's checkpoint in place of the one before (Decision 65).
// It has a row of its own, so that a heartbeat does not write it again.
var PutCheckpoint = NewCommand[PutCheckpointIn, None]("PutCheckpoint", "Store a session's checkpoint", Needs{Write, "sessions"}, putCheckpoint, ForLanes, BodyUpTo(maxCheckpoint))

func putCheckpoint(tx *Tx, in *PutCheckpointIn) (Reply, error) {
	row, err := tx.session(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("session")
	}
	s := &row.Value
	// The lane of a registered session is its holder's, though there is no lease.
	if tx.Caller.Lane == nil || s.Status.Ended() {
		if err := tx.requireHolder(s); err != nil {
			return Reply{}, err
		}
	}
	id := s.id()
	if err := tx.Writer().SetValue(checkpointTable, id[:], in.Value); err != nil {
		return Reply{}, fmt.Errorf("store a checkpoint: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
}

// CheckpointIn identifies the session whose checkpoint is to be read.
type CheckpointIn struct {
	ID SessionID `path:"id"`
}

// SessionCheckpoint reads a session's checkpoint.
var SessionCheckpoint = NewQuery[CheckpointIn, json.RawMessage]("SessionCheckpoint", "Read a session's checkpoint", Needs{Read, "sessions"}, sessionCheckpoint, FromSnapshot, ForLanes, Refuses(CodeConflict))

func sessionCheckpoint(v *View, in *CheckpointIn) (Reply, error) {
	if err := v.sessionRecord(in.ID, func(storage.Record) error { return nil }); err != nil {
		return Reply{}, err
	}
	id, _ := storage.ParseID(in.ID)
	value, err := v.checkpoint(id)
	if err != nil {
		return Reply{}, err
	}
	if value == nil {
		return Reply{}, NotFound("checkpoint")
	}
	return Reply{Body: value}, nil
}

// checkpoint returns the checkpoint of a session, or nil.
func (v *View) checkpoint(session storage.ID) (json.RawMessage, error) {
	value, err := v.Value(checkpointTable, session[:], nil)
	if err != nil {
		return nil, fmt.Errorf("read a checkpoint: %w", err)
	}
	return value, nil
}

// checkSessionRow checks that a row with a session's id as its key belongs to one.
func checkSessionRow(v *storage.View, fields, _ []byte) error {
	_, err := sessionOfRow(v, fields, len(storage.ID{}))
	return err
}
