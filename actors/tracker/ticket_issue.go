package tracker

import (
	"fmt"
	"strings"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// TicketIssueIn turns a ticket into an issue. Absent fields come from the ticket: the
// title is its subject, the description its first message.
type TicketIssueIn struct {
	TicketID    string             `path:"id"`
	Title       Opt[string]        `json:"title" rules:"min=1,max=1000"`
	Description Opt[string]        `json:"description" rules:"nullable,max=262144"`
	TeamID      Opt[TeamID]        `json:"teamId" rules:"max=255"`
	TeamKey     Opt[string]        `json:"teamKey" rules:"max=255"`
	Status      Opt[IssueStatus]   `json:"status"`
	Priority    Opt[IssuePriority] `json:"priority"`
	AssigneeID  Opt[string]        `json:"assigneeId" rules:"nullable,min=1,max=255"`
	ProjectID   Opt[string]        `json:"projectId" rules:"nullable,min=1,max=255"`
	LabelIDs    Opt[[]string]      `json:"labelIds" rules:"nullable,max=100" items:"min=1,max=255"`
}

// CreateTicketIssue makes an issue of a ticket, in triage by default. It returns
// CONFLICT if the ticket has an issue.
var CreateTicketIssue = NewCommand[TicketIssueIn, CreatedIssue]("CreateTicketIssue", "Turn a ticket into an issue", Needs{Level: Write}, createTicketIssue, Answers(Created))

func createTicketIssue(tx *Tx, in *TicketIssueIn) (Reply, error) {
	row, err := recordIn(&tx.View, &tickets, in.TicketID, "ticket")
	if err != nil {
		return Reply{}, err
	}
	if row.Value.IssueID != nil {
		return Reply{}, Conflict("The ticket has an issue already.", "Look at the ticket's issueId, which is null when you may not see the issue, or give it another.")
	}
	asked := CreateIssueIn{Title: in.Title.Or(""), IssueFields: IssueFields{
		Description: in.Description, TeamID: in.TeamID, TeamKey: in.TeamKey, Status: Some(in.Status.Or(StatusTriage)), Priority: in.Priority,
		AssigneeID: in.AssigneeID, ProjectID: in.ProjectID, LabelIDs: in.LabelIDs,
	}}
	if err := tx.fromTicket(&row.Value, &asked); err != nil {
		return Reply{}, err
	}
	reply, err := createIssue(tx, &asked)
	if err != nil {
		return Reply{}, err
	}
	var made struct {
		ID IssueID `json:"id"`
	}
	if err := json.Unmarshal(reply.Body, &made); err != nil {
		return Reply{}, fmt.Errorf("read the new issue: %w", err)
	}
	t := row.Value
	t.IssueID = &made.ID
	return reply, tx.updateTicket(row, &t)
}

// fromTicket fills in the title and description from the ticket.
func (tx *Tx) fromTicket(t *Ticket, asked *CreateIssueIn) error {
	first, err := tx.firstMessage(t)
	if err != nil {
		return err
	}
	if asked.Title == "" {
		asked.Title = t.Subject
	}
	if asked.Title == "" {
		asked.Title = firstLine(first)
	}
	if asked.Title == "" {
		asked.Title = "Ticket from " + t.From
	}
	asked.Title = shorten(asked.Title, 1000)
	if !asked.Description.Set {
		asked.Description = Some("From " + t.From + " by " + t.Source + ":\n\n> " + strings.ReplaceAll(first, "\n", "\n> "))
		if asked.Description.Value = shorten(asked.Description.Value, 262_144); first == "" {
			asked.Description.Value = "From " + t.From + " by " + t.Source + "."
		}
	}
	return nil
}

// firstMessage returns the text of a ticket's oldest message, or "".
func (v *View) firstMessage(t *Ticket) (text string, err error) {
	ticket, _ := storage.ParseID(t.ID)
	keys, err := v.rowKeys(ticketMessageTable, ticket[:], maxTicketMessages)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	row, err := ticketMessages.Get(v, append(ticket[:], keys[len(keys)-1]...))
	if err != nil || row == nil {
		return "", err
	}
	return row.Value.Body, nil
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
