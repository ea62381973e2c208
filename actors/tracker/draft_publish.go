package tracker

import (
	"errors"
	"fmt"
	"strings"

	"switchyard/storage"
)

// PublishDraft makes the write that a draft proposes, in the caller's name, and marks
// the draft as published in the same batch.
var PublishDraft = NewCommand[DecideDraftIn, Draft]("PublishDraft", "Publish a draft", Needs{Write, "issues"}, publishDraft)

func publishDraft(tx *Tx, in *DecideDraftIn) (Reply, error) {
	row, err := tx.pendingDraft(in.ID)
	if err != nil {
		return Reply{}, err
	}
	d := row.Value
	p, err := readPayload(d.Kind, d.Payload)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.applyDraft(&d, p); err != nil {
		return Reply{}, unpublishable(err)
	}
	d.Status = DraftPublished
	return tx.decideDraft(row, &d, in.Note.Ptr(), eventDraftPublished)
}

// applyDraft makes the proposed write and sets its results in the draft.
func (tx *Tx) applyDraft(d *draftRecord, p *DraftPayload) error {
	switch d.Kind {
	case DraftComment:
		issue, head, err := tx.issueHeadIn(string(*d.IssueID))
		if err != nil {
			return err
		}
		id, _, err := tx.addComment(issue, head, p.Body.Value, p.parentComment(), "parentId")
		d.PublishedCommentID = &id
		return err
	case DraftIssueUpdate:
		issue, err := tx.writableIssue(string(*d.IssueID))
		if err != nil {
			return err
		}
		_, err = tx.changeIssue(issue, &p.IssuePatch, "")
		return err
	case DraftIssueCreate:
		return tx.applyCreation(d, p)
	}
	return fmt.Errorf("draft %s is of kind %q", d.ID, d.Kind)
}

// applyCreation makes the issue that a draft proposes. A draft without an issue gets
// the new one.
func (tx *Tx) applyCreation(d *draftRecord, p *DraftPayload) error {
	reply, err := createIssue(tx, &CreateIssueIn{Title: p.Title.Value, IssueFields: p.IssueFields})
	if err != nil {
		return err
	}
	if reply.Outcome != Created {
		return refTaken()
	}
	id, ok := storage.ParseID(storedText(reply.Body, "id"))
	if !ok {
		return errors.New("a new issue has no id")
	}
	if d.EntityType == entityIssue {
		entity := id.String()
		d.EntityID = &entity
	}
	if d.IssueID == nil {
		issue := IssueID(id.String())
		d.IssueID, d.Inner.Team = &issue, ""
	}
	return nil
}

// unpublishable turns the faults of a proposed write into a CONFLICT: the request is
// valid, but the draft no longer fits what exists.
func unpublishable(err error) error {
	list := faultsOf(inPayload(err))
	if list == nil {
		return err
	}
	texts := make([]string, 0, len(list))
	for _, fault := range list {
		texts = append(texts, fault.Path+": "+fault.Message)
	}
	return &Error{
		Code: CodeConflict, Message: "The draft's proposal can't be written now. " + strings.Join(texts, " "),
		Hint: "Nothing was changed. Correct the cause and publish the draft again, or discard it.", Details: BadRequestDetails{Issues: list},
	}
}

// faultsOf returns the faults that an error lists, or nil if it is not a BAD_REQUEST.
func faultsOf(err error) []Fault {
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeBadRequest {
		return nil
	}
	details, _ := e.Details.(BadRequestDetails)
	return details.Issues
}
