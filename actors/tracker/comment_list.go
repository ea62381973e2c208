package tracker

import (
	"fmt"

	"switchyard/storage"
)

// ListCommentsIn asks for a page of an issue's comments.
type ListCommentsIn struct {
	IssueID string `path:"id"`
	Limit   int    `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor  string `query:"cursor" rules:"max=1024"`
}

// CommentList is the answer to ListComments.
type CommentList struct {
	Comments   []Comment `json:"comments"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// ListComments lists the comments of an issue, newest first.
var ListComments = NewQuery[ListCommentsIn, CommentList]("ListComments", "List an issue's comments", Needs{Read, "issues"}, listComments, FromSnapshot)

func listComments(v *View, in *ListCommentsIn) (Reply, error) {
	issue, _, err := v.issueHeadIn(in.IssueID)
	if err != nil {
		return Reply{}, err
	}
	p, err := newPage(v.Buf, pageSpec{name: "comments", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(issue, "comments")})
	if err != nil {
		return Reply{}, err
	}
	err = comments.Scan(v, issue[:], behind(issue[:], p.after), func(pk []byte, rec storage.Record) (bool, error) {
		return p.add(pk[len(issue):], rec.JSON()), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list comments: %w", err)
	}
	return p.reply(), nil
}
