package tracker

import (
	"fmt"

	"switchyard/storage"
)

// ListAttachmentsIn asks for the attachments of an issue.
type ListAttachmentsIn struct {
	ID string `path:"id"`
	PageIn
}

// AttachmentList is the answer to ListAttachments.
type AttachmentList struct {
	Attachments []Attachment `json:"attachments"`
	NextCursor  string       `json:"nextCursor,omitempty"`
}

// ListAttachments lists the attachments of an issue, newest first.
var ListAttachments = NewQuery[ListAttachmentsIn, AttachmentList]("ListAttachments", "List an issue's attachments", Needs{Read, "issues"}, listAttachments, FromSnapshot)

func listAttachments(v *View, in *ListAttachmentsIn) (Reply, error) {
	id, seen := storage.ParseID(in.ID)
	if seen {
		var err error
		if seen, err = v.hasIssue(id); err != nil {
			return Reply{}, err
		}
	}
	if !seen {
		return Reply{}, NotFound("issue")
	}
	p, err := newPage(v.Buf, pageSpec{name: "attachments", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(id, "attachments")})
	if err != nil {
		return Reply{}, err
	}
	ofIssue := []storage.Match{storage.Equal(attachmentByIssue, storage.Key(nil).ID(id))}
	err = attachments.List(v, ofIssue, p.after, func(pk []byte, rec storage.Record) (bool, error) {
		return p.add(pk, rec.JSON()), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list attachments: %w", err)
	}
	return p.reply(), nil
}
