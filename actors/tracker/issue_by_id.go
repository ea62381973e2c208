package tracker

import "switchyard/storage"

// IssueByIDIn names an issue, and the version the caller already has.
type IssueByIDIn struct {
	ID          string `path:"id"`
	IfNoneMatch string `header:"If-None-Match"`
}

// IssueByID reads one issue.
var IssueByID = NewQuery[IssueByIDIn, Issue]("IssueByID", "Get an issue", Needs{Read, "issues"}, issueByID, ForLanes)

func issueByID(v *View, in *IssueByIDIn) (Reply, error) {
	id, ok := storage.ParseID(in.ID)
	if !ok {
		return Reply{}, NotFound("issue")
	}
	reply, seen := Reply{}, false
	_, err := issues.Record(v, issueKey(id), func(rec storage.Record) (err error) {
		if seen, err = v.seesIssue(rec); err != nil || !seen {
			return err
		}
		reply.ETag = etag(rec.Version())
		if in.IfNoneMatch != "" && tagListed(in.IfNoneMatch, reply.ETag, true) {
			reply.Outcome = NotModified
			return nil
		}
		v.Buf = append(v.Buf[:0], rec.JSON()...)
		reply.Body = v.Buf
		return nil
	})
	if err == nil && !seen {
		err = NotFound("issue")
	}
	return reply, err
}
