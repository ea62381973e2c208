package tracker

import (
	"fmt"
	"strings"
	"time"

	"switchyard/storage"
)

// WaitCondition is something that a session waits for: exactly one of the fields
// (Decision 66).
type WaitCondition struct {
	// Session is one that has to end.
	Session string `json:"session,omitempty" rules:"min=1,max=255"`
	// Children is set to wait until all children of the session have ended.
	Children bool `json:"children,omitempty"`
	// Issue is one that has to be closed or deleted.
	Issue string `json:"issue,omitempty" rules:"min=1,max=255"`
	After string `json:"after,omitempty" rules:"datetime"`
	// PR and Checks are states of the session's own issue.
	PR     string `json:"pr,omitempty" enum:"merged,closed"`
	Checks string `json:"checks,omitempty" enum:"success,completed"`
	// Reply is set to wait for an answer of a person.
	Reply bool `json:"reply,omitempty"`
}

// WaitForIn is a list of conditions, all or any of which end a session's wait.
type WaitForIn struct {
	All Opt[[]WaitCondition] `json:"all" rules:"min=1,max=20"`
	Any Opt[[]WaitCondition] `json:"any" rules:"min=1,max=20"`
}

// list returns the conditions and their path below waitFor.
func (in *WaitForIn) list() ([]WaitCondition, string) {
	if in.Any.Set {
		return in.Any.Value, "waitFor.any"
	}
	return in.All.Value, "waitFor.all"
}

