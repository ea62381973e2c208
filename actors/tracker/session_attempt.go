package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Each claim of a session begins an attempt (Decision 62). The last attempt is in the
// session's record, which is written at its beginning and end anyhow, so a session that
// needs one attempt has no other rows. The next claim moves it to a row of its own.

// AttemptEnd is the way an attempt ended.
type AttemptEnd string

// The ends of attempts.
const (
	AttemptCompleted AttemptEnd = "completed"
	AttemptFailed    AttemptEnd = "failed"
	AttemptLapsed    AttemptEnd = "lapsed"
	AttemptReleased  AttemptEnd = "released"
	AttemptCanceled  AttemptEnd = "canceled"
	AttemptWaited    AttemptEnd = "waited"
)

// EnumValues implements Enumerated.
func (AttemptEnd) EnumValues() []string {
	return enumTexts([]AttemptEnd{AttemptCompleted, AttemptFailed, AttemptLapsed, AttemptReleased, AttemptCanceled, AttemptWaited})
}

// SessionAttempt is one attempt at a session: the time from its claim until the claimer
// ended it or lost it. End is null for the running one.
type SessionAttempt struct {
	Number        int         `json:"number"`
	ClaimedAt     Timestamp   `json:"claimedAt"`
	EndedAt       *Timestamp  `json:"endedAt"`
	End           *AttemptEnd `json:"end" enum:"completed,failed,lapsed,released,canceled,waited"`
	FailureReason *string     `json:"failureReason"`
	ClaimerID     string      `json:"claimerId"`
	// LastActivity is the last activity that was logged in the attempt, without the one
	// by which the service tells of its end; null for none, or if it is not kept any more.
	LastActivity *Activity `json:"lastActivity"`
}

// attemptRecord is the stored form of an attempt.
type attemptRecord struct {
	Number        int        `json:"number"`
	ClaimedAt     Timestamp  `json:"claimedAt"`
	EndedAt       Timestamp  `json:"endedAt,omitempty"`
	End           AttemptEnd `json:"end,omitempty"`
	FailureReason *string    `json:"failureReason,omitempty"`
	ClaimerID     string     `json:"claimerId"`
	// Before and Last are the sequence numbers of the last activity before the attempt
	// and of the last one in it.
	Before uint64 `json:"before,omitempty"`
	Last   uint64 `json:"last,omitempty"`
}

// keptAttempts is the number of attempts of a session that are kept, with the last one.
const keptAttempts = 50

func attemptKey(session storage.ID, number int) storage.Key {
	return storage.Key(make([]byte, 0, 24)).ID(session).U64(uint64(number))
}

// beginAttempt begins the attempt of a claim. The attempt before it gets its row, and the
// oldest one loses it.
func (c *sessionChange) beginAttempt() error {
	c.noteClaim()
	in := &c.s.Inner
	in.Attempts++
	if before := in.Attempt; before != nil {
		body, err := json.MarshalWithOption(before, json.DisableHTMLEscape())
		if err != nil {
			return fmt.Errorf("encode an attempt: %w", err)
		}
		if err := c.tx.Writer().AddValue(attemptTable, attemptKey(c.s.id(), before.Number), body); err != nil {
			return err
		}
		if oldest := before.Number + 1 - keptAttempts; oldest > 0 {
			if err := c.tx.Writer().DeleteValue(attemptTable, attemptKey(c.s.id(), oldest)); err != nil {
				return err
			}
		}
	}
	in.Claims = max(in.Claims+1, in.Attempts)
	in.Attempt = &attemptRecord{Number: in.Claims, ClaimedAt: At(c.tx.now), ClaimerID: c.tx.Caller.ID, Before: in.Last}
	return nil
}

// endAttempt ends the running attempt, if there is one.
func (c *sessionChange) endAttempt() {
	running := c.s.Inner.Attempt
	if running == nil || running.End != "" {
		return
	}
	ended := *running
	ended.EndedAt, ended.End = At(c.tx.now), c.attemptEnd
	if ended.End == "" {
		ended.End = AttemptEnd(c.s.Status) // the session's end is the attempt's
	}
	if ended.End == AttemptFailed || ended.End == AttemptCanceled { // a budget's end has a reason, too
		ended.FailureReason = c.s.FailureReason
	}
	if last := c.s.Inner.Last; last > ended.Before {
		ended.Last = last
	}
	c.s.Inner.Attempt = &ended
}

