package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeletedWorkspace is the answer to DeleteWorkspace. R2Objects counts the
// attachments removed.
type DeletedWorkspace struct {
	Deleted   bool  `json:"deleted"`
	R2Objects int64 `json:"r2Objects"`
}

// DeleteWorkspace removes a workspace and everything in it, for good. It asks for
// no more than a credential up front: a repeat of the request must find its answer
// when the workspace, and with it the right to delete it, is gone.
var DeleteWorkspace = NewWorkflow[None, DeletedWorkspace]("DeleteWorkspace", "Delete a workspace", Needs{Level: Identified}, deleteWorkspace)

func deleteWorkspace(f Flow, _ *None) (Reply, error) {
	req := f.Request()
	step := directoryStep{WorkspaceID(req.Workspace.String())}
	mark := markDeletingIn{directoryStep: step}
	// A repeat skips the look at rights: the key is bound to the caller, and the
	// answer to the request.
	repeated := false
	if name := answerName(req); name != "" {
		answered, err := call[existence](f, storage.DirectoryID, answeredOp, &answeredIn{name})
		if err != nil {
			return Reply{}, err
		}
		repeated = answered.Exists
	}
	if !repeated {
		may, err := call[deletable](f, req.Workspace, mayDeleteOp, &openIn{req.Caller.Principal})
		if err != nil {
			return Reply{}, err
		}
		mark.Attachments = may.Attachments
	}
	reply, err := f.CallAs(req.Caller, storage.DirectoryID, markDeletingOp, &mark)
	if err != nil {
		return Reply{}, err
	}
	// From here on the deletion is decided; its timer ends what this leaves undone.
	if err := erase(f, step); err != nil {
		return Reply{}, err
	}
	return reply, nil
}

// deletable tells what a workspace's deletion will remove.
type deletable struct {
	Attachments int64 `json:"attachments"`
}

// mayDeleteOp refuses who may not delete the workspace, and counts what the answer
// to those who may has to tell.
var mayDeleteOp = NewQuery[openIn, deletable]("MayDeleteWorkspace", "Check who deletes a workspace", Needs{}, func(v *View, in *openIn) (Reply, error) {
	if err := admit(v, &in.Principal, Needs{Level: Admin}); err != nil {
		return Reply{}, err
	}
	subject := tallySubject(attachmentTable)
	n, err := v.Number(tallyTable, subject[:])
	if err != nil {
		return Reply{}, fmt.Errorf("count the attachments: %w", err)
	}
	return jsonReply(Done, deletable{int64(n)})
})

// answeredIn names an answer; see answerName.
type answeredIn struct {
	Answer string `json:"answer"`
}

// answeredOp tells whether the directory remembers an answer.
var answeredOp = NewQuery[answeredIn, existence]("Answered", "Tell whether a request was answered", Needs{}, func(v *View, in *answeredIn) (Reply, error) {
	key, ok := parseAnswerName(in.Answer)
	if !ok {
		return jsonReply(Done, existence{})
	}
	a, err := v.answer(key)
	if err != nil {
		return Reply{}, fmt.Errorf("read an answer: %w", err)
	}
	return jsonReply(Done, existence{a != nil && v.now.Sub(a.at) < idempotencyLife})
}, InDirectory)

// markDeletingIn also says how many attachments go with the workspace: the answer
// is given, and kept for repeats, where the deletion is decided.
type markDeletingIn struct {
	directoryStep
	Attachments int64 `json:"attachments"`
}

// markDeletingOp decides a deletion: from its commit on the workspace is found
// under its slug no longer, and whatever happens it will be erased.
var markDeletingOp = NewCommand[markDeletingIn, DeletedWorkspace]("MarkDeleting", "Decide a workspace's deletion", Needs{}, func(tx *Tx, in *markDeletingIn) (Reply, error) {
	row, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("workspace") // another request has deleted it
	}
	if row.Value.State != slugDeleting {
		if err := tx.setEntryState(row, slugDeleting); err != nil {
			return Reply{}, err
		}
		if err := tx.ClearTimer(timerResolve, string(in.Workspace)); err != nil {
			return Reply{}, err
		}
		if err := tx.SetTimer(timerErase, string(in.Workspace), tx.now.Add(eraseAfter)); err != nil {
			return Reply{}, err
		}
	}
	return jsonReply(Done, DeletedWorkspace{Deleted: true, R2Objects: in.Attachments})
}, InDirectory)

