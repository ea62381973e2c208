package tracker

import (
	"fmt"
	"unicode/utf8"

	"switchyard/storage"
)

// TicketMessageID is the id of a message of a ticket.
type TicketMessageID string

// Direction is the direction of a message of a ticket.
type Direction string

// The directions.
const (
	// Inbound messages come from outside.
	Inbound Direction = "inbound"
	// Outbound messages are the workspace's answers.
	Outbound Direction = "outbound"
)

// EnumValues implements Enumerated.
func (Direction) EnumValues() []string {
	return enumTexts([]Direction{Inbound, Outbound})
}

// TicketMessage is one message of a ticket's conversation.
type TicketMessage struct {
	ID             TicketMessageID `json:"id"`
	OrganizationID WorkspaceID     `json:"organizationId"`
	TicketID       TicketID        `json:"ticketId"`
	Direction      Direction       `json:"direction"`
	// From is the author as the source names it; null for the workspace's own messages.
	From       *string   `json:"from"`
	AuthorID   string    `json:"authorId"`
	AuthorType ActorType `json:"authorType"`
	Body       string    `json:"body"`
	CreatedAt  Timestamp `json:"createdAt"`
}

const (
	// maxTicketMessages limits the messages of one ticket.
	maxTicketMessages = 10_000
	// Limits of a message's parts, in characters.
	maxMessageText = 65_536
	maxSubject     = 1_000
	maxFrom        = 500
	maxThread      = 255
)

// ticketMessages holds the messages of tickets; those of one ticket are together,
// newest first.
var ticketMessages = storage.Table[TicketMessage]{
	ID:   ticketMessageTable,
	Name: "ticketMessage",
	Key: func(k storage.Key, m *TicketMessage) storage.Key {
		ticket, _ := storage.ParseID(m.TicketID)
		return newestKey(k.ID(ticket), m.ID)
	},
}

var _ = declareTable(&ticketMessages)

// addTicket stores a new ticket with its event.
func (tx *Tx) addTicket(t *Ticket) (*storage.Row[Ticket], error) {
	id, err := tx.newRecordID(ticketTable)
	if err != nil {
		return nil, err
	}
	now := At(tx.now)
	t.ID, t.OrganizationID, t.Status = TicketID(id), WorkspaceID(tx.Workspace().String()), TicketOpen
	t.LastMessageAt, t.CreatedAt, t.UpdatedAt = now, now, now
	body, err := tickets.Insert(tx, t)
	if err != nil {
		return nil, fmt.Errorf("store a ticket: %w", err)
	}
	return &storage.Row[Ticket]{Header: toAll, Value: *t}, tx.Emit(eventTicketCreated, toAll, body, nil)
}

// addMessage adds a message to a ticket read in this Tx, with its event, and sets the
// ticket's status. It returns the new state of the ticket, and the JSON of the message.
func (tx *Tx) addMessage(row *storage.Row[Ticket], m *TicketMessage, status TicketStatus) (*storage.Row[Ticket], []byte, error) {
	if row.Value.MessageCount >= maxTicketMessages {
		return nil, nil, Conflict(fmt.Sprintf("The ticket has %d messages, the most there can be.", maxTicketMessages), "Go on in another ticket.")
	}
	id, err := tx.NewID()
	if err != nil {
		return nil, nil, fmt.Errorf("make a message's id: %w", err)
	}
	t := row.Value
	m.ID, m.OrganizationID, m.TicketID, m.CreatedAt = TicketMessageID(id.String()), t.OrganizationID, t.ID, At(tx.now)
	m.AuthorID, m.AuthorType = tx.Caller.ID, tx.Caller.Type
	body, err := ticketMessages.Insert(tx, m)
	if err != nil {
		return nil, nil, fmt.Errorf("store a message: %w", err)
	}
	if err := tx.Emit(eventTicketMessage, toAll, body, nil); err != nil {
		return nil, nil, err
	}
	t.MessageCount++
	t.Status, t.LastMessageAt = status, m.CreatedAt
	if err := tx.updateTicket(row, &t); err != nil {
		return nil, nil, err
	}
	next := *row
	next.Version++
	next.Value = t
	return &next, body, nil
}

// shorten cuts a text to so many characters.
func shorten(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}
