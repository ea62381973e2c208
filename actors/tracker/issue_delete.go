package tracker

import "fmt"

// DeleteIssueIn names the issue to delete, and the version it must have.
type DeleteIssueIn struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
}

// DeleteIssue removes an issue for good. Its children stay and lose their parent
// (Decision 23).
var DeleteIssue = NewCommand[DeleteIssueIn, None]("DeleteIssue", "Delete an issue", Needs{Write, "issues"}, deleteIssue)

// A deletion parts with the children of one batch at a time: this many, or fewer
// when they have grown the batch by this many bytes.
const (
	maxDetached      = 500
	maxDetachedBytes = 8 << 20
)

// deleteIssue leaves the issue in place until its last child has lost it, so a
// crash between two batches leaves nothing dangling: repeating the deletion
// finishes it.
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
	more, err := tx.detachChildren(&row.Value)
	if err != nil || more {
		return Reply{More: more}, err
	}
	if more, err = tx.partSessions(row); err != nil || more {
		return Reply{More: more}, err
	}
	return Reply{Outcome: NoContent}, tx.eraseIssue(row)
}

// detachChildren takes the parent away from children of an issue, also those the
// caller can't see, and tells whether some are left.
func (tx *Tx) detachChildren(t *Issue) (more bool, err error) {
	keys, err := tx.childKeys(issueKey(t.id()), maxDetached+1)
	if err != nil {
		return false, err
	}
	start := tx.Writer().Size()
	for i, pk := range keys {
		if i == maxDetached || tx.Writer().Size()-start > maxDetachedBytes {
			return true, nil
		}
		child, err := issues.Get(tx, pk)
		if err != nil {
			return false, err
		}
		if child == nil {
			return false, fmt.Errorf("issue %s: the index names a child that is not there", t.ID)
		}
		orphan := child.Value
		orphan.ParentID = nil
		if _, _, err := tx.updateIssue(child, &orphan); err != nil {
			return false, err
		}
	}
	return false, nil
}
