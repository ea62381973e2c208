package tracker

import (
	"errors"
	"fmt"
	"time"
)

// ReleaseFields say why a session is given back, and when it can be claimed again.
type ReleaseFields struct {
	NotBefore         Opt[string] `json:"notBefore" rules:"nullable,datetime"`
	RetryAfterSeconds Opt[int64]  `json:"retryAfterSeconds" rules:"nullable,min=0,max=31536000"`
	Reason            string      `json:"reason" rules:"required,min=1,max=4096"`
	// CountAttempt makes the attempt one of those that the session's policy limits.
	CountAttempt bool `json:"countAttempt"`
}

// validateAt checks what the tags can't express. at is the path of the fields in the
// body, such as "items[2].".
func (f *ReleaseFields) validateAt(at string, faults *Faults) {
	momentFault(at+"notBefore", &f.NotBefore, faults)
	if f.NotBefore.Ptr() != nil && f.RetryAfterSeconds.Ptr() != nil {
		faults.Add(at+"retryAfterSeconds", "Must not be sent beside notBefore.")
	}
}

// validateTimes adds a fault if the next claim is put off too far.
func (f *ReleaseFields) validateTimes(now time.Time, at string, faults *Faults) {
	if tooFar(snooze(f.NotBefore.Ptr()), now) {
		faults.Add(at+"notBefore", faultTooFar)
	}
}

// ReleaseSessionIn gives a claimed session back.
type ReleaseSessionIn struct {
	ID SessionID `path:"id"`
	ReleaseFields
}

// Validate checks what the tags can't express.
func (in *ReleaseSessionIn) Validate(faults *Faults) { in.validateAt("", faults) }

// ValidateFor checks the time of the next claim.
func (in *ReleaseSessionIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	in.validateTimes(now, "", faults)
}

// ReleaseSession gives a claimed session back to the queue (Decision 61).
var ReleaseSession = NewCommand[ReleaseSessionIn, ShownSession]("ReleaseSession", "Give a claimed session back", Needs{Write, "sessions"}, releaseSession, ForLanes)

func releaseSession(tx *Tx, in *ReleaseSessionIn) (Reply, error) {
	var faults Faults
	in.ValidateFor(tx.Caller, tx.now, &faults)
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	c, err := tx.sessionToChange(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if err := c.release(&in.ReleaseFields); err != nil {
		return Reply{}, err
	}
	return c.reply()
}

// claimable returns the time from which a released session can be claimed; zero for at
// once.
func (f *ReleaseFields) claimable(now time.Time) time.Time {
	if seconds := f.RetryAfterSeconds.Ptr(); seconds != nil && *seconds > 0 {
		return now.Add(time.Duration(*seconds) * time.Second)
	}
	if moment := snooze(f.NotBefore.Ptr()); moment != nil && moment.Time().After(now) {
		return moment.Time()
	}
	return time.Time{}
}

// requireHolder returns an error unless the caller holds the session: it claimed it, or has its
// lane token.
func (tx *Tx) requireHolder(s *sessionRecord) error {
	caller := tx.Caller
	lease := s.Inner.Lease
	switch {
	case s.Status.Ended():
		return s.errEnded()
	case lease == nil:
		return s.conflict(fmt.Sprintf("Nobody holds the session: it is %s.", s.Status), "Claim it first.")
	case caller.Lane == nil && (lease.HolderID != caller.ID || lease.HolderType != caller.Type):
		return Forbidden("Another actor has claimed the session.", "Use the session's lane token, or the credential that claimed it.")
	}
	return nil
}

// release ends the attempt of a holder that gives the session back.
func (c *sessionChange) release(f *ReleaseFields) error {
	if err := c.tx.requireHolder(&c.s); err != nil {
		return err
	}
	s := &c.s
	c.attemptEnd = AttemptReleased
	if f.CountAttempt && int64(s.Inner.Attempts) >= s.attemptsOf() {
		c.retireLanes()
		if err := c.deadLetter(); err != nil {
			return err
		}
		return c.logActivity(ActivityStatus, "Released in the last attempt: "+f.Reason)
	}
	if !f.CountAttempt {
		s.Inner.Attempts--
	}
	if err := c.move(SessionCreated, byService); err != nil {
		return err
	}
	if at := f.claimable(c.tx.now); !at.IsZero() {
		c.claimFrom(at)
	}
	return c.logActivity(ActivityStatus, "Released: "+f.Reason)
}

// ReleaseSessionsIn is a list of claimed sessions to give back.
type ReleaseSessionsIn struct {
	Items []ReleaseItem `json:"items" rules:"required,min=1,max=50"`
}

// ReleaseItem is one session to give back.
type ReleaseItem struct {
	ID string `json:"id" rules:"required,min=1,max=255"`
	ReleaseFields
}

// Validate checks what the tags can't express.
func (in *ReleaseSessionsIn) Validate(faults *Faults) {
	for i := range in.Items {
		in.Items[i].validateAt(fmt.Sprintf("items[%d].", i), faults)
	}
}

// ValidateFor checks the times of the next claims.
func (in *ReleaseSessionsIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	for i := range in.Items {
		in.Items[i].validateTimes(now, fmt.Sprintf("items[%d].", i), faults)
	}
}

// ReleasedSessions has the result of each item, in the same order.
type ReleasedSessions struct {
	Results []ReleasedItem `json:"results"`
}

// ReleasedItem is the result of an item: the session's status now, or an error.
type ReleasedItem struct {
	ID     string         `json:"id"`
	Status *SessionStatus `json:"status"`
	Error  *string        `json:"error"`
}

// ReleaseSessions gives claimed sessions back, independently of each other (Decision 61).
var ReleaseSessions = NewCommand[ReleaseSessionsIn, ReleasedSessions]("ReleaseSessions", "Give claimed sessions back", Needs{Write, "sessions"}, releaseSessions)

func releaseSessions(tx *Tx, in *ReleaseSessionsIn) (Reply, error) {
	var faults Faults
	in.ValidateFor(tx.Caller, tx.now, &faults)
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	out := ReleasedSessions{Results: make([]ReleasedItem, len(in.Items))}
	for i := range in.Items {
		item, result := &in.Items[i], &out.Results[i]
		result.ID = item.ID
		status, err := tx.releaseItem(item)
		var refused *Error
		switch {
		case errors.As(err, &refused):
			result.Error = &refused.Message
		case err != nil:
			return Reply{}, err
		default:
			result.Status = &status
		}
	}
	return jsonReply(Done, &out)
}

// releaseItem gives one session back and returns its status. A refused item has written
// nothing.
func (tx *Tx) releaseItem(item *ReleaseItem) (SessionStatus, error) {
	c, err := tx.sessionToChange(SessionID(item.ID))
	if err != nil {
		return "", err
	}
	if err := c.release(&item.ReleaseFields); err != nil {
		return "", err
	}
	_, err = c.save()
	return c.s.Status, err
}
