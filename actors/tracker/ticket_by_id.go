package tracker

// TicketByID reads one ticket.
var TicketByID = NewQuery[RecordIn, Ticket]("TicketByID", "Get a ticket", Needs{Level: Read}, ticketByID)

func ticketByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &tickets, in, "ticket")
}
