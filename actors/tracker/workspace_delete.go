package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeletedWorkspace is the answer to DeleteWorkspace. R2Objects is the number of removed
// attachments.
type DeletedWorkspace struct {
	Deleted   bool  `json:"deleted"`
	R2Objects int64 `json:"r2Objects"`
}

// DeleteWorkspace removes a workspace and everything in it for good. Admission requires
// no more than a credential: a repeat of the request must find its answer after the
// workspace, and with it the right to delete it, is gone.
var DeleteWorkspace = NewWorkflow[None, DeletedWorkspace]("DeleteWorkspace", "Delete a workspace", Needs{Level: Identified}, deleteWorkspace, WithSpaceEffect(EndsWorkspace), Refuses(CodeForbidden), Audits(auditWorkspace),
	ForCallers("the owner or admin role in the workspace, and the permission admin"))

func deleteWorkspace(f Flow, _ *None) (Reply, error) {
	req := f.Request()
	step := directoryStep{WorkspaceID(req.Workspace.String())}
	kept, err := keptReply(f)
	if err != nil {
		return Reply{}, err
	}
	var permit Permit
	var attachments int64
	if kept == nil {
		var refused error
		if permit, attachments, refused = mayDelete(f); refused != nil {
			// The same request may have been decided since the last look, by another
			// connection, and the caller's right has gone with the workspace.
			if kept, err = keptReply(f); err != nil || kept == nil {
				return Reply{}, refused
			}
		}
	}
	if kept != nil {
		// This request was already answered: nothing more is decided, but the deletion
		// may be unfinished.
		return *kept, finishDeletion(f, step)
	}
	reply, err := f.CommandAs(permit, req.Caller, storage.DirectoryID, markDeletingOp, &markDeletingIn{directoryStep: step, Attachments: attachments})
	if err != nil {
		return Reply{}, err
	}
	// The deletion is decided. If the next steps fail, its timer does them.
	return reply, finishDeletion(f, step)
}

// mayDelete checks the caller's rights in the workspace of the path, and counts its
// attachments.
func mayDelete(f Flow) (Permit, int64, error) {
	req := f.Request()
	may, err := ask[deletable](f, req.Workspace, mayDeleteOp, &openIn{req.Caller.Principal})
	if err != nil {
		return Permit{}, 0, err
	}
	return permitDeletion(req.Workspace), may.Attachments, nil
}

// deletable is the content that a workspace's deletion will remove.
type deletable struct {
	Attachments int64 `json:"attachments"`
}

// mayDeleteOp returns FORBIDDEN to callers who may not delete the workspace.
var mayDeleteOp = NewQuery[openIn, deletable]("MayDeleteWorkspace", "Check who deletes a workspace", Needs{}, func(v *View, in *openIn) (Reply, error) {
	if err := admit(v, &in.Principal, Needs{Level: Admin}); err != nil {
		return Reply{}, err
	}
	if !in.Principal.Root {
		if err := v.isWritable(); err != nil {
			return Reply{}, err
		}
	}
	subject := recordCountSubject(attachmentTable)
	n, err := v.Number(recordCountTable, subject[:])
	if err != nil {
		return Reply{}, fmt.Errorf("count the attachments: %w", err)
	}
	return jsonReply(Done, deletable{int64(n)})
})

// keptReply returns the answer that the directory keeps for the request's key, or nil. It
// is a query, so a repeat can't become a change even if the answer expires between two
// steps.
func keptReply(f Flow) (*Reply, error) {
	req := f.Request()
	name := answerName(req)
	if name == "" {
		return nil, nil
	}
	kept, err := ask[keptAnswer](f, storage.DirectoryID, keptAnswerOp, &keptAnswerIn{name, req.Idempotency.Fingerprint[:]})
	if err != nil || !kept.Found {
		return nil, err
	}
	reply := &Reply{Outcome: Done, Body: kept.Body, Replayed: true}
	if len(kept.Body) == 0 {
		reply.Outcome = NoContent
	}
	return reply, nil
}

// keptAnswerIn is the name of an answer, see answerName, and the request's fingerprint.
type keptAnswerIn struct {
	Answer      string `json:"answer"`
	Fingerprint []byte `json:"fingerprint"`
}

type keptAnswer struct {
	Found bool   `json:"found"`
	Body  []byte `json:"body"`
}

// keptAnswerOp returns an answer that the directory keeps. The error for a key of
// another request is IDEMPOTENCY_KEY_REUSED.
var keptAnswerOp = NewQuery[keptAnswerIn, keptAnswer]("KeptAnswer", "Read the answer kept for a request", Needs{}, func(v *View, in *keptAnswerIn) (Reply, error) {
	key, ok := parseAnswerName(in.Answer)
	if !ok || len(in.Fingerprint) != len(Idempotency{}.Fingerprint) {
		return Reply{}, fmt.Errorf("an answer is named %q", in.Answer)
	}
	a, err := v.liveAnswer(key, [32]byte(in.Fingerprint))
	if err != nil {
		return Reply{}, fmt.Errorf("read an answer: %w", err)
	}
	if a == nil {
		return jsonReply(Done, keptAnswer{})
	}
	if a.sealed {
		return Reply{}, fmt.Errorf("the answer %q is sealed", in.Answer)
	}
	return jsonReply(Done, keptAnswer{true, a.body})
}, InDirectory)

