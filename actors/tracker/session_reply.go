package tracker

// ReplyToSessionIn is an answer to an agent's question.
type ReplyToSessionIn struct {
	ID      SessionID `path:"id"`
	Message string    `json:"message" rules:"required,min=1,max=32768"`
}

// ReplyToSession answers an agent's question, and a waiting session continues. Agents
// can't answer (Decision 39).
var ReplyToSession = NewCommand[ReplyToSessionIn, ShownSession]("ReplyToSession", "Reply to a session", Needs{Write, "sessions"}, replyToSession,
	ForCallers("the permission write or sessions:write, of a user: agents and OAuth clients can't reply"))

func replyToSession(tx *Tx, in *ReplyToSessionIn) (Reply, error) {
	if tx.Caller.Type == ActorAgent {
		return Reply{}, Forbidden("Only people reply to sessions: this credential is an agent's or an OAuth client's.", "Use the token of a member. An agent that has something to say logs it.")
	}
	c, err := tx.sessionToChange(in.ID)
	if err != nil {
		return Reply{}, err
	}
	var met []int
	switch {
	case c.s.Status.Ended():
		return Reply{}, c.s.errEnded()
	case c.s.Inner.Wait != nil:
		for i, condition := range c.s.Inner.Wait.Conditions {
			if condition.Reply && !c.s.Inner.Wait.Met[i] {
				met = append(met, i)
			}
		}
	case c.s.parkedFor() == parkQueuedAfter, c.s.parkedFor() == parkBlocked:
		return Reply{}, c.s.conflict("The session waits for other work to end, not for an answer.", "Look at what it is queued after, or cancel it.")
	case c.s.Status == SessionWaiting && c.s.Inner.StartedAt == "":
		// The session never ran: what was missing is assumed to be there now, so it can
		// be claimed.
		c.s.Inner.Missing = nil
		_, err = c.advance()
	case c.s.Status == SessionWaiting:
		err = c.move(SessionRunning, byCaller)
	}
	if err != nil {
		return Reply{}, err
	}
	if err := c.logActivity(ActivityResponse, in.Message); err != nil {
		return Reply{}, err
	}
	// An agent may wait for the reply only later, or another one in the next attempt. Before the
	// first claim no agent has asked.
	c.s.Inner.Answered = len(met) == 0 && c.s.Inner.Claims > 0
	if len(met) > 0 {
		if err := c.meet(met); err != nil {
			return Reply{}, err
		}
	}
	return c.reply()
}
