package tracker

import (
	"fmt"

	"switchyard/storage"
)

// receiveMessageIn is a message from outside, of any kind of source.
type receiveMessageIn struct {
	inboundCall
	From    string `json:"from"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	// ThreadID is the source's id of the conversation.
	ThreadID *string `json:"threadId"`
	// Fresh says that a message after the close of a conversation starts a new ticket;
	// otherwise it reopens the old one.
	Fresh bool `json:"fresh"`
}

// receiveMessageOp adds a message to its conversation's ticket, or creates one.
var receiveMessageOp = NewCommand[receiveMessageIn, InboundAnswer]("ReceiveMessage", "Receive a message from outside", Needs{}, func(tx *Tx, in *receiveMessageIn) (Reply, error) {
	if first, err := tx.recordCall(in.inboundCall); err != nil || !first {
		return repeatedUnless(err)
	}
	row, err := tx.conversation(in)
	if err != nil {
		return Reply{}, err
	}
	m := TicketMessage{Direction: Inbound, From: &in.From, Body: in.Text}
	if row, _, err = tx.addMessage(row, &m, TicketOpen); err != nil {
		return Reply{}, err
	}
	return accepted(InboundAnswer{TicketID: row.Value.ID, MessageID: m.ID})
})

// conversation returns the ticket that a message belongs to, or creates it.
func (tx *Tx) conversation(in *receiveMessageIn) (*storage.Row[Ticket], error) {
	if in.ThreadID != nil {
		row, err := tx.ticketOf(in.Source, *in.ThreadID, in.Fresh)
		if err != nil || row != nil {
			return row, err
		}
	}
	channel, err := tx.channelFor(in.Source)
	if err != nil {
		return nil, err
	}
	subject := in.Subject
	if subject == "" {
		subject = shorten(firstLine(in.Text), maxSubject)
	}
	return tx.addTicket(&Ticket{ChannelID: channel, Source: in.Source, ThreadID: in.ThreadID, Subject: subject, From: in.From})
}

// recentTickets is the number of a conversation's tickets that are searched for one
// that is not closed.
const recentTickets = 20

// ticketOf returns the newest ticket of a conversation, or with open the newest that is
// not closed; nil if there is none.
func (tx *Tx) ticketOf(source, thread string, open bool) (*storage.Row[Ticket], error) {
	limit := 1
	if open {
		limit = recentTickets
	}
	keys, err := tx.rowKeys(ticketByThread, threadKey(nil, source, thread), limit)
	if err != nil {
		return nil, fmt.Errorf("look for a conversation: %w", err)
	}
	for _, pk := range keys {
		row, err := tickets.Get(tx, pk)
		if err != nil {
			return nil, fmt.Errorf("read a ticket: %w", err)
		}
		if row == nil {
			return nil, fmt.Errorf("%w: an index entry names a ticket that is not there", storage.ErrFormat)
		}
		if !open || row.Value.Status != TicketClosed {
			return row, nil
		}
	}
	return nil, nil
}
