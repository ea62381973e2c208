package tracker

import (
	"crypto/sha256"
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
	about := in.about(v.Workspace())
	after, err := parseCursorKey(in.Cursor, ticketTable, about)
	if err != nil {
		return Reply{}, err
	}
	if after != nil && len(after) != storage.ListedKeyLen {
		return Reply{}, BadRequest(Fault{Path: "query.cursor", Message: "Not a valid cursor. Send the nextCursor of a page as it is."})
	}
	var matches []storage.Match
	if in.Status != "" {
		matches = append(matches, storage.Equal(ticketByStatus, storage.Key(nil).Byte(in.Status.rank())))
	}
	if in.ChannelID != "" {
		matches = append(matches, storage.Equal(ticketByChannel, storage.Key(nil).Str(in.ChannelID)))
	}
	p := newPage(v.Buf, "tickets", in.Limit)
	s := visibility{v: v}
	var body []byte
	leaps := maxLeaps
	resume, err := tickets.ListWithin(v, matches, after, &leaps, func(pk []byte, rec storage.Record) (bool, error) {
		var err error
		body, _, err = s.appendLinked(body[:0], rec.JSON(), "issueId")
		return err == nil && p.add(pk, body), err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list tickets: %w", err)
	}
	if resume != nil {
		p.more, p.last = true, resume
	}
	return p.reply(ticketTable, about), nil
}

// about returns an id that binds a cursor to its query.
func (in *ListTicketsIn) about(workspace storage.ID) (id storage.ID) {
	sum := sha256.Sum256(append(storage.Key(nil).ID(workspace).Str(string(in.Status)).Str(in.ChannelID), 't'))
	copy(id[:], sum[:])
	return id
}
