package tracker

// AssignIssueIn is the new assignee of an issue; null for none.
type AssignIssueIn struct {
	ID         string      `path:"id"`
	IfMatch    string      `header:"If-Match" rules:"min=1"`
	AssigneeID Opt[string] `json:"assigneeId" rules:"required,nullable,min=1,max=255"`
}

// AssignedIssue is the answer to AssignIssue.
type AssignedIssue struct {
	Issue Issue `json:"issue"`
	// Session is the session that the assignment dispatched; absent if it dispatched
	// none.
	Session *ShownSession `json:"session,omitempty"`
}

// AssignIssue sets or clears the assignee of an issue (Decision 30).
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
