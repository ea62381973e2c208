package tracker

import (
	"fmt"

	"switchyard/storage"
)

// GetWorkspaceReadOnly, PutWorkspaceReadOnly and DeleteWorkspaceReadOnly show and set the
// read-only mode of a workspace.
var (
	GetWorkspaceReadOnly = NewQuery[None, ReadOnlyOut]("WorkspaceReadOnly", "Show the read-only mode of a workspace", Needs{Level: Operator}, func(v *View, _ *None) (Reply, error) {
		if _, err := v.workspace(); err != nil {
			return Reply{}, err
		}
		row, err := readOnlyRows.Get(v, nil)
		if err != nil {
			return Reply{}, fmt.Errorf("read the read-only mode: %w", err)
		}
		if row == nil {
			return jsonReply(Done, ReadOnlyOut{})
		}
		return jsonReply(Done, row.Value.shown())
	})

	PutWorkspaceReadOnly = NewCommand[ReadOnlyIn, ReadOnlyOut]("PutWorkspaceReadOnly", "Make a workspace read-only", Needs{Level: Operator}, func(tx *Tx, in *ReadOnlyIn) (Reply, error) {
		state := readOnlyState{ReadOnly: ReadOnly{Reason: in.Reason, CreatedAt: At(tx.now)}}
		if _, err := tx.setReadOnly(&state); err != nil {
			return Reply{}, err
		}
		return jsonReply(Done, state.shown())
	})

	DeleteWorkspaceReadOnly = NewCommand[None, None]("DeleteWorkspaceReadOnly", "End the read-only mode of a workspace", Needs{Level: Operator}, func(tx *Tx, _ *None) (Reply, error) {
		_, err := tx.setReadOnly(nil)
		return Reply{Outcome: NoContent}, err
	}, WithSpaceEffect(FreesSpace))
)

// setReadOnly stores a state in place of the one that is there, which it returns; nil removes
// it.
func (tx *Tx) setReadOnly(state *readOnlyState) (before *storage.Row[readOnlyState], err error) {
	before, err = readOnlyRows.Get(tx, nil)
	switch {
	case err != nil:
	case before == nil && state == nil:
	case before == nil:
		_, err = readOnlyRows.Insert(tx, state)
	case state == nil:
		err = readOnlyRows.Delete(tx, before)
	default:
		_, err = readOnlyRows.Update(tx, before, state)
	}
	if err != nil {
		return nil, fmt.Errorf("set the read-only mode: %w", err)
	}
	return before, nil
}
