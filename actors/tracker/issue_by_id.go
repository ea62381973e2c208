package tracker

import "switchyard/storage"

// IssueByIDIn identifies an issue, and the version that the caller has.
type IssueByIDIn struct {
	ID          string `path:"id"`
	IfNoneMatch string `header:"If-None-Match"`
}

// IssueByID reads one issue.
var IssueByID = NewQuery[IssueByIDIn, Issue]("IssueByID", "Get an issue", Needs{Read, "issues"}, issueByID, ForLanes, Answers(Done, NotModified))

func issueByID(v *View, in *IssueByIDIn) (Reply, error) {
	id, ok := storage.ParseID(in.ID)
	if !ok {
		return Reply{}, NotFound("issue")
	}
	reply, alone, err := v.readIssue(id, in.IfNoneMatch, false)
	if err == nil && !alone {
		// Several look-ups decide, so all must read the same snapshot.
		err = v.ofOneMoment(func() (err error) { reply, _, err = v.readIssue(id, in.IfNoneMatch, true); return err })
	}
	return reply, err
}

// readIssue answers with an issue as the caller may see it. Without a snapshot
// (settled) it does so only if the issue's record alone decides; alone is false if it
// does not.
func (v *View) readIssue(id storage.ID, ifNoneMatch string, settled bool) (reply Reply, alone bool, err error) {
	seen := false
	found, err := issues.Record(v, issueKey(id), func(rec storage.Record) (err error) {
		alone = v.Caller.Level >= Admin || rec.Flags()&(issueRestricted|issueHasParent) == 0
		if !alone && !settled {
			return nil
		}
		if seen, err = v.canViewIssue(rec); err != nil || !seen {
			return err
		}
		if ifNoneMatch != "" && (v.Caller.Level >= Admin || rec.Flags()&issueHasParent == 0) {
			// All of it is shown, so the version alone makes the tag.
			if tag := shownETag(rec.Version(), true); tagListed(ifNoneMatch, tag, true) {
				reply.ETag, reply.Outcome = tag, NotModified
				return nil
			}
		}
		if err := v.awaitTurn(rec); err != nil {
			return err
		}
		body, whole, err := (&visibility{v: v}).append(v.Buf[:0], rec)
		if err != nil {
			return err
		}
		v.Buf = body
		if reply.ETag = shownETag(rec.Version(), whole); ifNoneMatch != "" && tagListed(ifNoneMatch, reply.ETag, true) {
			reply.Outcome = NotModified
			return nil
		}
		reply.Body = body
		return nil
	})
	if err == nil && (!found || !seen && (alone || settled)) {
		alone, err = true, NotFound("issue")
	}
	return reply, alone, err
}
