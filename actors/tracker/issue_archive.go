package tracker

import (
	"fmt"

	"switchyard/storage"
)

// An archived issue is read as before. Lists leave it out, and no request changes it, or
// adds something to it, until it is brought back (Decision 72). Retention archives issues.

// ArchivedDetails are the details of the CONFLICT of a write of an archived issue.
type ArchivedDetails struct {
	IssueID    IssueID   `json:"issueId"`
	ArchivedAt Timestamp `json:"archivedAt"`
}

// errArchived returns the error for a write of an archived issue.
func errArchived(t *Issue) *Error {
	name := "The issue"
	if t.Identifier != nil {
		name = "Issue " + *t.Identifier
	}
	err := Conflict(name+" is archived.", "An archived issue can be read and deleted. To change it, bring it back first with POST /workspaces/{organizationId}/issues/{id}/unarchive.")
	err.Details = ArchivedDetails{t.ID, *t.ArchivedAt}
	return err
}

// refuseArchived returns CONFLICT for an archived issue.
func (t *Issue) refuseArchived() error {
	if t.ArchivedAt == nil {
		return nil
	}
	return errArchived(t)
}

// refuseArchivedHead is refuseArchived for the header of an issue's record.
func (v *View) refuseArchivedHead(id storage.ID, head storage.Header) error {
	if head.Flags&issueArchived == 0 {
		return nil
	}
	return v.refuseArchivedID(id)
}

// refuseArchivedID is refuseArchived for the id of an issue that the caller may see. An
// issue that is not there is not refused.
func (v *View) refuseArchivedID(id storage.ID) error {
	refusal := error(nil)
	_, err := issues.Record(v, issueKey(id), func(rec storage.Record) error {
		if rec.Flags()&issueArchived == 0 {
			return nil
		}
		row, err := issues.Decode(rec)
		if err == nil {
			refusal = row.Value.refuseArchived()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look whether an issue is archived: %w", err)
	}
	return refusal
}

// isArchived reports whether there is an archived issue with an id.
func (v *View) isArchived(issue IssueID) (archived bool, err error) {
	id, _ := storage.ParseID(issue)
	_, err = issues.Record(v, issueKey(id), func(rec storage.Record) error {
		archived = rec.Flags()&issueArchived != 0
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look whether an issue is archived: %w", err)
	}
	return archived, nil
}

// refuseArchivedParent returns CONFLICT if the parent that an issue gets is archived.
func (v *View) refuseArchivedParent(parent IssueID) error {
	id, _ := storage.ParseID(parent)
	return v.refuseArchivedID(id)
}

// writableIssue returns the issue that a path names, to change it or to add something to
// it. It returns NOT_FOUND if the issue does not exist or the caller may not see it, and
// CONFLICT if it is archived.
func (tx *Tx) writableIssue(id string) (*storage.Row[Issue], error) {
	row, err := tx.issue(id)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, NotFound("issue")
	}
	return row, row.Value.refuseArchived()
}

// UnarchiveIssueIn identifies an archived issue.
type UnarchiveIssueIn struct {
	ID string `path:"id"`
}

// UnarchiveIssue brings an archived issue back, with what calls of version control have told of its
// pull request meanwhile. Retention counts its days anew from then on. For an issue that is not archived nothing changes.
var UnarchiveIssue = NewCommand[UnarchiveIssueIn, Issue]("UnarchiveIssue", "Bring an archived issue back", Needs{Write, "issues"}, unarchiveIssue)

func unarchiveIssue(tx *Tx, in *UnarchiveIssueIn) (Reply, error) {
	row, err := tx.issue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("issue")
	}
	back := *row
	if err := tx.addTold(&back.Value); err != nil {
		return Reply{}, err
	}
	back.Value.ArchivedAt = nil
	w, err := tx.writeIssue(row, &back)
	if err != nil {
		return Reply{}, err
	}
	shown, err := tx.shownIssue(w.body)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Body: shown, ETag: shownETag(w.new.Version, len(shown) == len(w.body))}, nil
}

// archiveIssue archives a closed issue, with its event.
func (tx *Tx) archiveIssue(row *storage.Row[Issue]) error {
	archived, now := *row, At(tx.now)
	archived.Value.ArchivedAt = &now
	_, err := tx.writeIssue(row, &archived)
	return err
}
