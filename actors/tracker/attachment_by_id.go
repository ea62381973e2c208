package tracker

import "switchyard/storage"

// AttachmentByIDIn identifies an attachment, and the content that the caller has.
type AttachmentByIDIn struct {
	ID          string `path:"id"`
	IfNoneMatch string `header:"If-None-Match"`
}

// AttachmentByID returns the bytes of an attachment. It reads a snapshot, since a
// deletion of the issue takes several batches.
var AttachmentByID = NewQuery[AttachmentByIDIn, None]("AttachmentByID", "Get an attachment's content", Needs{Read, "issues"}, attachmentByID,
	FromSnapshot, AnswersFile(string(MediaPNG), string(MediaJPEG), string(MediaWebP)), Answers(Done, NotModified))

func attachmentByID(v *View, in *AttachmentByIDIn) (Reply, error) {
	id, ok := storage.ParseID(in.ID)
	if !ok {
		return Reply{}, NotFound("attachment")
	}
	a, err := v.attachment(id)
	if err != nil {
		return Reply{}, err
	}
	if a == nil {
		return Reply{}, NotFound("attachment")
	}
	reply := Reply{ETag: `"` + a.SHA256 + `"`, File: &File{Name: a.Name, ContentType: string(a.ContentType)}}
	if in.IfNoneMatch != "" && tagListed(in.IfNoneMatch, reply.ETag, true) {
		reply.Outcome = NotModified
		return reply, nil
	}
	reply.Body, err = v.content(a, v.Buf)
	return reply, err
}
