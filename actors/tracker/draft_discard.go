package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DecideDraftIn is a decision on a draft, with a note.
type DecideDraftIn struct {
	ID   string      `path:"id"`
	Note Opt[string] `json:"note" rules:"nullable,max=32768"`
}

// DraftConflict are the details of the CONFLICT for a draft that is already decided.
type DraftConflict struct {
	DraftID      DraftID     `json:"draftId"`
	Status       DraftStatus `json:"status"`
	ReviewedByID *string     `json:"reviewedById"`
	ReviewedAt   *Timestamp  `json:"reviewedAt"`
}

// DiscardDraft decides against a proposed write. The draft is kept.
var DiscardDraft = NewCommand[DecideDraftIn, Draft]("DiscardDraft", "Discard a draft", Needs{Write, "issues"}, discardDraft)

func discardDraft(tx *Tx, in *DecideDraftIn) (Reply, error) {
	row, err := tx.pendingDraft(in.ID)
	if err != nil {
		return Reply{}, err
	}
	d := row.Value
	d.Status = DraftDiscarded
	return tx.decideDraft(row, &d, in.Note.Ptr(), eventDraftDiscarded)
}

// pendingDraft returns a draft that can still be decided on.
func (tx *Tx) pendingDraft(id string) (*storage.Row[draftRecord], error) {
	row, err := tx.draft(id)
	if err != nil {
		return nil, err
	}
	if d := &row.Value; d.Status != DraftPending {
		return nil, &Error{
			Code: CodeConflict, Message: fmt.Sprintf("The draft is %s already.", d.Status),
			Hint:    "A decision is final. To propose the write again, make another draft.",
			Details: DraftConflict{d.ID, d.Status, d.ReviewedByID, d.ReviewedAt},
		}
	}
	return row, nil
}

// decideDraft stores the decision on a draft, with its event, and returns the draft.
func (tx *Tx) decideDraft(old *storage.Row[draftRecord], d *draftRecord, note *string, event *eventKind) (Reply, error) {
	now := At(tx.now)
	d.ReviewedByID, d.ReviewedAt, d.ReviewNote, d.UpdatedAt = &tx.Caller.ID, &now, note, now
	header, err := tx.draftHeader(d)
	if err != nil {
		return Reply{}, err
	}
	body, err := drafts.Update(tx, old, d)
	if err != nil {
		return Reply{}, fmt.Errorf("store a draft: %w", err)
	}
	body = publicCopy(body)
	return Reply{Body: body}, tx.Emit(event, header, body, draftChanges(&old.Value, d))
}

// draftChanges lists the fields that a decision changed, in the order of the draft's
// fields, without updatedAt.
func draftChanges(from, to *draftRecord) []Change {
	var c changes
	note(&c, "entityId", from.EntityID, to.EntityID)
	note(&c, "issueId", from.IssueID, to.IssueID)
	note(&c, "status", &from.Status, &to.Status)
	note(&c, "reviewedById", from.ReviewedByID, to.ReviewedByID)
	note(&c, "reviewedAt", from.ReviewedAt, to.ReviewedAt)
	note(&c, "reviewNote", from.ReviewNote, to.ReviewNote)
	note(&c, "publishedCommentId", from.PublishedCommentID, to.PublishedCommentID)
	return c
}
