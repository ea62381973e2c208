package tracker

import (
	"reflect"

	"switchyard/storage"
)

// PatchTicketIn changes a ticket. Absent fields stay as they are.
type PatchTicketIn struct {
	ID         string            `path:"id"`
	Status     Opt[TicketStatus] `json:"status" enum:"open,pending,closed"`
	AssigneeID Opt[string]       `json:"assigneeId" rules:"nullable,min=1,max=255"`
	// IssueID names an issue that the caller may see.
	IssueID Opt[IssueID] `json:"issueId" rules:"nullable,max=255"`
}

// PatchTicket changes a ticket.
var PatchTicket = NewCommand[PatchTicketIn, Ticket]("PatchTicket", "Change a ticket", Needs{Level: Write}, patchTicket)

func patchTicket(tx *Tx, in *PatchTicketIn) (Reply, error) {
	row, err := recordIn(&tx.View, &tickets, in.ID, "ticket")
	if err != nil {
		return Reply{}, err
	}
	t := row.Value
	t.Status = in.Status.Or(t.Status)
	assign(&t.AssigneeID, &in.AssigneeID)
	// An issue that it already has is not looked at: the caller need not see it.
	if issue := in.IssueID.Ptr(); issue != nil && (t.IssueID == nil || *t.IssueID != *issue) {
		id, ok := storage.ParseID(*issue)
		if ok {
			if ok, err = tx.hasIssue(id); err != nil {
				return Reply{}, err
			}
		}
		if !ok {
			return Reply{}, BadRequest(Fault{Path: "issueId", Message: "There is no such issue."})
		}
	}
	assign(&t.IssueID, &in.IssueID)
	if reflect.DeepEqual(t, row.Value) {
		return jsonReply(Done, &t)
	}
	body, err := tx.updateTicket(row, &t)
	return Reply{Body: body}, err
}
