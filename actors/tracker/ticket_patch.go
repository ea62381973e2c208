package tracker

import (
	"reflect"

	"switchyard/storage"
)

// PatchTicketIn changes a ticket. Absent fields stay as they are.
type PatchTicketIn struct {
	ID         string            `path:"id"`
	Status     Opt[TicketStatus] `json:"status"`
	AssigneeID Opt[string]       `json:"assigneeId" rules:"nullable,min=1,max=255"`
	// IssueID is an issue that the caller may see.
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
	if err := tx.linkTicket(&t, in.IssueID); err != nil {
		return Reply{}, err
	}
	if !reflect.DeepEqual(t, row.Value) {
		if err := tx.updateTicket(row, &t); err != nil {
			return Reply{}, err
		}
	}
	return tx.showTicket(&t)
}

// linkTicket sets or clears a ticket's issue. As with parents, null does not clear an
// issue that the caller may not see; only another issue replaces it (Decision 26).
func (tx *Tx) linkTicket(t *Ticket, issue Opt[IssueID]) error {
	if !issue.Set {
		return nil
	}
	hidden, err := tx.hidesIssue(t)
	if err != nil || hidden && issue.Null {
		return err
	}
	if !issue.Null {
		id, ok := storage.ParseID(issue.Value)
		if ok {
			if ok, err = tx.hasIssue(id); err != nil {
				return err
			}
		}
		if !ok {
			return BadRequest(Fault{Path: "issueId", Message: "There is no such issue."})
		}
	}
	t.IssueID = issue.Ptr()
	return nil
}
