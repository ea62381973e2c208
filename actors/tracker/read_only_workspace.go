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
		before, err := tx.setReadOnly(&state)
		if err != nil {
			return Reply{}, err
		}
		if err := tx.auditReadOnly(auditWorkspace, tx.Workspace().String(), before, &state); err != nil {
			return Reply{}, err
		}
		return jsonReply(Done, state.shown())
	}, Audits(auditWorkspace))

	DeleteWorkspaceReadOnly = NewCommand[None, None]("DeleteWorkspaceReadOnly", "End the read-only mode of a workspace", Needs{Level: Operator}, func(tx *Tx, _ *None) (Reply, error) {
		before, err := tx.setReadOnly(nil)
		if err != nil || before == nil {
			return Reply{Outcome: NoContent}, err
		}
		return Reply{Outcome: NoContent}, tx.auditReadOnly(auditWorkspace, tx.Workspace().String(), before, nil)
	}, WithSpaceEffect(FreesSpace), Audits(auditWorkspace))
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

// auditReadOnly notes that a read-only mode was set or ended.
func (tx *Tx) auditReadOnly(kind, target string, before *storage.Row[readOnlyState], after *readOnlyState) error {
	mode := func(s *readOnlyState) *struct {
		ReadOnly *ReadOnly `json:"readOnly"`
	} {
		return &struct {
			ReadOnly *ReadOnly `json:"readOnly"`
		}{s.shown().ReadOnly}
	}
	var old *readOnlyState
	if before != nil {
		old = &before.Value
	}
	changes, err := auditChanges(mode(old), mode(after))
	if err == nil {
		tx.audit(kind, actReadOnly, target, changes)
	}
	return err
}
