package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// A session that an agent could work on but for something else is parked: it is not in the
// claim queue, so that no claim looks at it, but in an index under what it waits for.
// A session is parked for one reason at a time, the first that applies. The write that
// ends a reason looks for the next one that applies, and otherwise puts the session into
// the claim queue.
//
// whyWaits and whyParked are the only definition of the reasons. Dispatches, claims and
// releases use them; lists, counts and explanations use their outcome in the record.

// parkReason is the reason why a session can't be claimed. Its number is on disk, in
// records and in keys of the index; the order is that of WaitingReason.
type parkReason uint8

const (
	// Sessions with these reasons are waiting.
	parkPreflight   parkReason = iota + 1 // something is missing, and a person has to reply
	parkWaitFor                           // the conditions of a report's waitFor
	parkQueuedAfter                       // the end of other sessions
	parkBlocked                           // the closing of the issues that block its issue
	// Sessions with these reasons are created.
	parkNotBefore   // a time
	parkBudget      // a scope whose budget is used up
	parkHold        // a scope that is on hold
	parkConcurrency // a place of a concurrency key
)

// parking is the reason why a session can't be claimed, with the thing it waits for.
type parking struct {
	Reason parkReason `json:"reason"`
	// Subject is the scope of a budget or a hold, or a concurrency key; else empty.
	Subject string `json:"subject,omitempty"`
}

// parkedFor returns the reason why a session can't be claimed, or 0.
func (s *sessionRecord) parkedFor() parkReason {
	switch in := &s.Inner; {
	case in.Park != nil:
		return in.Park.Reason
	case s.Status != SessionWaiting || in.StartedAt != "" || in.External:
		return 0
	case in.Predecessor != "": // stored by an earlier version
		return parkQueuedAfter
	}
	return parkPreflight // also of sessions of an earlier version
}

// whyWaits returns the reason why a session that has not begun has to wait; nil if it can
// be created.
func (tx *Tx) whyWaits(s *sessionRecord) (*parking, error) {
	switch {
	case len(s.Inner.Missing) > 0:
		return &parking{Reason: parkPreflight}, nil
	case len(s.pending()) > 0:
		return &parking{Reason: parkQueuedAfter}, nil
	case !s.WhenReady:
		return nil, nil
	}
	blocked, err := tx.blocked(s.issue())
	if err != nil || !blocked {
		return nil, err
	}
	// Decision 59: the closing of the issue ends a wait, and a dispatch of a closed one begins none.
	if there, closed, err := tx.issueIsClosed(s.issue()); err != nil || there && closed {
		return nil, err
	}
	return &parking{Reason: parkBlocked}, nil
}

// whyParked returns the reason why a created session can't be claimed, or nil.
func (tx *Tx) whyParked(s *sessionRecord) (*parking, error) {
	if s.NotBefore != nil && s.NotBefore.Time().After(tx.now) {
		return &parking{Reason: parkNotBefore}, nil
	}
	for _, reason := range [...]parkReason{parkBudget, parkHold} {
		if scope, err := tx.suspendedBy(reason, s); err != nil || scope != "" {
			return &parking{Reason: reason, Subject: scope}, err
		}
	}
	if key, err := tx.fullKey(s); err != nil || key != "" {
		return &parking{Reason: parkConcurrency, Subject: key}, err
	}
	return nil, nil
}

// setParking sets the reason why a session can't be claimed, from its status.
func (tx *Tx) setParking(s *sessionRecord) (err error) {
	switch {
	case s.Status == SessionCreated && !s.Inner.External:
		s.Inner.Park, err = tx.whyParked(s)
	case s.Status != SessionWaiting:
		s.Inner.Park = nil
	}
	return err
}

// startPlace sets the status of a new session that nobody works on yet: it waits, or is
// created.
func (tx *Tx) startPlace(s *sessionRecord) (err error) {
	if s.Inner.Park, err = tx.whyWaits(s); err != nil {
		return err
	}
	if s.Inner.Park != nil {
		s.Status = SessionWaiting
		return nil
	}
	s.Status = SessionCreated
	return tx.setParking(s)
}

// advance gives a waiting session that has not begun its next reason, after one has
// ended, or moves it to created. It reports whether it was moved.
func (c *sessionChange) advance() (moved bool, err error) {
	if c.s.Inner.Park, err = c.tx.whyWaits(&c.s); err != nil || c.s.Inner.Park != nil {
		return false, err
	}
	return true, c.move(SessionCreated, byService)
}

// addParked adds the entry of a parked session to the index of parked sessions.
func addParked(e *storage.Entries, s *sessionRecord) {
	p := s.Inner.Park
	if p == nil {
		return
	}
	k := e.Key().Byte(byte(p.Reason))
	switch p.Reason {
	case parkNotBefore:
		e.Add(k.U64(uint64(s.NotBefore.Time().UnixMilli())))
	case parkBudget, parkHold, parkConcurrency:
		// In the order of claims for each agent and provider.
		e.Add(k.Str(p.Subject).Str(s.AgentID).Str(s.Provider).Byte(urgency(s.Inner.Rank)).ID(s.id()))
	}
}

