package tracker

import (
	"fmt"
	"strconv"

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
		return row.Value.reply()
	})

	PutWorkspaceReadOnly = NewCommand[BeginReadOnlyIn, ReadOnlyOut]("PutWorkspaceReadOnly", "Make a workspace read-only", Needs{Level: Operator}, func(tx *Tx, in *BeginReadOnlyIn) (Reply, error) {
		if err := tx.matchReadOnly(in.IfMatch, in.IfNoneMatch); err != nil {
			return Reply{}, err
		}
		state := readOnlyState{ReadOnly: ReadOnly{Reason: in.Reason, CreatedAt: At(tx.now)}}
		before, err := tx.setReadOnly(&state)
		if err != nil {
			return Reply{}, err
		}
		if err := tx.auditReadOnly(auditWorkspace, tx.Workspace().String(), before, &state); err != nil {
			return Reply{}, err
		}
		return state.reply()
	}, Audits(auditWorkspace))

	DeleteWorkspaceReadOnly = NewCommand[EndReadOnlyIn, None]("DeleteWorkspaceReadOnly", "End the read-only mode of a workspace", Needs{Level: Operator}, func(tx *Tx, in *EndReadOnlyIn) (Reply, error) {
		if err := tx.matchReadOnly(in.IfMatch, ""); err != nil {
			return Reply{}, err
		}
		before, err := tx.setReadOnly(nil)
		if err != nil || before == nil {
			return Reply{Outcome: NoContent}, err
		}
		return Reply{Outcome: NoContent}, tx.auditReadOnly(auditWorkspace, tx.Workspace().String(), before, nil)
	}, WithSpaceEffect(FreesSpace), Audits(auditWorkspace))
)

// BeginReadOnlyIn makes a workspace read-only: with If-Match only in place of the mode that has this ETag, and with
// If-None-Match only if the present mode, if there is one, has none of these. "*" stands for every mode.
type BeginReadOnlyIn struct {
	IfMatch     string `header:"If-Match" rules:"min=1"`
	IfNoneMatch string `header:"If-None-Match"`
	ReadOnlyIn
}

// EndReadOnlyIn ends a workspace's read-only mode: with If-Match only the one that has this ETag, so that
// a program which is late does not end the mode that another one has begun.
type EndReadOnlyIn struct {
	IfMatch string `header:"If-Match" rules:"min=1"`
}

// tag returns the ETag of a mode: the time when it was set, in quotes.
func (r *ReadOnly) tag() string { return strconv.Quote(string(r.CreatedAt)) }

// reply shows the mode that a state stands for, with its ETag.
func (s *readOnlyState) reply() (Reply, error) {
	reply, err := jsonReply(Done, s.shown())
	reply.ETag = s.tag()
	return reply, err
}

// matchReadOnly returns PRECONDITION_FAILED if If-Match does not have the present mode, or If-None-Match has it.
func (tx *Tx) matchReadOnly(ifMatch, ifNoneMatch string) error {
	if ifMatch == "" && ifNoneMatch == "" {
		return nil
	}
	row, err := readOnlyRows.Get(tx, nil)
	if err != nil {
		return fmt.Errorf("read the read-only mode: %w", err)
	}
	has := func(list string) bool { return row != nil && tagListed(list, row.Value.tag(), false) }
	if (ifMatch == "" || has(ifMatch)) && !has(ifNoneMatch) {
		return nil
	}
	return &Error{Code: CodePreconditionFailed, Message: "The read-only mode is not as If-Match and If-None-Match say.", Hint: "Get the mode again, and repeat the request with its ETag if that mode is to end or to be replaced, too."}
}

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
