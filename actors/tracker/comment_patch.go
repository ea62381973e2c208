package tracker

// PatchCommentIn changes a comment.
type PatchCommentIn struct {
	ID   string      `path:"id"`
	Body Opt[string] `json:"body" rules:"min=1,max=65536"`
}

// PatchComment changes the text of a comment. Only its author and admins may.
var PatchComment = NewCommand[PatchCommentIn, Comment]("PatchComment", "Change a comment", Needs{Write, "issues"}, patchComment)

func patchComment(tx *Tx, in *PatchCommentIn) (Reply, error) {
	old, err := tx.comment(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if old == nil {
		return Reply{}, NotFound("comment")
	}
	if err := old.Value.mayEdit(tx.Caller); err != nil {
		return Reply{}, err
	}
	if err := tx.refuseArchivedHead(old.on(), old.issue); err != nil {
		return Reply{}, err
	}
	c := old.Value
	c.Body = in.Body.Or(c.Body)
	if c.Body == old.Value.Body {
		return jsonReply(Done, &c)
	}
	body, err := tx.updateComment(old, &c)
	return Reply{Body: body}, err
}