// faults adds the faults that the tags can't express.
func (in *WaitForIn) faults(faults *Faults) {
	if in.All.Set == in.Any.Set && faults.Empty() {
		faults.Add("waitFor", "Must have either all or any.")
	}
	list, at := in.list()
	for i := range list {
		c, place, given := &list[i], fmt.Sprintf("%s[%d]", at, i), 0
		for _, set := range [...]bool{c.Session != "", c.Children, c.Issue != "", c.After != "", c.PR != "", c.Checks != "", c.Reply} {
			if set {
				given++
			}
		}
		if given != 1 && faults.Empty() {
			faults.Add(place, "Must have exactly one of session, children, issue, after, pr, checks and reply; children and reply are true.")
		}
		if c.After != "" && snooze(&c.After) == nil {
			faults.Add(place+".after", "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
		}
	}
}

// sessionWait is what a session waits for.
type sessionWait struct {
	Any        bool            `json:"any,omitempty"`
	Conditions []WaitCondition `json:"conditions"`
	// Met says of each condition whether it has been met.
	Met []bool `json:"met"`
	// Since is the time when the wait began.
	Since Timestamp `json:"since"`
}

// over reports whether the wait is over.
func (w *sessionWait) over() bool {
	for _, met := range w.Met {
		if met == w.Any {
			return met
		}
	}
	return !w.Any
}

// WokenBy is a condition that ended a session's wait.
type WokenBy struct {
	Condition WaitCondition `json:"condition"`
	At        Timestamp     `json:"at"`
}

// waitKind is a kind of condition in the index of waiting sessions.
type waitKind byte

// The kinds of conditions; they are part of the format on disk.
const (
	waitSession  waitKind = 's'
	waitChildren waitKind = 'c'
	waitIssue    waitKind = 'i'
	waitPR       waitKind = 'p'
	waitChecks   waitKind = 'k'
)

// indexed returns the kind of a condition and what it is about; 0 for one that no index
// needs.
func (c *WaitCondition) indexed(s *sessionRecord) (waitKind, storage.ID) {
	switch {
	case c.Session != "":
		id, _ := storage.ParseID(c.Session)
		return waitSession, id
	case c.Children:
		return waitChildren, s.id()
	case c.Issue != "":
		id, _ := storage.ParseID(c.Issue)
		return waitIssue, id
	case c.PR != "":
		return waitPR, s.issue()
	case c.Checks != "":
		return waitChecks, s.issue()
	}
	return 0, storage.ID{}
}

// addWaits adds the entries of a waiting session to the index: one for each condition that
// has not been met.
func addWaits(e *storage.Entries, s *sessionRecord) {
	w := s.Inner.Wait
	if w == nil {
		return
	}
	for i := range w.Conditions {
		if kind, id := w.Conditions[i].indexed(s); kind != 0 && !w.Met[i] {
			e.Add(e.Key().Byte(byte(kind)).ID(id))
		}
	}
}

// timerSessionWait wakes a session, its subject, at the next time that it waits for.
const timerSessionWait = "session.wait"

// beginWait ends the claimer's lease: the session waits for conditions, or is woken at once.
// The conditions have been checked by seeConditions.
func (c *sessionChange) beginWait(in *WaitForIn) error {
	tx, s := c.tx, &c.s
	list, _ := in.list()
	if s.Inner.External || s.Inner.Lease == nil {
		return s.conflict("Nobody holds a claim of the session, so it can't wait for conditions.", "Report waiting without waitFor, or claim the session first.")
	}
	if err := c.move(SessionWaiting, byCaller); err != nil {
		return err
	}
	c.attemptEnd = AttemptWaited
	c.endAttempt()
	c.retireLanes()
	s.Inner.Lease = nil
	s.Inner.Attempts-- // waiting counts no attempt
	s.Inner.Wait = &sessionWait{Any: in.Any.Set, Conditions: list, Met: make([]bool, len(list)), Since: At(tx.order)}
	s.Inner.Park = &parking{Reason: parkWaitFor}
	var met []int
	for i := range list {
		is, err := tx.isMet(s, &list[i])
		if err != nil {
			return err
		}
		if is {
			met = append(met, i)
		}
	}
	return c.meet(met)
}

// seeConditions checks that the claimer may see the sessions and issues of conditions, and
// puts their ids into the usual form.
func (tx *Tx) seeConditions(s *sessionRecord, list []WaitCondition, at string) error {
	claimer, err := tx.claimer(s)
	if err != nil {
		return err
	}
	v := tx.View
	v.Caller, v.lane = claimer, nil
	var faults Faults
	for i := range list {
		c := &list[i]
		switch {
		case c.Session != "":
			var row *storage.Row[sessionRecord]
			if claimer != nil {
				row, err = v.session(SessionID(c.Session))
			}
			switch {
			case err != nil:
				return err
			case row == nil:
				faults.Add(fmt.Sprintf("%s[%d].session", at, i), "There is no such session.")
			case row.Value.ID == s.ID:
				faults.Add(fmt.Sprintf("%s[%d].session", at, i), "Must be another session.")
			default:
				c.Session = string(row.Value.ID)
			}
		case c.Issue != "":
			id, _ := storage.ParseID(c.Issue)
			seen := false
			if claimer != nil {
				seen, err = v.hasIssue(id)
			}
			if err != nil {
				return err
			}
			if !seen {
				faults.Add(fmt.Sprintf("%s[%d].issue", at, i), "There is no such issue.")
			}
			c.Issue = id.String()
		case c.After != "":
			c.After = strings.ToUpper(c.After) // may have a small t and z
		}
	}
	return faults.Err()
}

// isMet reports whether a condition is met now.
func (tx *Tx) isMet(s *sessionRecord, c *WaitCondition) (bool, error) {
	if at := snooze(&c.After); c.After != "" {
		return !at.Time().After(tx.now), nil
	}
	if c.Reply {
		return s.Inner.Answered, nil
	}
	kind, id := c.indexed(s)
	switch kind {
	case waitSession:
		row, err := sessions.Get(tx, sessionKey(id))
		return err == nil && (row == nil || row.Value.Status.Ended()), err
	case waitChildren:
		return tx.childrenEnded(id)
	case waitIssue, waitPR, waitChecks:
		row, err := issues.Get(tx, issueKey(id))
		if err != nil || row == nil {
			return row == nil && kind == waitIssue, err
		}
		t := row.Value
		if err := tx.addTold(&t); err != nil {
			return false, err
		}
		state := ""
		switch kind {
		case waitPR:
			state = fromPtr(t.PRState)
		case waitChecks:
			state = fromPtr(t.PRCheckState)
		case waitIssue:
			return t.Status.Closed(), nil
		}
		return c.metBy(state), nil
	}
	return false, nil
}

// metBy reports whether a state of a pull request, or of its checks, meets the condition.
func (c *WaitCondition) metBy(state string) bool {
	switch {
	case c.PR == "closed":
		return state == "closed" || state == "merged"
	case c.PR != "":
		return state == c.PR
	case c.Checks == "completed":
		return state != "" && state != "pending"
	case c.Checks != "":
		return state == c.Checks
	}
	return true
}

// childrenEnded reports whether all children of a session have ended.
func (v *View) childrenEnded(session storage.ID) (ended bool, err error) {
	ended = true
	err = v.Rows(sessionByParent, storage.Key(nil).ID(session).Byte(0), nil, func(_, _ []byte) (bool, error) {
		ended = false
		return false, nil
	})
	if err != nil {
		return false, fmt.Errorf("look for a session's children: %w", err)
	}
	return ended, nil
}

// meet notes conditions that this write has met, and ends the wait if that is all.
func (c *sessionChange) meet(met []int) error {
	before := c.s.Inner.Wait
	w := *before
	w.Met = append([]bool(nil), before.Met...)
	var by []WokenBy
	for _, i := range met {
		w.Met[i] = true
		if w.Conditions[i].Reply {
			c.s.Inner.Answered = false
		}
		by = append(by, WokenBy{w.Conditions[i], At(c.tx.now)})
	}
	c.s.Inner.Wait = &w
	if !w.over() {
		return c.armWait()
	}
	if err := c.move(SessionCreated, byService); err != nil {
		return err
	}
	c.s.Inner.WokenBy = by
	return c.logActivity(ActivityStatus, "What the session waited for has happened. It can be claimed again.")
}

// armWait sets the timer for the next time that the session waits for.
func (c *sessionChange) armWait() error {
	var next time.Time
	w := c.s.Inner.Wait
	for i := range w.Conditions {
		if at := snooze(&w.Conditions[i].After); w.Conditions[i].After != "" && !w.Met[i] && (next.IsZero() || at.Time().Before(next)) {
			next = at.Time()
		}
	}
	if next.IsZero() {
		return c.tx.ClearTimer(timerSessionWait, string(c.s.ID))
	}
	return c.tx.SetTimer(timerSessionWait, string(c.s.ID), next)
}

// sessionWaitOp notes the times that have come of those that a session waits for.
var sessionWaitOp = NewCommand[TimerIn, None]("EndWait", "Wake a session at a time that it waits for", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if later, err := tx.putOff(in); err != nil || later {
		return Reply{Outcome: NoContent}, err
	}
	row, err := tx.timedSession(in)
	if err != nil {
		return Reply{}, err
	}
	if row == nil || row.Value.Inner.Wait == nil {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return Reply{}, err
	}
	var met []int
	for i, condition := range c.s.Inner.Wait.Conditions {
		if at := snooze(&condition.After); condition.After != "" && !c.s.Inner.Wait.Met[i] && !at.Time().After(tx.now) {
			met = append(met, i)
		}
	}
	if err := c.meet(met); err != nil {
		return Reply{}, err
	}
	_, err = c.save()
	return Reply{Outcome: NoContent}, err
})
