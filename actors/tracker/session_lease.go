package tracker

import (
	"fmt"

	"switchyard/storage"
)

// Timers of sessions; their subject is the session.
const (
	timerSessionLease  = "session.lease"
	timerSessionBudget = "session.budget"
)

// maxAttempts is how often a session is given out before it counts as failed.
const maxAttempts = 3

// leaseOp takes a session from a claimer who gave no sign of life for the length of
// the lease. Renewing moves no timer, so one that comes due before its lease is set
// again.
var leaseOp = NewCommand[TimerIn, None]("ExpireLease", "Take a session back from a silent claimer", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	row, err := tx.timedSession(in)
	if err != nil {
		return Reply{}, err
	}
	if row == nil || row.Value.Inner.Lease == nil {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	if ends := row.Value.Inner.Lease.ExpiresAt.Time(); ends.After(tx.now) {
		return Reply{Outcome: NoContent}, tx.SetTimer(in.Kind, in.Subject, ends)
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return Reply{}, err
	}
	message := fmt.Sprintf("The lease ran out in attempt %d of %d.", c.s.Inner.Attempts, maxAttempts)
	if c.s.Inner.Attempts < maxAttempts {
		err = c.to(SessionCreated, byService)
		message += " The session can be claimed again."
	} else {
		c.retireLanes() // its claimer was presumed dead, too
		err = c.to(SessionFailed, byService)
	}
	if err != nil {
		return Reply{}, err
	}
	if err := c.tell(ActivityError, message); err != nil {
		return Reply{}, err
	}
	_, err = c.save()
	return Reply{Outcome: NoContent}, err
})

// timedSession reads the session that a timer is about; nil when there is none.
func (tx *Tx) timedSession(in *TimerIn) (*storage.Row[sessionRecord], error) {
	id, ok := storage.ParseID(in.Subject)
	if !ok {
		return nil, nil
	}
	row, err := sessions.Get(tx, sessionKey(id))
	if err != nil {
		return nil, fmt.Errorf("read a session: %w", err)
	}
	return row, nil
}
