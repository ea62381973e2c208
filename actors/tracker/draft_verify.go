package tracker

import (
	"switchyard/storage"
)

// checkDrafts checks that the issue and session of every draft exist, that its payload
// can be decoded, and that its status agrees with the fields of its review.
func checkDrafts(v *storage.View, report reporter) error {
	return drafts.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := drafts.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		d := &row.Value
		if string(d.OrganizationID) != v.Workspace().String() || d.Status.rank() == 0xff {
			report(drafts.Name, pk, "says it is %q in workspace %s", d.Status, d.OrganizationID)
		}
		if _, err := readPayload(d.Kind, d.Payload); err != nil {
			report(drafts.Name, pk, "%v", err)
		}
		decided := d.Status != DraftPending
		if decided != (d.ReviewedAt != nil) || decided != (d.ReviewedByID != nil) {
			report(drafts.Name, pk, "is %s, which its review contradicts", d.Status)
		}
		if made := d.Kind == DraftComment && d.Status == DraftPublished; made != (d.PublishedCommentID != nil) {
			report(drafts.Name, pk, "is a %s draft of a %s; its published comment contradicts that", d.Status, d.Kind)
		}
		if d.IssueID == nil && (d.Kind != DraftIssueCreate || d.Status == DraftPublished) {
			report(drafts.Name, pk, "has no issue")
		}
		if err := checkDraftRefs(v, pk, d, report); err != nil {
			return false, err
		}
		return true, nil
	})
}

func checkDraftRefs(v *storage.View, pk []byte, d *draftRecord, report reporter) error {
	if d.IssueID != nil {
		id, _ := storage.ParseID(*d.IssueID)
		there, err := v.Has(issueTable, issueKey(id))
		if err != nil {
			return err
		}
		if !there {
			report(drafts.Name, pk, "its issue %s is not there", *d.IssueID)
		}
	}
	if d.SessionID != nil {
		id, _ := storage.ParseID(*d.SessionID)
		there, err := v.Has(sessionTable, sessionKey(id))
		if err != nil {
			return err
		}
		if !there {
			report(drafts.Name, pk, "its session %s is not there", *d.SessionID)
		}
	}
	return nil
}
