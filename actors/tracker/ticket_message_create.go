package tracker

// CreateTicketMessageIn is a new message in a ticket's conversation.
type CreateTicketMessageIn struct {
	TicketID string `path:"id"`
	Body     string `json:"body" rules:"required,min=1,max=65536"`
	// Direction is outbound for an answer, and inbound for a message that reached the
	// workspace in another way, such as by telephone.
	Direction Direction   `json:"direction" default:"outbound"`
	From      Opt[string] `json:"from" rules:"nullable,min=1,max=500"`
}

// CreateTicketMessage adds a message to a ticket. The message is stored and emitted as
// an event; the service does not send it to the other side.
var CreateTicketMessage = NewCommand[CreateTicketMessageIn, TicketMessage]("CreateTicketMessage", "Add a message to a ticket", Needs{Level: Write}, createTicketMessage, Answers(Created))

func createTicketMessage(tx *Tx, in *CreateTicketMessageIn) (Reply, error) {
	row, err := recordIn(&tx.View, &tickets, in.TicketID, "ticket")
	if err != nil {
		return Reply{}, err
	}
	m := TicketMessage{Direction: in.Direction, From: in.From.Ptr(), Body: in.Body}
	_, body, err := tx.addMessage(row, &m, row.Value.Status)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: Created, Body: body}, nil
}
