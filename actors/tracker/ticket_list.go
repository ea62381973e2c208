package tracker

import (
	"fmt"

	"switchyard/storage"
)

// ListTicketsIn asks for a page of tickets.
type ListTicketsIn struct {
	Status    TicketStatus `query:"status"`
	ChannelID string       `query:"channelId" rules:"max=255"`
	Limit     int          `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor    string       `query:"cursor" rules:"max=1024"`
}

// TicketList is the answer to ListTickets.
type TicketList struct {
	Tickets    []Ticket `json:"tickets"`
	NextCursor string   `json:"nextCursor,omitempty"`
}

// ListTickets lists the tickets that match the filters, newest first.
var ListTickets = NewQuery[ListTicketsIn, TicketList]("ListTickets", "List tickets", Needs{Level: Read}, listTickets, FromSnapshot)

func listTickets(v *View, in *ListTicketsIn) (Reply, error) {
	p, err := newPage(v.Buf, pageSpec{
		name: "tickets", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(v.Workspace(), "tickets", Some(string(in.Status)), Some(in.ChannelID)),
		keyLen: storage.ListedKeyLen,
	})
	if err != nil {
		return Reply{}, err
	}
	var matches []storage.Match
	if in.Status != "" {
		matches = append(matches, storage.Equal(ticketByStatus, storage.Key(nil).Byte(in.Status.rank())))
	}
	if in.ChannelID != "" {
		matches = append(matches, storage.Equal(ticketByChannel, storage.Key(nil).Str(in.ChannelID)))
	}
	s := visibility{v: v}
	err = p.fill(
		func(fn eachRecord) ([]byte, error) {
			leaps := maxLeaps
			return tickets.ListWithin(v, matches, p.after, &leaps, fn)
		},
		func([]byte, storage.Record) (bool, error) { return true, nil },
		func(b []byte, rec storage.Record) ([]byte, error) {
			b, _, err := s.appendLinked(b, rec.JSON(), "issueId")
			return b, err
		})
	if err != nil {
		return Reply{}, fmt.Errorf("list tickets: %w", err)
	}
	return p.reply(), nil
}
