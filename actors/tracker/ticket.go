package tracker

import (
	"fmt"

	"switchyard/storage"
)

// TicketID names a ticket.
type TicketID string

// TicketStatus says whether a ticket wants attention.
type TicketStatus string

// The statuses of a ticket.
const (
	TicketOpen    TicketStatus = "open"
	TicketPending TicketStatus = "pending"
	TicketClosed  TicketStatus = "closed"
)

// ticketStatuses lists every status; a status's place in it is its byte in the index, so
// the order is part of the format on disk.
var ticketStatuses = [...]TicketStatus{TicketOpen, TicketPending, TicketClosed}

func (s TicketStatus) rank() byte { return rankOf(ticketStatuses[:], s) }

// EnumValues implements Enumerated.
func (TicketStatus) EnumValues() []string { return enumTexts(ticketStatuses[:]) }

// Ticket is a conversation with a person outside, made from their messages. The whole
// workspace sees it.
type Ticket struct {
	ID             TicketID    `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	// ChannelID is the support channel it came through, where one fits.
	ChannelID *ChannelID `json:"channelId"`
	// Source is where it came from: a source of comms, helpdesk1 or sms.
	Source string `json:"source"`
	// ThreadID is the source's own name of the conversation.
	ThreadID     *string      `json:"threadId"`
	Subject      string       `json:"subject"`
	From         string       `json:"from"`
	Status       TicketStatus `json:"status"`
	AssigneeID   *string      `json:"assigneeId"`
	IssueID      *IssueID     `json:"issueId"`
	MessageCount int64        `json:"messageCount"`
	// LastMessageAt is when the last message came.
	LastMessageAt Timestamp `json:"lastMessageAt"`
	CreatedAt     Timestamp `json:"createdAt"`
	UpdatedAt     Timestamp `json:"updatedAt"`
}

// Types of events about tickets.
var (
	eventTicketCreated = newEventKind("ticket.created", "", onTicket)
	eventTicketUpdated = newEventKind("ticket.updated", "", onTicket)
	eventTicketMessage = newEventKind("ticket.message", "", onTicket)
)

var tickets = storage.Table[Ticket]{
	ID:   ticketTable,
	Name: "ticket",
	Key:  func(k storage.Key, t *Ticket) storage.Key { return newestKey(k, t.ID) },
	Indexes: []storage.Index[Ticket]{
		{ID: ticketByStatus, Name: "status", Entries: func(e *storage.Entries, t *Ticket) {
			e.Add(e.Key().Byte(t.Status.rank()))
		}},
		{ID: ticketByChannel, Name: "channel", Entries: func(e *storage.Entries, t *Ticket) {
			if t.ChannelID != nil {
				e.Add(e.Key().Str(string(*t.ChannelID)))
			}
		}},
		{ID: ticketByThread, Name: "thread", Entries: func(e *storage.Entries, t *Ticket) {
			if t.ThreadID != nil {
				e.Add(threadKey(e.Key(), t.Source, *t.ThreadID))
			}
		}},
		{ID: ticketByIssue, Name: "issue", Entries: func(e *storage.Entries, t *Ticket) {
			if t.IssueID != nil {
				id, _ := storage.ParseID(*t.IssueID)
				e.Add(e.Key().ID(id))
			}
		}},
	},
}

var _ = declareTable(&tickets, newestFirst, atMost(1_000_000, "tickets"))

func threadKey(k storage.Key, source, thread string) storage.Key {
	return k.Str(source).Str(thread)
}

// toAll is the header of events that the whole workspace sees: those about tickets,
// deals, and what providers send.
var toAll = storage.Header{Version: 1}

// updateTicket stores the new value of a ticket. The event of a message covers the changes
// that the message makes; any other change has an event of its own.
func (tx *Tx) updateTicket(old *storage.Row[Ticket], t *Ticket) error {
	var list changes
	note(&list, "status", &old.Value.Status, &t.Status)
	note(&list, "assigneeId", old.Value.AssigneeID, t.AssigneeID)
	note(&list, "issueId", old.Value.IssueID, t.IssueID)
	if len(list) > 0 || t.MessageCount != old.Value.MessageCount {
		t.UpdatedAt = At(tx.now)
	}
	body, err := tickets.Update(tx, old, t)
	if err != nil {
		return fmt.Errorf("store a ticket: %w", err)
	}
	if len(list) > 0 {
		return tx.Emit(eventTicketUpdated, toAll, body, list)
	}
	return nil
}

// hidesIssue reports whether a ticket has an issue that the caller may not see.
func (v *View) hidesIssue(t *Ticket) (bool, error) {
	if t.IssueID == nil {
		return false, nil
	}
	id, _ := storage.ParseID(*t.IssueID)
	seen, err := (&visibility{v: v}).links(id)
	return !seen, err
}

// showTicket answers with a ticket as the caller may see it: without an issue that the
// caller may not see (Decision 26).
func (v *View) showTicket(t *Ticket) (Reply, error) {
	hidden, err := v.hidesIssue(t)
	if err != nil {
		return Reply{}, err
	}
	shown := *t
	if hidden {
		shown.IssueID = nil
	}
	return jsonReply(Done, &shown)
}

// unlinkTickets removes an issue that is being deleted from the tickets that name it, and
// reports whether some are left.
func (tx *Tx) unlinkTickets(issue *storage.Row[Issue], work *workBudget) (more bool, err error) {
	id := issue.Value.id()
	keys, err := tx.rowKeys(ticketByIssue, id[:], work.left+1)
	if err != nil {
		return false, fmt.Errorf("list an issue's tickets: %w", err)
	}
	for _, pk := range keys {
		if work.spent() {
			return true, nil
		}
		row, err := tickets.Get(tx, pk)
		if err != nil {
			return false, fmt.Errorf("read a ticket: %w", err)
		}
		if row == nil {
			return false, fmt.Errorf("issue %s: an index names a ticket that is not there", issue.Value.ID)
		}
		alone := row.Value
		alone.IssueID = nil
		if err := tx.updateTicket(row, &alone); err != nil {
			return false, err
		}
	}
	return false, nil
}