// markDeletingIn is the workspace to delete. It has the number of its attachments,
// since the step that decides the deletion makes the answer, which is kept for repeats.
type markDeletingIn struct {
	directoryStep
	Attachments int64 `json:"attachments"`
}

// markDeletingOp decides a deletion: from its commit on the workspace can't be found by
// its slug, and it will be erased after any failure.
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
		tx.audit(auditWorkspace, actDeleted, string(in.Workspace), nil)
		if err := tx.ClearTimer(timerResolve, string(in.Workspace)); err != nil {
			return Reply{}, err
		}
		if err := tx.SetTimer(timerErase, string(in.Workspace), tx.now.Add(eraseAfter)); err != nil {
			return Reply{}, err
		}
	}
	return jsonReply(Done, DeletedWorkspace{Deleted: true, R2Objects: in.Attachments})
}, InDirectory, WithSpaceEffect(EndsWorkspace), Audits(auditWorkspace))

// finishDeletion completes a deletion that the directory says is decided. It can be
// repeated.
func finishDeletion(f Flow, step directoryStep) error {
	permit, err := decidedDeletion(f, step)
	if err != nil || permit == (Permit{}) {
		return err
	}
	if _, err := f.Command(permit, step.id(), eraseWorkspaceOp, &None{}); err != nil {
		return err
	}
	_, err = f.Command(permit, storage.DirectoryID, forgetWorkspaceOp, &step)
	return err
}

// decidedDeletion returns the permit to erase a workspace whose deletion is decided, or
// the zero Permit for any other.
func decidedDeletion(f Flow, step directoryStep) (Permit, error) {
	decided, err := ask[existence](f, storage.DirectoryID, decidedOp, &step)
	if err != nil || !decided.Exists {
		return Permit{}, err
	}
	return permitDeletion(step.id()), nil
}

// decidedOp reports whether a workspace's deletion is decided and not yet finished.
var decidedOp = NewQuery[directoryStep, existence]("DeletionDecided", "Report whether a deletion is decided", Needs{}, func(v *View, in *directoryStep) (Reply, error) {
	row, err := v.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, existence{row != nil && row.Value.State == slugDeleting})
}, InDirectory)

// eraseOp completes a deletion that was interrupted.
var eraseOp = NewWorkflow[TimerIn, None]("FinishDeletion", "Finish a workspace's deletion", Needs{}, func(f Flow, in *TimerIn) (Reply, error) {
	return Reply{Outcome: NoContent}, finishDeletion(f, directoryStep{WorkspaceID(in.Subject)})
}, WithSpaceEffect(EndsWorkspace))

// eraseBatch limits the timers and memberships removed at once.
const eraseBatch = 500

// eraseWorkspaceOp removes every row of a workspace. The workspace's own row goes
// first, so that nothing is added between two runs; then the timers and webhooks, which
// have entries outside of the workspace's key range; then the range.
var eraseWorkspaceOp = NewCommand[None, None]("EraseWorkspace", "Erase a workspace", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
	if id := tx.Workspace(); id.IsService() {
		return Reply{}, fmt.Errorf("erase %s: it is not a workspace", id)
	}
	ws, err := workspaces.Get(tx, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the workspace: %w", err)
	}
	if ws != nil {
		if err := workspaces.Delete(tx, ws); err != nil {
			return Reply{}, fmt.Errorf("erase a workspace: %w", err)
		}
		tx.buffer.seen = false
	}
	more, err := tx.dropTimers(eraseBatch)
	if err != nil || more {
		return Reply{More: more}, err
	}
	if err := tx.dropWebhooks(); err != nil {
		return Reply{}, err
	}
	readOnly, err := readOnlyRows.Get(tx, nil)
	if err == nil && readOnly != nil {
		err = readOnlyRows.Delete(tx, readOnly)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("end the read-only mode of a deleted workspace: %w", err)
	}
	if err := tx.Writer().DeleteWorkspace(); err != nil {
		return Reply{}, fmt.Errorf("erase a workspace: %w", err)
	}
	// The counters' rows are gone; cached counters must not be written again. Nothing
	// can fail from here on.
	tx.buffer.forget()
	return Reply{Outcome: NoContent}, nil
}, RunsWithoutWorkspace, WithSpaceEffect(EndsWorkspace))

// dropTimers removes up to limit timers and reports whether there are more.
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

// forgetWorkspaceOp removes an erased workspace from the directory: first its
// memberships, then its slug, which is free again.
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
	if err := tx.dropRoutes(in.Workspace); err != nil {
		return Reply{}, err
	}
	if row != nil {
		if err := directory.Delete(tx, row); err != nil {
			return Reply{}, fmt.Errorf("forget a workspace: %w", err)
		}
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(timerErase, string(in.Workspace))
}, InDirectory, WithSpaceEffect(EndsWorkspace))
