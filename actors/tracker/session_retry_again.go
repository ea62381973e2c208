package tracker

import (
	"cmp"
	"errors"
	"fmt"

	"switchyard/storage"
)

// RetrySessionIn identifies a failed or canceled session.
type RetrySessionIn struct {
	ID SessionID `path:"id"`
}

// RetrySession puts a failed or canceled session back into the queue, with all its
// attempts (Decision 62).
var RetrySession = NewCommand[RetrySessionIn, ShownSession]("RetrySession", "Retry a failed or canceled session", Needs{Write, "sessions"}, retrySession)

func retrySession(tx *Tx, in *RetrySessionIn) (Reply, error) {
	c, err := tx.sessionToChange(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if err := c.revive(); err != nil {
		return Reply{}, err
	}
	return c.reply()
}

// revive moves a failed or canceled session back into the queue, as if it had just been
// dispatched.
func (c *sessionChange) revive() error {
	s := &c.s
	if s.Status != SessionFailed && s.Status != SessionCanceled {
		return s.conflict(fmt.Sprintf("The session is %s.", s.Status), "Only a failed or canceled session can be retried.")
	}
	if s.Inner.Orphan {
		return s.conflict("The session's issue was deleted.", "Dispatch another issue.")
	}
	if err := c.tx.refuseArchivedHead(s.issue(), c.issue); err != nil {
		return err
	}
	if err := c.tx.roomForSession(s.issue()); err != nil {
		return err
	}
	was := s.Status
	if err := c.move(SessionCreated, byRetry); err != nil {
		return err
	}
	s.Result, s.StructuredResult, s.ResultSchemaErrors = nil, nil, nil
	s.FailureReason, s.DeadLetteredAt = nil, nil
	s.Inner.Attempts, s.Inner.Final, s.Inner.Retried = 0, nil, nil
	s.Inner.StartedAt, s.Inner.QueuedAt = "", At(c.tx.now)
	// While the session was over, its issue's priority could change.
	issue, err := issues.Get(c.tx, issueKey(s.issue()))
	if err != nil {
		return err
	}
	if issue != nil {
		s.Inner.Rank = issue.Value.Priority.rank()
	}
	return c.logActivity(ActivityStatus, fmt.Sprintf("The session was %s. It can be claimed again.", was))
}

// RedriveSessionsIn says which dead letters to retry.
type RedriveSessionsIn struct {
	AgentID       Opt[string] `json:"agentId" rules:"min=1,max=255"`
	FailureReason Opt[string] `json:"failureReason" form:"failureReason"`
	Limit         int         `json:"limit" rules:"min=1,max=1000" default:"100"`

	// redriven is the number of sessions that earlier batches of this request retried.
	redriven int
}

// RedrivenSessions is the number of dead letters that were retried.
type RedrivenSessions struct {
	Redriven int `json:"redriven"`
}

// RedriveSessions retries dead letters that the caller may see (Decision 62).
var RedriveSessions = NewCommand[RedriveSessionsIn, RedrivenSessions]("RedriveSessions", "Retry dead letters", Needs{Write, "sessions"}, redriveSessions)

func redriveSessions(tx *Tx, in *RedriveSessionsIn) (Reply, error) {
	budget := tx.newWorkBudget()
	keys, err := tx.deadLetters(in, min(cmp.Or(in.Limit, 100)-in.redriven, budget.left)+1)
	if err != nil {
		return Reply{}, err
	}
	redriven := in.redriven
	for _, pk := range keys {
		if redriven == cmp.Or(in.Limit, 100) {
			break
		}
		if budget.spent() {
			in.redriven = redriven
			return Reply{More: true}, nil
		}
		again, err := tx.redrive(pk)
		if err != nil {
			return Reply{}, err
		}
		if again {
			redriven++
		}
	}
	return jsonReply(Done, RedrivenSessions{redriven})
}

// redrive retries a dead letter, unless its issue has no room for another session.
func (tx *Tx) redrive(pk []byte) (bool, error) {
	row, err := sessions.Get(tx, pk)
	if err == nil && row == nil {
		err = fmt.Errorf("an index names a dead letter that is not there")
	}
	if err != nil {
		return false, err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return false, err
	}
	var refused *Error
	if err := c.revive(); errors.As(err, &refused) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, err = c.save()
	return err == nil, err
}

// deadLetters returns the keys of the dead letters that a request is about and the caller
// may see, newest first and at most limit of them.
func (tx *Tx) deadLetters(in *RedriveSessionsIn, limit int) (keys [][]byte, err error) {
	matches := []storage.Match{storage.Equal(sessionByDeadLetter, storage.Key(nil).Byte(0))}
	if in.FailureReason.Set {
		matches[0] = storage.Equal(sessionByDeadLetter, storage.Key(nil).Byte(1).Str(in.FailureReason.Value))
	}
	if in.AgentID.Set {
		matches = append(matches, storage.Equal(sessionByAgent, storage.Key(nil).Str(in.AgentID.Value)))
	}
	err = sessions.List(tx, matches, nil, func(pk []byte, rec storage.Record) (bool, error) {
		seen := rec.Flags()&sessionOrphan == 0
		if seen {
			if seen, err = tx.canViewSession(rec); err != nil {
				return false, err
			}
		}
		if seen {
			keys = append(keys, append([]byte(nil), pk...))
		}
		return len(keys) < limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the dead letters: %w", err)
	}
	return keys, nil
}
