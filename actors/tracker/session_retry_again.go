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
	s := &c.s
	if s.Status != SessionFailed && s.Status != SessionCanceled {
		return Reply{}, s.conflict(fmt.Sprintf("The session is %s.", s.Status), "Only a failed or canceled session can be retried.")
	}
	if err := c.issueTakes(); err != nil {
		return Reply{}, err
	}
	if err := tx.roomBelow(s.Inner.Parent); err != nil {
		return Reply{}, err
	}
	if err := c.putBack(); err != nil {
		return Reply{}, err
	}
	return c.reply()
}

// putBack moves a failed or canceled session back into the queue, as if it had just been
// dispatched. The caller has made sure that there is room for it.
func (c *sessionChange) putBack() error {
	s := &c.s
	was := s.Status
	if err := c.move(SessionCreated, byRetry); err != nil {
		return err
	}
	s.Result, s.StructuredResult, s.ResultSchemaErrors = nil, nil, nil
	s.FailureReason, s.DeadLetteredAt = nil, nil
	s.Inner.Attempts, s.Inner.Final, s.Inner.Retried, s.Inner.RetriedBy = 0, nil, nil, ""
	s.Inner.StartedAt, s.Inner.QueuedAt = "", At(c.tx.now)
	s.Inner.External = false // nobody is at a registered session any more: it is queued like others
	if s.Inner.Claims > 0 {
		s.NotBefore = nil // that of a backoff or a release: the dispatch's had come
	}
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

// issueTakes returns CONFLICT if the session's issue can't have it as an unfinished one.
func (c *sessionChange) issueTakes() error {
	s := &c.s
	if s.Inner.Orphan {
		return s.conflict("The session's issue was deleted.", "Dispatch another issue.")
	}
	if err := c.tx.refuseArchivedHead(s.issue(), c.issue); err != nil {
		return err
	}
	return c.tx.roomForSession(s.issue())
}

// RedriveSessionsIn says which dead letters to retry.
type RedriveSessionsIn struct {
	AgentID       Opt[string] `json:"agentId" rules:"min=1,max=255"`
	FailureReason Opt[string] `json:"failureReason" form:"failureReason"`
	Limit         int         `json:"limit" rules:"min=1,max=1000" default:"100"`

	// after is the key of the last dead letter that the request is done with: batches go on
	// behind it. redriven is the number of those that were retried, and passed the work on
	// those that were passed over.
	after            []byte
	redriven, passed int
}

const (
	// maxRedrivePassed is the work on dead letters that are passed over after which a request
	// answers with what it has. One that the caller doesn't see counts as one, and one that
	// can't be retried as redriveRefused. The last page may exceed it.
	maxRedrivePassed = 100_000
	redriveRefused   = 10
	// minRedrivePage is the least number of keys that are listed at once.
	minRedrivePage = 100
)

// RedrivenSessions is the number of dead letters that were retried.
type RedrivenSessions struct {
	Redriven int `json:"redriven"`
}

// RedriveSessions retries dead letters that the caller may see (Decision 62).
var RedriveSessions = NewCommand[RedriveSessionsIn, RedrivenSessions]("RedriveSessions", "Retry dead letters", Needs{Write, "sessions"}, redriveSessions)

func redriveSessions(tx *Tx, in *RedriveSessionsIn) (Reply, error) {
	budget, limit := tx.newWorkBudget(), cmp.Or(in.Limit, 100)
	full := map[storage.ID]bool{}
	for in.redriven < limit && in.passed < maxRedrivePassed {
		keys, err := tx.deadLetters(in, max(limit-in.redriven, minRedrivePage))
		if err != nil {
			return Reply{}, err
		}
		if len(keys) == 0 {
			break
		}
		for _, pk := range keys {
			if in.redriven == limit {
				break
			}
			if err := tx.roomForSessions(); err != nil {
				// The caller must learn of the sessions that earlier batches have retried.
				if refused := (*Error)(nil); in.redriven > 0 && errors.As(err, &refused) {
					return jsonReply(Done, RedrivenSessions{in.redriven})
				}
				return Reply{}, err
			}
			if budget.spent() {
				reply, err := jsonReply(Done, RedrivenSessions{in.redriven})
				reply.More, reply.soFar = true, true
				return reply, err
			}
			again, err := tx.redrive(pk, full)
			if err != nil {
				return Reply{}, err
			}
			in.after = pk
			if again {
				in.redriven++
			} else {
				in.passed += redriveRefused
				budget.left++ // nothing was written
			}
		}
	}
	return jsonReply(Done, RedrivenSessions{in.redriven})
}

// redrive retries a dead letter, unless its issue or its parent has no room for another
// session. full are the issues that are known to have none.
func (tx *Tx) redrive(pk []byte, full map[storage.ID]bool) (bool, error) {
	row, err := sessions.Get(tx, pk)
	if err == nil && row == nil {
		err = fmt.Errorf("an index names a dead letter that is not there")
	}
	if err != nil {
		return false, err
	}
	issue := row.Value.issue()
	if full[issue] {
		return false, nil
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return false, err
	}
	var refused *Error
	if err = c.issueTakes(); errors.As(err, &refused) {
		full[issue] = true
		return false, nil
	}
	if err == nil {
		err = tx.roomBelow(c.s.Inner.Parent)
	}
	if errors.As(err, &refused) {
		return false, nil
	}
	if err == nil {
		err = c.putBack()
	}
	if err != nil {
		return false, err
	}
	_, err = c.save()
	return err == nil, err
}

// deadLetters returns the keys of the dead letters that a request is about and the caller
// may see, newest first, behind those that the request is done with, and at most limit of
// them. It counts those that the caller does not see as passed.
func (tx *Tx) deadLetters(in *RedriveSessionsIn, limit int) (keys [][]byte, err error) {
	matches := []storage.Match{storage.Equal(sessionByDeadLetter, storage.Key(nil).Byte(0))}
	if in.FailureReason.Set {
		matches[0] = storage.Equal(sessionByDeadLetter, storage.Key(nil).Byte(1).Str(in.FailureReason.Value))
	}
	if in.AgentID.Set {
		matches = append(matches, storage.Equal(sessionByAgent, storage.Key(nil).Str(in.AgentID.Value)))
	}
	err = sessions.List(tx, matches, in.after, func(pk []byte, rec storage.Record) (bool, error) {
		seen := rec.Flags()&sessionOrphan == 0
		if seen {
			if seen, err = tx.canViewSession(rec); err != nil {
				return false, err
			}
		}
		if !seen {
			in.passed++
			return in.passed < maxRedrivePassed, nil
		}
		keys = append(keys, append([]byte(nil), pk...))
		return len(keys) < limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the dead letters: %w", err)
	}
	return keys, nil
}
