package tracker

// CreateCommentIn is a new comment on an issue, or a reply to another comment.
type CreateCommentIn struct {
	IssueID  string         `path:"id"`
	Body     string         `json:"body" rules:"required,min=1,max=65536"`
	ParentID Opt[CommentID] `json:"parentId" rules:"nullable,max=255"`
}

// CreateComment adds a comment to an issue that the caller may see.
var CreateComment = NewCommand[CreateCommentIn, Comment]("CreateComment", "Comment on an issue", Needs{Write, "issues"}, createComment, Answers(Created))

func createComment(tx *Tx, in *CreateCommentIn) (Reply, error) {
	issue, head, err := tx.issueHeadIn(in.IssueID)
	if err != nil {
		return Reply{}, err
	}
	_, body, err := tx.addComment(issue, head, in.Body, in.ParentID.Ptr(), "parentId")
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: Created, Body: body}, nil
}
