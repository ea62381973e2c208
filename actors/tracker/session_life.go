package tracker

import (
	"fmt"
	"strings"
)

// moveOrigin is the origin of a move in a session's life.
type moveOrigin uint8

const (
	// byCaller moves come from reports, replies and cancelations.
	byCaller moveOrigin = 1 << iota
	// byClaim moves come from claims.
	byClaim
	// byService moves come from timers, claimers that give sessions back, and the end of
	// other sessions.
	byService
	// byRetry moves come from requests to retry a session that has ended.
	byRetry
)

// sessionEffect is the effect of a move besides the new status.
type sessionEffect uint8

const (
	// sessionStarts: an agent works on the session; its issue is in progress.
	sessionStarts sessionEffect = iota + 1
	// sessionPauses: the session waits.
	sessionPauses
	// sessionEnds: the session is over, and its lease ends.
	sessionEnds
	// sessionQueues: the session is not held any more and can be claimed.
	sessionQueues
)

// sessionMove is an allowed change of status.
type sessionMove struct {
	from   SessionStatus
	to     SessionStatus
	by     moveOrigin
	effect sessionEffect
}

// sessionMoves are the allowed moves in the life of a session (Decision 31).
//
//	created --claim--> running <--> waiting
//	   |  \______________/  \_________/  \
//	   |   a lease expires: back         |
//	   +-----------> ended <-------------+
var sessionMoves = []sessionMove{
	{SessionCreated, SessionRunning, byCaller | byClaim, sessionStarts},
	{SessionWaiting, SessionRunning, byCaller, sessionStarts},
	{SessionRunning, SessionWaiting, byCaller, sessionPauses},

	{SessionCreated, SessionCompleted, byCaller, sessionEnds},
	{SessionCreated, SessionFailed, byCaller | byService, sessionEnds},
	{SessionCreated, SessionCanceled, byCaller | byService, sessionEnds},
	{SessionRunning, SessionCompleted, byCaller, sessionEnds},
	{SessionRunning, SessionFailed, byCaller | byService, sessionEnds},
	{SessionRunning, SessionCanceled, byCaller | byService, sessionEnds},
	{SessionWaiting, SessionCompleted, byCaller, sessionEnds},
	{SessionWaiting, SessionFailed, byCaller | byService, sessionEnds},
	{SessionWaiting, SessionCanceled, byCaller | byService, sessionEnds},

	{SessionFailed, SessionCreated, byRetry, sessionQueues},
	{SessionCanceled, SessionCreated, byRetry, sessionQueues},

	// A lease expired, the claimer gave the session back, or what it waited for has
	// happened.
	{SessionRunning, SessionCreated, byService, sessionQueues},
	{SessionWaiting, SessionCreated, byService, sessionQueues},
}

// findMove returns the move from one status to another, or nil.
func findMove(from, to SessionStatus, by moveOrigin) *sessionMove {
	for i := range sessionMoves {
		if m := &sessionMoves[i]; m.from == from && m.to == to && m.by&by != 0 {
			return m
		}
	}
	return nil
}

// SessionConflict are the details of a CONFLICT about a session: its status, holder and
// lease.
type SessionConflict struct {
	SessionID      SessionID      `json:"sessionId"`
	Status         SessionStatus  `json:"status"`
	Holder         *SessionHolder `json:"holder"`
	LeaseExpiresAt *Timestamp     `json:"leaseExpiresAt"`
}

// SessionHolder is the claimer of a session.
type SessionHolder struct {
	ID   string    `json:"id"`
	Type ActorType `json:"type"`
}

// conflict returns a CONFLICT with the session's state as its details.
func (s *sessionRecord) conflict(message, hint string) *Error {
	details := SessionConflict{SessionID: s.ID, Status: s.Status}
	if l := s.Inner.Lease; l != nil {
		details.Holder = &SessionHolder{ID: l.HolderID, Type: l.HolderType}
		details.LeaseExpiresAt = &l.ExpiresAt
	}
	return &Error{Code: CodeConflict, Message: message, Hint: hint, Details: details}
}

// refusal returns the error for a move that is not allowed.
func (s *sessionRecord) refusal(to SessionStatus) *Error {
	if s.Status.Ended() {
		return s.errEnded()
	}
	var possible []string
	for _, m := range sessionMoves {
		if m.from == s.Status && m.by&byCaller != 0 {
			possible = append(possible, string(m.to))
		}
	}
	return s.conflict(fmt.Sprintf("The session is %s and can't become %s.", s.Status, to),
		"From there it can become "+strings.Join(possible, ", ")+".")
}

// errEnded returns the error for a change of a session that has ended.
func (s *sessionRecord) errEnded() *Error {
	return s.conflict(fmt.Sprintf("The session has ended: it is %s.", s.Status), "An end is final. Dispatch the issue again for another session.")
}
