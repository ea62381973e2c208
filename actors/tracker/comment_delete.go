package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteComment removes a comment. Only its author and admins may. Replies stay without
// a parent.
var DeleteComment = NewCommand[RecordIn, None]("DeleteComment", "Delete a comment", Needs{Write, "issues"}, deleteComment, WithSpaceEffect(FreesSpace), Refuses(CodeConflict))

// deleteComment removes the comment after its last reply has lost its parent, so that
// no parentId dangles after a crash between two batches.
func deleteComment(tx *Tx, in *RecordIn) (Reply, error) {
	c, err := tx.comment(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if c == nil {
		return Reply{}, NotFound("comment")
	}
	if err := c.Value.mayEdit(tx.Caller); err != nil {
		return Reply{}, err
	}
	if err := tx.refuseArchivedHead(c.on(), c.issue); err != nil {
		return Reply{}, err
	}
	more, err := tx.detachReplies(c, tx.newWorkBudget())
	if err != nil || more {
		return Reply{More: more}, err
	}
	return Reply{Outcome: NoContent}, tx.eraseComment(c)
}

// eraseComment removes a comment without replies, and emits its event.
func (tx *Tx) eraseComment(c *placedComment) error {
	body, err := jsonReply(Done, &c.Value)
	if err != nil {
		return err
	}
	if err := comments.Delete(tx, c.Row); err != nil {
		return fmt.Errorf("remove a comment: %w", err)
	}
	return tx.Emit(eventCommentDeleted, c.issue, body.Body, nil)
}

// detachReplies clears the parent of replies to a comment and reports whether some are
// left.
func (tx *Tx) detachReplies(c *placedComment, work *workBudget) (more bool, err error) {
	id, _ := storage.ParseID(c.Value.ID)
	keys, err := tx.rowKeys(commentByParent, id[:], work.left+1)
	if err != nil {
		return false, fmt.Errorf("list replies: %w", err)
	}
	for _, pk := range keys {
		if work.spent() {
			return true, nil
		}
		reply, err := tx.storedComment(pk, c.issue)
		if err != nil {
			return false, err
		}
		alone := reply.Value
		alone.ParentID = nil
		if _, err := tx.updateComment(reply, &alone); err != nil {
			return false, err
		}
	}
	return false, nil
}

// dropComments removes comments of an issue that is being deleted, newest first, so
// that a reply goes before its parent, and reports whether some are left.
func (tx *Tx) dropComments(issue *storage.Row[Issue], work *workBudget) (more bool, err error) {
	id := issue.Value.id()
	keys, err := tx.rowKeys(commentTable, id[:], work.left+1)
	if err != nil {
		return false, fmt.Errorf("list comments: %w", err)
	}
	for _, rest := range keys {
		if work.spent() {
			return true, nil
		}
		c, err := tx.storedComment(append(id[:len(id):len(id)], rest...), issue.Header)
		if err != nil {
			return false, err
		}
		if err := tx.eraseComment(c); err != nil {
			return false, err
		}
	}
	return false, nil
}

// storedComment reads a comment by the key that an index or its table has.
func (tx *Tx) storedComment(pk []byte, issue storage.Header) (*placedComment, error) {
	row, err := comments.Get(tx, pk)
	if err != nil {
		return nil, fmt.Errorf("read a comment: %w", err)
	}
	if row == nil {
		return nil, fmt.Errorf("an index names a comment that is not there: %x", pk)
	}
	return &placedComment{row, issue}, nil
}
