package tracker

// ShareByIssue returns the active share of an issue, or null.
var ShareByIssue = NewQuery[IssueIn, *IssueShare]("ShareByIssue", "Get an issue's share", Needs{Read, "issues"}, shareByIssue, FromSnapshot, WithSecret)

func shareByIssue(v *View, in *IssueIn) (Reply, error) {
	id, err := v.seenIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	share, err := v.activeShare(id)
	if err != nil {
		return Reply{}, err
	}
	if share == nil {
		return Reply{Body: append(v.Buf[:0], "null"...)}, nil
	}
	return jsonReply(Done, &share.Value)
}
