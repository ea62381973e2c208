package tracker

// CreateTicketMessageIn asks for a message in a ticket's conversation.
type CreateTicketMessageIn struct {
	TicketID string `path:"id"`
	Body     string `json:"body" rules:"required,min=1,max=65536"`
	// Direction says whether the workspace answers, or somebody noted what was said to
	// it on the telephone, say.
	Direction Direction   `json:"direction" enum:"inbound,outbound" default:"outbound"`
	From      Opt[string] `json:"from" rules:"nullable,min=1,max=500"`
}

// CreateTicketMessage adds a message to a ticket. It is kept and told to the
// workspace's webhooks; the service itself sends it nowhere.
var CreateTicketMessage = NewCommand[CreateTicketMessageIn, TicketMessage]("CreateTicketMessage", "Add a message to a ticket", Needs{Level: Write}, createTicketMessage)

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
