package tracker

// CancelSessionIn identifies a session to cancel, with a reason.
type CancelSessionIn struct {
	ID     SessionID   `path:"id"`
	Reason Opt[string] `json:"reason" rules:"nullable,max=4096"`
}

// CancelSession cancels a session that has not ended, also one that is claimed.
var CancelSession = NewCommand[CancelSessionIn, ShownSession]("CancelSession", "Cancel a session", Needs{Write, "sessions"}, cancelSession, WithSpaceEffect(FreesSpace), Refuses(CodeConflict))

func cancelSession(tx *Tx, in *CancelSessionIn) (Reply, error) {
	c, err := tx.sessionToChange(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if err := c.cancel(in.Reason.Value, byCaller); err != nil {
		return Reply{}, err
	}
	return c.reply()
}

// cancel moves a session to canceled and logs the reason.
func (c *sessionChange) cancel(reason string, by moveOrigin) error {
	if c.s.Status.Ended() {
		return c.s.errEnded()
	}
	if err := c.move(SessionCanceled, by); err != nil {
		return err
	}
	message := "Canceled."
	if reason != "" {
		message = "Canceled: " + reason
	}
	return c.logActivity(ActivityStatus, message)
}

// reply saves the session and returns it as the answer.
func (c *sessionChange) reply() (Reply, error) {
	body, err := c.save()
	if err != nil {
		return Reply{}, err
	}
	tag, err := c.tx.changedTag(c.row.Version+1, &c.s)
	return Reply{Body: append(appendDerived(body, &c.s), '}'), ETag: tag}, err
}
