package tracker

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Types of events about sessions.
var (
	eventSessionCreated   = newEventKind("session.created", "sessions", onIssueID)
	eventSessionUpdated   = newEventKind("session.updated", "sessions", onIssueID)
	eventSessionEnded     = newEventKind("session.ended", "sessions", onIssueID)
	eventSessionEscalated = newEventKind("session.escalated", "sessions", onIssueID)
	// eventSessionDeadLettered tells of a session whose attempts are used up.
	eventSessionDeadLettered = newEventKind("session.dead_lettered", "sessions", onIssueID)
)

// sessionChange is a change of a session by a command. Every command that changes
// sessions uses it: read the session, change s, and save.
type sessionChange struct {
	tx  *Tx
	row *storage.Row[sessionRecord] // before the change
	s   sessionRecord               // after the change
	// issue is the header of the issue's record, which decides who may see events of
	// the session.
	issue storage.Header
	// progress is set if the status changed or an activity was added.
	progress bool
	started  bool // the session runs now, and did not before
	// attemptEnd is how the running attempt ends if the session leaves its holder; empty
	// for the status of the session.
	attemptEnd AttemptEnd
	events     []*eventKind
	// changes are those that the session's record does not show.
	changes changes
}

// changeSession begins the change of a session that this Tx has read.
func (tx *Tx) changeSession(row *storage.Row[sessionRecord]) (*sessionChange, error) {
	c := &sessionChange{tx: tx, row: row, s: row.Value}
	if row.Value.Inner.Orphan {
		c.issue = storage.Header{Team: row.Team}
		return c, nil
	}
	found, err := issues.Record(tx, issueKey(row.Value.issue()), func(rec storage.Record) error {
		c.issue = rec.Header()
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("session %s: its issue is not there", row.Value.ID)
	}
	return c, err
}

// move moves the session move a status, or returns CONFLICT. It does nothing if the session
// already has that status.
func (c *sessionChange) move(status SessionStatus, by moveOrigin) error {
	s := &c.s
	if status == s.Status {
		return nil
	}
	move := findMove(s.Status, status, by)
	if move == nil {
		return s.refusal(status)
	}
	if s.Inner.Wait != nil && status == SessionRunning {
		return s.conflict("The session waits for conditions, and nobody holds it.", "It can be claimed when they are met.")
	}
	if move.effect == sessionStarts && !s.engaged() {
		if err := c.requireNotEngaged(); err != nil {
			return err
		}
		if err := c.tx.takesPlaces(s); err != nil {
			return err
		}
		if by == byCaller { // a claim has looked
			if err := c.requireRoom(); err != nil {
				return err
			}
		}
	}
	s.Status = status
	s.Inner.Predecessor, s.Inner.Pending, s.Inner.Missing = "", nil, nil // a move ends these waits
	c.progress = true
	switch move.effect {
	case sessionStarts:
		c.started = true
		if s.Inner.StartedAt == "" {
			s.Inner.StartedAt = At(c.tx.now)
		}
	case sessionEnds:
		s.Inner.Lease = nil
		c.endAttempt()
	case sessionQueues:
		s.Inner.Lease = nil
		c.endAttempt()
		c.retireLanes()
		if s.Inner.StartedAt != "" && s.Inner.Wait == nil {
			// The time of maxDuration begins anew.
			s.Inner.StartedAt, s.Inner.QueuedAt = "", At(c.tx.now)
		}
	}
	if status != SessionWaiting {
		s.Inner.Wait = nil
	}
	return nil
}

// requireNotEngaged returns CONFLICT if the session's agent works on another session of the same
// issue.
func (c *sessionChange) requireNotEngaged() error {
	other, err := c.tx.engagedSession(c.s.AgentID, c.s.issue())
	if err != nil || other == nil {
		return err
	}
	return other.conflict("The session's agent is working on another session of the same issue.", "Wait until that one ends, or cancel it.")
}

// requireRoom returns CONFLICT if the session's agent works on as many sessions as it may.
func (c *sessionChange) requireRoom() error {
	room, err := c.tx.roomOf(storage.Key(nil).Str(c.s.AgentID))
	if err != nil || room > 0 {
		return err
	}
	return c.s.conflict("The session's agent works on as many sessions as its maxConcurrentSessions allows.", "Wait until one of them ends, or raise the agent's maxConcurrentSessions.")
}

// engagedSession returns the session of an issue that an agent works on, or nil.
func (v *View) engagedSession(agent string, issue storage.ID) (*sessionRecord, error) {
	prefix := storage.Key(nil).Str(agent).ID(issue)
	var pk []byte
	if err := v.Rows(sessionEngaged, prefix, nil, func(fields, _ []byte) (bool, error) {
		pk = append(pk, fields[len(prefix):]...)
		return false, nil
	}); err != nil {
		return nil, fmt.Errorf("look for an agent's session: %w", err)
	}
	if pk == nil {
		return nil, nil
	}
	row, err := sessions.Get(v, pk)
	if err != nil || row == nil {
		return nil, err
	}
	return &row.Value, nil
}

// retireLanes makes the lane tokens of a session stale: their holder is presumed dead.
func (c *sessionChange) retireLanes() {
	in := &c.s.Inner
	in.Stale = append(slices.Clone(in.Stale), in.Lanes...)
	if n := len(in.Stale); n > maxStaleLanes {
		in.Stale = in.Stale[n-maxStaleLanes:]
	}
	in.Lanes = nil
}

// stamp sets the hash of the session's state that a poll shows.
func (s *sessionRecord) stamp() error {
	s.LastStateHash = nil
	body, err := json.MarshalWithOption(&s.AgentSession, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode a session: %w", err)
	}
	h := xxhash.New()
	_, _ = h.Write(body)
	_, _ = h.WriteString(s.Inner.LastActivity)
	text := hex.EncodeToString(h.Sum(nil))
	s.LastStateHash = &text
	return nil
}

// save stores the changed session with the effects of the change: timers, the issue's
// status, events, and wake-ups. It returns the session's public JSON.
func (c *sessionChange) save() ([]byte, error) {
	tx, old, s := c.tx, &c.row.Value, &c.s
	if err := tx.setParking(s); err != nil {
		return nil, err
	}
	switch ended := s.Status.Ended(); {
	case !ended:
		s.Inner.EndedAt = ""
	case !old.Status.Ended():
		s.Inner.EndedAt = At(tx.now)
	}
	changed := append(sessionChanges(old, s), c.changes...)
	if len(changed) > 0 || c.progress {
		now := At(tx.now)
		s.UpdatedAt = now
		if c.progress {
			note(&changed, "lastProgressAt", s.LastProgressAt, &now)
			s.LastProgressAt = &now
		}
		if was, is := old.derivedNow(), s.derivedNow(); was != is { // without stalling, which the time decides
			changed = append(changed, Change{Field: "derivedStatus", From: textOrNil(was), To: textOrNil(is)})
		}
		if err := s.stamp(); err != nil {
			return nil, err
		}
	}
	body, err := sessions.Update(tx, c.row, s)
	if err != nil {
		return nil, fmt.Errorf("store a session: %w", err)
	}
	body = publicCopy(body)
	if err := c.setTimers(); err != nil {
		return nil, err
	}
	if len(changed) > 0 || c.progress {
		events := c.events
		switch {
		case s.Status.Ended() && !old.Status.Ended():
			events = append(events, eventSessionEnded)
		case len(events) == 0:
			events = append(events, eventSessionUpdated)
		}
		for _, event := range events {
			if err := tx.Emit(event, c.issue, s.told(body), changed); err != nil {
				return nil, err
			}
		}
		tx.wakeWatchers(s.id())
	}
	if c.started {
		if err := tx.issueInProgress(s.issue()); err != nil {
			return nil, err
		}
	}
	return body, c.wakeWaiters()
}

// wakeWaiters wakes claimers and moves the sessions that were waiting for this one.
func (c *sessionChange) wakeWaiters() error {
	tx, old, s := c.tx, &c.row.Value, &c.s
	if err := tx.sessionMoved(old, s); err != nil {
		return err
	}
	if old.engaged() && !s.engaged() {
		if err := tx.wakeFreed(s.AgentID, 1); err != nil {
			return err
		}
	}
	if err := tx.countWaits(old, s); err != nil {
		return err
	}
	if s.Status.Ended() && !old.Status.Ended() {
		if err := tx.sessionEndsWaits(s); err != nil {
			return err
		}
		return tx.sessionHasEnded(s)
	}
	return nil
}

// setTimers sets the timers that a session needs and clears those that it no longer
// needs.
func (c *sessionChange) setTimers() error {
	tx, old, s := c.tx, &c.row.Value, &c.s
	if l := s.Inner.Lease; l != nil && (old.Inner.Lease == nil || old.Inner.Lease.CheckAt != l.CheckAt) {
		if err := tx.armLeases(l.CheckAt.Time()); err != nil {
			return err
		}
	}
	if old.Inner.Wait != nil && s.Inner.Wait == nil {
		if err := tx.ClearTimer(timerSessionWait, string(s.ID)); err != nil {
			return err
		}
	}
	switch retried := old.Status.Ended(); {
	case s.MaxDurationMinutes == nil || s.Status.Ended() && retried:
	case s.Status.Ended():
		return tx.ClearTimer(timerSessionBudget, string(s.ID))
	case retried, s.budgetEnds().Before(old.budgetEnds()): // the latter of one that runs before its notBefore
		return tx.SetTimer(timerSessionBudget, string(s.ID), s.budgetEnds())
	}
	return nil
}

// renew extends the lease or, if there is none, the life of the caller's lane token.
func (c *sessionChange) renew() {
	c.useLane()
	if l := c.s.Inner.Lease; l != nil && !c.s.Status.Ended() {
		renewed := *l
		renewed.ExpiresAt = At(c.tx.now.Add(time.Duration(l.Seconds) * time.Second))
		if renewed.CheckAt == "" || renewed.ExpiresAt < renewed.CheckAt {
			renewed.CheckAt = renewed.ExpiresAt
		}
		c.s.Inner.Lease = &renewed
	}
}

// issueInProgress sets the status of an issue to in progress if its work had not begun.
func (tx *Tx) issueInProgress(id storage.ID) error {
	row, err := issues.Get(tx, issueKey(id))
	if err != nil || row == nil {
		return err
	}
	switch row.Value.Status {
	case StatusTriage, StatusBacklog, StatusTodo:
		begun := *row
		begun.Value.Status = StatusInProgress
		_, err = tx.writeIssue(row, &begun)
	}
	return err
}

// sessionChanges lists the changed fields for an event, in the order of the session's
// fields; the holder and the end of the lease come last.
func sessionChanges(from, to *sessionRecord) changes {
	var c changes
	note(&c, "status", &from.Status, &to.Status)
	note(&c, "result", from.Result, to.Result)
	note(&c, "url", from.URL, to.URL)
	note(&c, "prUrl", from.PRURL, to.PRURL)
	note(&c, "prState", from.PRState, to.PRState)
	note(&c, "branch", from.Branch, to.Branch)
	note(&c, "notBefore", from.NotBefore, to.NotBefore)
	note(&c, "failureReason", from.FailureReason, to.FailureReason)
	note(&c, "deadLetteredAt", from.DeadLetteredAt, to.DeadLetteredAt)
	if was, is := orNull(from.StructuredResult), orNull(to.StructuredResult); !bytes.Equal(was, is) {
		c = append(c, Change{Field: "structuredResult", From: was, To: is})
	}
	if !slices.Equal(orEmpty(from.ResultSchemaErrors), orEmpty(to.ResultSchemaErrors)) {
		c = append(c, Change{Field: "resultSchemaErrors", From: from.ResultSchemaErrors, To: to.ResultSchemaErrors})
	}
	if held, holds := from.Inner.Lease, to.Inner.Lease; (held == nil) != (holds == nil) {
		c = append(c, Change{Field: "holder", From: held.holder(), To: holds.holder()}, Change{Field: "leaseExpiresAt", From: held.expiry(), To: holds.expiry()})
	}
	return c
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// orEmpty returns a list, or an empty one for none.
func orEmpty(list *[]string) []string {
	if list == nil {
		return nil
	}
	return *list
}

// holder returns the holder of the lease, or nil.
func (l *sessionLease) holder() *SessionHolder {
	if l == nil {
		return nil
	}
	return &SessionHolder{ID: l.HolderID, Type: l.HolderType}
}

func (l *sessionLease) expiry() *Timestamp {
	if l == nil {
		return nil
	}
	return &l.ExpiresAt
}