// shownAttempt returns an attempt in the form that clients get. last is the last activity
// of its session.
func (v *View) shownAttempt(session storage.ID, a *attemptRecord, last uint64) (*SessionAttempt, error) {
	shown := &SessionAttempt{Number: a.Number, ClaimedAt: a.ClaimedAt, FailureReason: a.FailureReason, ClaimerID: a.ClaimerID}
	if a.End != "" {
		shown.EndedAt, shown.End = &a.EndedAt, &a.End
		last = a.Last
	}
	if last <= a.Before {
		return shown, nil
	}
	body, err := v.Value(activityTable, activityKey(session, last), nil)
	if err != nil {
		return nil, fmt.Errorf("read an attempt's last activity: %w", err)
	}
	if body != nil {
		shown.LastActivity = &Activity{}
		if err := json.Unmarshal(body, shown.LastActivity); err != nil {
			return nil, fmt.Errorf("read an attempt's last activity: %w", err)
		}
	}
	return shown, nil
}

// ListAttemptsIn identifies the session whose attempts are to be listed.
type ListAttemptsIn struct {
	ID SessionID `path:"id"`
}

// SessionAttempts are the last attempts at a session, oldest first.
type SessionAttempts struct {
	Attempts []SessionAttempt `json:"attempts"`
}

// ListAttempts lists the last attempts at a session, oldest first (Decision 62).
var ListAttempts = NewQuery[ListAttemptsIn, SessionAttempts]("ListAttempts", "List the attempts at a session", Needs{Read, "sessions"}, listAttempts, FromSnapshot, ForLanes, Refuses(CodeConflict))

func listAttempts(v *View, in *ListAttemptsIn) (Reply, error) {
	out := SessionAttempts{Attempts: []SessionAttempt{}}
	err := v.sessionRecord(in.ID, func(rec storage.Record) error {
		row, err := sessions.Decode(rec)
		if err != nil || row.Value.Inner.Attempt == nil {
			return err
		}
		s := &row.Value
		all, err := v.earlierAttempts(s.id())
		if err != nil {
			return err
		}
		for _, a := range append(all, *s.Inner.Attempt) {
			shown, err := v.shownAttempt(s.id(), &a, s.Inner.Last)
			if err != nil {
				return err
			}
			out.Attempts = append(out.Attempts, *shown)
		}
		return nil
	})
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &out)
}

// earlierAttempts returns the attempts of a session that have rows, oldest first.
func (v *View) earlierAttempts(session storage.ID) (all []attemptRecord, err error) {
	err = v.Rows(attemptTable, session[:], nil, func(_, value []byte) (bool, error) {
		var a attemptRecord
		if err := json.Unmarshal(value, &a); err != nil {
			return false, fmt.Errorf("read an attempt: %w", err)
		}
		all = append(all, a)
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list a session's attempts: %w", err)
	}
	return all, nil
}

// checkAttempt checks that an attempt is an earlier one of its session, and ended.
func checkAttempt(v *storage.View, fields, value []byte) error {
	s, err := sessionOfRow(v, fields, 24)
	if err != nil {
		return err
	}
	var a attemptRecord
	if err := json.Unmarshal(value, &a); err != nil {
		return fmt.Errorf("%w: attempt", storage.ErrFormat)
	}
	current := s.Inner.Attempt
	if string(attemptKey(s.id(), a.Number)) != string(fields) || a.End == "" || current == nil || a.Number >= current.Number || a.Number <= current.Number-keptAttempts {
		return fmt.Errorf("is attempt %d with the end %q, which its session has not had before", a.Number, a.End)
	}
	return nil
}

// sessionOfRow returns the session that a row's key begins with.
func sessionOfRow(v *storage.View, fields []byte, keyLen int) (*sessionRecord, error) {
	if len(fields) != keyLen {
		return nil, fmt.Errorf("%w: a session's row with %d bytes of key", storage.ErrFormat, len(fields))
	}
	row, err := sessions.Get(v, sessionKey(storage.ID(fields[:16])))
	if err == nil && row == nil {
		err = fmt.Errorf("there is no such session")
	}
	if err != nil {
		return nil, err
	}
	return &row.Value, nil
}
