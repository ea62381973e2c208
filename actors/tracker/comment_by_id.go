package tracker

// CommentByID reads one comment.
var CommentByID = NewQuery[RecordIn, Comment]("CommentByID", "Get a comment", Needs{Read, "issues"}, readComment, FromSnapshot)

func readComment(v *View, in *RecordIn) (Reply, error) {
	c, err := v.comment(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if c == nil {
		return Reply{}, NotFound("comment")
	}
	return jsonReply(Done, &c.Value)
}
