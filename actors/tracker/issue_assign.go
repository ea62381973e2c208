package tracker

// AssignIssueIn says who an issue is assigned to; null takes it from whom it was.
type AssignIssueIn struct {
	ID         string      `path:"id"`
	IfMatch    string      `header:"If-Match"`
	AssigneeID Opt[string] `json:"assigneeId" rules:"required,nullable,min=1,max=255"`
}

// AssignedIssue is the answer to AssignIssue.
type AssignedIssue struct {
	Issue Issue `json:"issue"`
	// Session is what the assignment dispatched; absent when it dispatched nothing.
	Session *ShownSession `json:"session,omitempty"`
}

// AssignIssue gives an issue another assignee, or none (Decision 30).
var AssignIssue = NewCommand[AssignIssueIn, AssignedIssue]("AssignIssue", "Assign an issue", Needs{Write, "issues"}, assignIssue)

func assignIssue(tx *Tx, in *AssignIssueIn) (Reply, error) {
	reply, err := patchIssue(tx, &PatchIssueIn{
		ID: in.ID, IfMatch: in.IfMatch, IssuePatch: IssuePatch{IssueFields: IssueFields{AssigneeID: in.AssigneeID}},
	})
	if err != nil {
		return Reply{}, err
	}
	issue, session := reply.Body, tx.dispatchedSession()
	reply.Body = append(append(make([]byte, 0, len(issue)+len(session)+24), `{"issue":`...), issue...)
	if session != nil {
		reply.Body = append(append(reply.Body, `,"session":`...), session...)
	}
	reply.Body = append(reply.Body, '}')
	return reply, nil
}
