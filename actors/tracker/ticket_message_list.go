package tracker

import (
	"fmt"

	"switchyard/storage"
)

// ListTicketMessagesIn asks for a page of a ticket's messages.
type ListTicketMessagesIn struct {
	TicketID string `path:"id"`
	Limit    int    `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor   string `query:"cursor" rules:"max=1024"`
}

// TicketMessageList is the answer to ListTicketMessages.
type TicketMessageList struct {
	Messages   []TicketMessage `json:"messages"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

// ListTicketMessages lists the messages of a ticket, newest first.
var ListTicketMessages = NewQuery[ListTicketMessagesIn, TicketMessageList]("ListTicketMessages", "List a ticket's messages", Needs{Level: Read}, listTicketMessages, FromSnapshot)

func listTicketMessages(v *View, in *ListTicketMessagesIn) (Reply, error) {
	row, err := recordIn(v, &tickets, in.TicketID, "ticket")
	if err != nil {
		return Reply{}, err
	}
	ticket, _ := storage.ParseID(row.Value.ID)
	p, err := newPage(v.Buf, pageSpec{name: "messages", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(ticket, "messages")})
	if err != nil {
		return Reply{}, err
	}
	err = ticketMessages.Scan(v, ticket[:], behind(ticket[:], p.after), func(pk []byte, rec storage.Record) (bool, error) {
		return p.add(pk[len(ticket):], rec.JSON()), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list messages: %w", err)
	}
	return p.reply(), nil
}