// erase carries out a deletion that is decided; it can be repeated.
func erase(f Flow, step directoryStep) error {
	if _, err := f.Call(step.id(), eraseWorkspaceOp, &None{}); err != nil {
		return err
	}
	_, err := f.Call(storage.DirectoryID, forgetWorkspaceOp, &step)
	return err
}

// eraseOp takes up a deletion that was not finished.
var eraseOp = NewWorkflow[TimerIn, None]("FinishDeletion", "Finish a workspace's deletion", Needs{}, func(f Flow, in *TimerIn) (Reply, error) {
	return Reply{Outcome: NoContent}, erase(f, directoryStep{WorkspaceID(in.Subject)})
})

// eraseBatch bounds the timers and memberships removed at once.
const eraseBatch = 500

// eraseWorkspaceOp removes every row of a workspace. Its own row goes first, so
// that nothing is added between two runs; then the timers, which have entries
// outside of its range; then the range.
var eraseWorkspaceOp = NewCommand[None, None]("EraseWorkspace", "Erase a workspace", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
	if id := tx.Workspace(); id == storage.SystemID || id == storage.DirectoryID {
		return Reply{}, fmt.Errorf("erase %s: it is no workspace", id)
	}
	ws, err := workspaces.Get(tx, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the workspace: %w", err)
	}
	if ws != nil {
		if err := workspaces.Delete(tx, ws); err != nil {
			return Reply{}, fmt.Errorf("erase a workspace: %w", err)
		}
		tx.ledger.lives = false
	}
	more, err := tx.dropTimers(eraseBatch)
	if err != nil || more {
		return Reply{More: more}, err
	}
	if err := tx.Writer().DeleteWorkspace(); err != nil {
		return Reply{}, fmt.Errorf("erase a workspace: %w", err)
	}
	// The counters' rows are gone; what is remembered of them must not be written
	// again. Nothing can fail from here on.
	tx.ledger.forget()
	return Reply{Outcome: NoContent}, nil
}, Founds)

// dropTimers removes up to limit timers; true when there are more.
func (tx *Tx) dropTimers(limit int) (more bool, err error) {
	var rows []*storage.Row[Timer]
	err = timers.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		if more = len(rows) == limit; more {
			return false, nil
		}
		row, err := timers.Decode(rec)
		rows = append(rows, row)
		return true, err
	})
	if err != nil {
		return false, fmt.Errorf("read the timers: %w", err)
	}
	for _, row := range rows {
		if err := timers.Delete(tx, row); err != nil {
			return false, fmt.Errorf("remove a timer: %w", err)
		}
	}
	return more, nil
}

// forgetWorkspaceOp removes a workspace from the directory when it is erased: who
// was a member, then its slug, which is free again.
var forgetWorkspaceOp = NewCommand[directoryStep, None]("ForgetWorkspace", "Forget a deleted workspace", Needs{}, func(tx *Tx, in *directoryStep) (Reply, error) {
	row, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	if row != nil && row.Value.State != slugDeleting {
		return Reply{}, fmt.Errorf("forget %s: it is %s", in.Workspace, row.Value.State)
	}
	more, err := tx.dropMemberships(in.Workspace, eraseBatch)
	if err != nil || more {
		return Reply{More: more}, err
	}
	if row != nil {
		if err := directory.Delete(tx, row); err != nil {
			return Reply{}, fmt.Errorf("forget a workspace: %w", err)
		}
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(timerErase, string(in.Workspace))
}, InDirectory)
