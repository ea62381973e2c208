package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteIssueIn identifies the issue to delete, and the version that it must have.
type DeleteIssueIn struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
}

// DeleteIssue removes an issue for good. Its children stay without a parent (Decision
// 23).
var DeleteIssue = NewCommand[DeleteIssueIn, None]("DeleteIssue", "Delete an issue", Needs{Write, "issues"}, deleteIssue, WithSpaceEffect(FreesSpace))

// issueDeletionSteps are the steps of a deletion that remove the records of an issue, in
// order: each does as much as the budget allows and reports whether some are left.
// Records that are few are removed with the issue itself, by issueEffects.
var issueDeletionSteps = []func(tx *Tx, issue *storage.Row[Issue], work *workBudget) (more bool, err error){
	(*Tx).detachChildren,
	(*Tx).dropComments,
	(*Tx).unlinkTickets,
	(*Tx).dropAttachments,
	(*Tx).dropDrafts,
	(*Tx).cancelSessionsOf,
	(*Tx).dropRelations,
}

// deleteIssue removes the issue after everything that refers to it, so that after a
// crash between two batches no reference dangles, and the deletion can be repeated.
func deleteIssue(tx *Tx, in *DeleteIssueIn) (Reply, error) {
	row, err := tx.issue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("issue")
	}
	if err := requireMatch(in.IfMatch, row.Version); err != nil {
		return Reply{}, err
	}
	if more, err := tx.removeIssue(row, tx.newWorkBudget()); err != nil || more {
		return Reply{More: more}, err
	}
	return Reply{Outcome: NoContent}, nil
}

// removeIssue removes an issue with all that belongs to it, or as much as fits into the
// batch: it reports whether some is left.
func (tx *Tx) removeIssue(row *storage.Row[Issue], work *workBudget) (more bool, err error) {
	for _, step := range issueDeletionSteps {
		if more, err := step(tx, row, work); err != nil || more {
			return more, err
		}
	}
	_, err = tx.writeIssue(row, nil)
	return false, err
}

// detachChildren clears the parent of an issue's children, including those that the
// caller can't see, and reports whether some are left.
func (tx *Tx) detachChildren(t *storage.Row[Issue], work *workBudget) (more bool, err error) {
	tx.rules().spared = t.Value.id()
	keys, err := tx.childKeys(issueKey(t.Value.id()), work.left+1)
	if err != nil {
		return false, err
	}
	for _, pk := range keys {
		if work.spent() {
			return true, nil
		}
		child, err := issues.Get(tx, pk)
		if err != nil {
			return false, err
		}
		if child == nil {
			return false, fmt.Errorf("issue %s: the index names a child that is not there", t.Value.ID)
		}
		orphan := *child
		orphan.Value.ParentID = nil
		if _, err := tx.writeIssue(child, &orphan); err != nil {
			return false, err
		}
	}
	return false, nil
}
