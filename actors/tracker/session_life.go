package tracker

import (
	"fmt"
	"strings"
)

// mover says who may make a move of a session's life.
type mover uint8

const (
	// byCaller moves are made by reports, replies and cancelations.
	byCaller mover = 1 << iota
	// byClaim moves are made by a claim.
	byClaim
	// byService moves are made by timers and by the end of other sessions.
	byService
)

// sessionEffect is what a move does besides changing the status.
type sessionEffect uint8

const (
	// sessionStarts: somebody is at the session; its issue is in progress.
	sessionStarts sessionEffect = iota + 1
	// sessionPauses: it waits for somebody else.
	sessionPauses
	// sessionEnds: it is over, whoever held it.
	sessionEnds
	// sessionQueues: nobody is at it any more, and it can be claimed.
	sessionQueues
)

// sessionMove is one way from a status to another.
type sessionMove struct {
	from   SessionStatus
	to     SessionStatus
	by     mover
	effect sessionEffect
}

// sessionMoves is the life of a session (Decision 31). What is not in it is refused.
//
//	created --claim--> running <--> waiting
//	   |  \______________/  \_________/  \
//	   |     a lease runs out: back       |
//	   +--------------> an end <----------+
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

	// A lease ran out, or what the session waited for has ended.
	{SessionRunning, SessionCreated, byService, sessionQueues},
	{SessionWaiting, SessionCreated, byService, sessionQueues},
}

// findMove gives the move from one status to another; nil when there is none.
func findMove(from, to SessionStatus, by mover) *sessionMove {
	for i := range sessionMoves {
		if m := &sessionMoves[i]; m.from == from && m.to == to && m.by&by != 0 {
			return m
		}
	}
	return nil
}

// SessionConflict are the details of a CONFLICT about a session: how it stands, and
// who holds it until when.
type SessionConflict struct {
	SessionID      SessionID      `json:"sessionId"`
	Status         SessionStatus  `json:"status"`
	Holder         *SessionHolder `json:"holder"`
	LeaseExpiresAt *Timestamp     `json:"leaseExpiresAt"`
}

// SessionHolder is who claimed a session.
type SessionHolder struct {
	ID   string    `json:"id"`
	Type ActorType `json:"type"`
}

// conflict describes how the session stands.
func (s *sessionRecord) conflict(message, hint string) *Error {
	details := SessionConflict{SessionID: s.ID, Status: s.Status}
	if l := s.Inner.Lease; l != nil {
		details.Holder = &SessionHolder{ID: l.HolderID, Type: l.HolderType}
		details.LeaseExpiresAt = &l.ExpiresAt
	}
	return &Error{Code: CodeConflict, Message: message, Hint: hint, Details: details}
}

// refusal is the answer to a move that is not in a session's life.
func (s *sessionRecord) refusal(to SessionStatus) *Error {
	if s.Status.Ended() {
		return s.over()
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

// over is the answer to changes of a session that has ended.
func (s *sessionRecord) over() *Error {
	return s.conflict(fmt.Sprintf("The session has ended: it is %s.", s.Status), "An end is final. Dispatch the issue again for another session.")
}
