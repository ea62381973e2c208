package tracker

// TicketByID reads one ticket.
var TicketByID = NewQuery[RecordIn, Ticket]("TicketByID", "Get a ticket", Needs{Level: Read}, ticketByID)

func ticketByID(v *View, in *RecordIn) (Reply, error) {
	row, err := recordIn(v, &tickets, in.ID, "ticket")
	if err != nil {
		return Reply{}, err
	}
	return v.showTicket(&row.Value)
}