// maxReleased is the number of parked sessions that one command moves within created.
// Beyond maxFollowed written bytes it leaves the rest to a timer.
const maxReleased = 500

// repark gives a parked or queued session its place anew. It emits no event: the session
// stays created. The caller has read row in this command.
func (tx *Tx) repark(row *storage.Row[sessionRecord]) (now *sessionRecord, err error) {
	s := row.Value
	if s.Status != SessionCreated || s.Inner.External {
		return &s, nil
	}
	if err := tx.setParking(&s); err != nil {
		return nil, err
	}
	if samePlace(row.Value.Inner.Park, s.Inner.Park) {
		return &s, nil
	}
	if _, err := sessions.Update(tx, row, &s); err != nil {
		return nil, fmt.Errorf("move a parked session: %w", err)
	}
	return &s, tx.sessionMoved(&row.Value, &s)
}

func samePlace(a, b *parking) bool { return a == b || a != nil && b != nil && *a == *b }

// reparkKey calls repark for a session, by its primary key.
func (tx *Tx) reparkKey(pk []byte) (now *sessionRecord, err error) {
	row, err := sessions.Get(tx, pk)
	if err == nil && row == nil {
		err = fmt.Errorf("the index of parked sessions names one that is not there")
	}
	if err != nil {
		return nil, err
	}
	return tx.repark(row)
}

// reparkKeys calls repark for sessions, by their primary keys. more is set if the command has
// written as much as it may.
func (tx *Tx) reparkKeys(keys [][]byte) (more bool, err error) {
	for _, pk := range keys {
		if tx.written() > maxFollowed {
			return true, nil
		}
		if _, err := tx.reparkKey(pk); err != nil {
			return false, err
		}
	}
	return false, nil
}

// sessionMoved brings everything up to date that follows from the place of a session: the
// counts, the front of the claim queue, the waiting claims, and the timer of sessions that
// are put off. Every command that stores a session calls it; old is nil for a new session,
// and s is nil for one that is removed.
func (tx *Tx) sessionMoved(old, s *sessionRecord) error {
	if err := tx.countEngaged(old, s); err != nil {
		return err
	}
	if err := tx.keysMoved(old, s); err != nil {
		return err
	}
	if err := tx.queueCountPlace(old, s); err != nil {
		return err
	}
	if old == nil || s == nil || old.occupation() != s.occupation() {
		tx.Writer().MarkDirty(DirtySets)
	}
	was := old != nil && old.queued()
	if s == nil {
		return nil
	}
	if s.queued() && !was {
		tx.buffer.queue.lower(s)
		tx.wakeClaimer(s.AgentID, s.Provider)
	}
	if s.parkedFor() == parkNotBefore {
		return tx.armNotBefore(s.NotBefore.Time())
	}
	return nil
}

// timerNotBefore releases the sessions whose notBefore has come. A workspace has one.
const timerNotBefore = "session.notBefore"

// armNotBefore makes sure that sessions which are put off are looked at by a time.
func (tx *Tx) armNotBefore(at time.Time) error {
	row, err := timers.Get(tx, timerKey(nil, timerNotBefore, ""))
	if err != nil {
		return fmt.Errorf("read the timer of sessions that are put off: %w", err)
	}
	if row != nil && !row.Value.Due.Time().After(at) {
		return nil
	}
	return tx.SetTimer(timerNotBefore, "", at)
}

// notBeforeOp releases the sessions whose notBefore has come (Decision 59).
var notBeforeOp = NewCommand[TimerIn, None]("ReleasePutOff", "Queue the sessions whose notBefore has come", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	prefix := storage.Key(nil).Byte(byte(parkNotBefore))
	var due [][]byte
	var next time.Time
	more := false
	if err := tx.Rows(sessionParked, prefix, nil, func(fields, _ []byte) (bool, error) {
		fields = fields[len(prefix):]
		if len(fields) != 8+storage.ListedKeyLen {
			return false, fmt.Errorf("%w: entry of a parked session of %d bytes", storage.ErrFormat, len(fields))
		}
		if at := time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).UTC(); at.After(tx.now) {
			next = at
			return false, nil
		}
		if more = len(due) == maxReleased; more {
			return false, nil
		}
		due = append(due, append([]byte(nil), fields[8:]...))
		return true, nil
	}); err != nil {
		return Reply{}, fmt.Errorf("list the sessions that are put off: %w", err)
	}
	left, err := tx.reparkKeys(due)
	if err == nil && (more || left) {
		next, err = tx.atOnce()
	}
	if err != nil {
		return Reply{}, err
	}
	if next.IsZero() {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	return Reply{Outcome: NoContent}, tx.SetTimer(in.Kind, in.Subject, next)
}, Prompt)
