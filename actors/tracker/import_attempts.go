package tracker

import (
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// checkWait checks what a session waits for after a report.
func (im *importing) checkWait(s *sessionRecord) error {
	w := s.Inner.Wait
	parked := s.Inner.Park != nil && s.Inner.Park.Reason == parkWaitFor
	if w == nil && !parked {
		return nil
	}
	if w == nil || !parked || len(w.Met) != len(w.Conditions) || w.Since == "" || w.over() {
		return im.refuse("data.wait must be that of a session which waits for conditions.")
	}
	given := WaitForIn{All: Some(w.Conditions)}
	var faults Faults
	given.faults(&faults)
	for i := range w.Conditions {
		c := &w.Conditions[i]
		for _, id := range [...]string{c.Session, c.Issue} {
			if _, ok := storage.ParseID(id); id != "" && !ok {
				return im.refuse("data.wait.conditions[%d] must have the id of a session or an issue.", i)
			}
		}
	}
	if len(w.Conditions) > 20 || !faults.Empty() {
		return im.refuse("data.wait.conditions must be 1 to 20 conditions.")
	}
	return nil
}

// setWait counts a session that waits for conditions, and sets its timer.
func (im *importing) setWait(old, s *sessionRecord) error {
	if s.Inner.Wait == nil {
		return nil
	}
	if err := im.tx.countWaits(old, s); err != nil {
		return err
	}
	c := sessionChange{tx: im.tx, s: *s}
	return c.armWait()
}

// takeAttempt stores an attempt before the last one of its session.
func takeAttempt(im *importing, data []byte) error {
	var a transferredAttempt
	if err := im.decode(data, &a); err != nil {
		return err
	}
	row, err := im.needSession(a.SessionID)
	if err != nil {
		return err
	}
	current := row.Value.Inner.Attempt
	if current == nil || a.Number < 1 || a.Number >= current.Number || a.Number <= current.Number-keptAttempts || a.End == "" || a.EndedAt == "" || a.ClaimedAt == "" {
		return im.refuse("data must be an attempt that ended, one of the last %d before the session's last one.", keptAttempts)
	}
	body, err := json.MarshalWithOption(&a.attemptRecord, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode an attempt: %w", err)
	}
	return im.addRow(attemptTable, attemptKey(row.Value.id(), a.Number), body)
}

// addRow stores a plain row that must be new.
func (im *importing) addRow(table storage.TableID, key storage.Key, value []byte) error {
	there, err := im.tx.Has(table, key)
	if err != nil {
		return fmt.Errorf("look for a row: %w", err)
	}
	if there {
		return im.refuse("There is such a record already.")
	}
	return im.tx.Writer().AddValue(table, key, value)
}

func takeCheckpoint(im *importing, data []byte) error {
	var c transferredCheckpoint
	if err := im.decode(data, &c); err != nil {
		return err
	}
	row, err := im.needSession(c.SessionID)
	if err != nil {
		return err
	}
	if len(c.Checkpoint) == 0 || len(c.Checkpoint) > maxCheckpoint {
		return im.refuse("data.checkpoint must be at most %d bytes of JSON.", maxCheckpoint)
	}
	id := row.Value.id()
	return im.addRow(checkpointTable, id[:], c.Checkpoint)
}

// takePlan stores the plan of a session.
func (im *importing) takePlan(session storage.ID, plan []PlanStep) error {
	if len(plan) > maxPlan {
		return im.refuse("data.plan must have at most %d steps.", maxPlan)
	}
	var faults Faults
	given := Some(plan)
	planFaults(&given, &faults)
	for i := range plan {
		if s := &plan[i]; !faults.Empty() || s.ID == "" || s.Title == "" || !isPlanStatus(s.Status) {
			return im.refuse("data.plan must have steps with an id of their own, a title and a status.")
		}
	}
	body, err := json.MarshalWithOption(plan, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode a plan: %w", err)
	}
	return im.addRow(planTable, session[:], body)
}

func isPlanStatus(status string) bool {
	switch status {
	case "pending", "in_progress", "completed", "canceled":
		return true
	}
	return false
}

// takeUsage stores reported usage and adds it up. The session may be gone: retention keeps the
// usage of the sessions that it deletes. The sums of an issue that was deleted are gone, and
// stay so.
func takeUsage(im *importing, data []byte) error {
	var t transferredUsage
	if err := im.decode(data, &t); err != nil {
		return err
	}
	o := usageOrigin{agent: t.AgentID, project: fromPtr(t.ProjectID), model: fromPtr(t.Model)}
	o.session, _ = storage.ParseID(t.SessionID)
	o.issue, _ = storage.ParseID(t.IssueID)
	row, err := sessions.Get(im.tx, sessionKey(o.session))
	if err != nil {
		return fmt.Errorf("read a session: %w", err)
	}
	if !t.valid() || t.At == "" || t.At.Time().UnixMilli() < 0 || o.agent == "" || isLonger(o.agent, 255) || isLonger(o.project, 255) || len(o.model) > 4*200 {
		return im.refuse("data must have an agentId, a time, and numbers of 0 or more.")
	}
	if row != nil && o.issue != row.Value.issue() {
		return im.refuse("data.issueId must be that of the session.")
	}
	for _, owner := range [...]storage.ID{o.session, o.issue} {
		if err := im.needNewer(t.ID, owner); err != nil {
			return err
		}
	}
	id, _ := storage.ParseID(t.ID)
	at := t.At.Time()
	if there, err := im.tx.Has(usageEntryTable, usageEntryKey(at, id)); err != nil || there {
		if err == nil {
			err = im.refuse("There is such a record already.")
		}
		return err
	}
	known, err := im.tx.Has(issueTable, issueKey(o.issue))
	if err != nil {
		return fmt.Errorf("look for an issue: %w", err)
	}
	if !known {
		im.wasDeleted(o.issue)
	}
	return im.tx.storeUsage(at, id, &o, &t.Usage, known)
}

// valid reports whether all numbers are in the range of sums.
func (u *Usage) valid() bool {
	for _, n := range [...]int64{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CostMicros} {
		if n < 0 || n > maxUsage {
			return false
		}
	}
	return true
}

// takeHold puts a scope on hold, as it was.
func takeHold(im *importing, data []byte) error {
	var h Hold
	if err := im.decode(data, &h); err != nil {
		return err
	}
	if !isHoldScope(h.Scope) || h.Reason == "" || len(h.Reason) > 4*500 || isLonger(h.CreatedByID, 255) {
		return im.refuse("data must have a scope and a reason.")
	}
	if err := restore(im, &holds, &h); err != nil {
		return err
	}
	if h.Until != nil {
		if err := im.tx.SetTimer(timerHold, h.Scope, h.Until.Time()); err != nil {
			return err
		}
	}
	return im.tx.suspendScope(parkHold, h.Scope)
}

// takeConcurrencyLimit sets the limit of a concurrency key. Sessions that came before it
// with the limit 1 get their places.
func takeConcurrencyLimit(im *importing, data []byte) error {
	var l ConcurrencyLimit
	if err := im.decode(data, &l); err != nil {
		return err
	}
	if !isConcurrencyKey(l.Key) || l.Limit < 1 || l.Limit > 10_000 {
		return im.refuse("data must have a concurrency key, and a limit of 1 to 10000.")
	}
	if err := restore(im, &concurrencyLimits, &l); err != nil {
		return err
	}
	return im.tx.limitChanged(l.Key, 1, l.Limit)
}

// takeBudget sets the budget of a scope, after the usage that counts for it. A running session of
// a scope whose budget is used up was registered later and goes on, as it does where it is.
func takeBudget(im *importing, data []byte) error {
	var b BudgetLimits
	if err := im.decode(data, &b); err != nil {
		return err
	}
	scope, ok := parseBudgetScope(b.Scope)
	if !ok || !slices.Contains(b.Period.EnumValues(), string(b.Period)) || b.CostMicros != nil && *b.CostMicros < 0 || b.Tokens != nil && *b.Tokens < 0 {
		return im.refuse("data must have the scope, the period and the limits of a budget.")
	}
	if err := restore(im, &budgets, &b); err != nil {
		return err
	}
	_, err := im.tx.suspendOverspent(scope)
	return err
}
