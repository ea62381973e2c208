package tracker

import (
	"encoding/hex"
	"fmt"
	"strings"

	"switchyard/storage"
)

// A budget that is used up suspends its scope and ends the running sessions of it. The write
// that passes the limit does so, as far as one batch goes; a timer ends the rest.

const (
	// timerBudgetEnd ends further running sessions of a scope whose budget is used up. Its
	// subject is the place where to go on, and the scope.
	timerBudgetEnd = "budget.end"
	// timerBudgetMonth releases what waits for a scope's budget of a month when the next
	// one begins. Its subject is the scope.
	timerBudgetMonth = "budget.month"
	// maxBudgetEnded is the number of sessions that one command ends.
	maxBudgetEnded = 100
	// reasonBudget is the failureReason of sessions that are ended for a budget.
	reasonBudget = "budget"
)

func budgetEndSubject(place []byte, scope budgetScope) string {
	return hex.EncodeToString(place) + " " + scope.String()
}

// parseBudgetEnd parses the subject of a timer that ends sessions and reports whether it is
// one.
func parseBudgetEnd(subject string) (place []byte, scope budgetScope, ok bool) {
	text, of, _ := strings.Cut(subject, " ")
	place, err := hex.DecodeString(text)
	scope, ok = parseBudgetScope(of)
	return place, scope, ok && err == nil
}

// spend notes the scopes whose budget usage has used up that was just recorded. The command
// calls endOverspent when its own changes are stored.
func (tx *Tx) spend(o *usageOrigin, u *Usage) error {
	if some, err := tx.hasBudgets(); err != nil || !some {
		return err
	}
	scopes, err := tx.suspended(parkBudget)
	if err != nil {
		return err
	}
	return tx.eachBudget(o, func(scope budgetScope, b *BudgetLimits) error {
		sum, err := tx.spent(scope, b.Period)
		if err != nil || !b.exceededBy(&sum) {
			return err
		}
		before := sum
		before.CostMicros -= u.CostMicros
		before.InputTokens -= u.InputTokens
		before.OutputTokens -= u.OutputTokens
		if !b.exceededBy(&before) || !scopes[scope.String()] {
			tx.overspent = append(tx.overspent, scope)
		}
		return nil
	})
}

// endOverspent does what follows from the usage that the command has recorded for a session,
// which is stored, and returns what the session may still use. It ends the session too if its
// budget was used up before it began to run. now is the session after that; nil if nothing
// was done that may concern it.
func (tx *Tx) endOverspent(of *sessionRecord) (left *LaneBudget, now *sessionRecord, err error) {
	if some, err := tx.hasBudgets(); err != nil || !some {
		return nil, nil, err
	}
	work := tx.overspent
	tx.overspent = nil
	left, over, err := tx.budgetLeft(of.AgentID, of.issue())
	if err != nil {
		return nil, nil, err
	}
	ended := false
	if left != nil && left.Stop {
		if ended, err = tx.endForBudget(sessionKey(of.id()), over); err != nil {
			return nil, nil, err
		}
	}
	for _, scope := range work {
		if err := tx.applyBudget(scope); err != nil {
			return nil, nil, err
		}
	}
	if !ended && len(work) == 0 {
		return left, nil, nil
	}
	// The end of others may have ended the session too, or its wait.
	if err := tx.wakeSessions(); err != nil {
		return nil, nil, err
	}
	row, err := sessions.Get(tx, sessionKey(of.id()))
	if err == nil && row == nil {
		err = fmt.Errorf("session %s is not there", of.ID)
	}
	if err != nil {
		return nil, nil, err
	}
	return left, &row.Value, nil
}

// applyBudget suspends a scope whose budget is used up and ends its sessions, or resumes it.
func (tx *Tx) applyBudget(scope budgetScope) error {
	over, err := tx.suspendOverspent(scope)
	if err != nil || !over {
		return err
	}
	return tx.endScope(scope, nil)
}

// suspendOverspent suspends a scope whose budget is used up, or resumes it, and reports which.
func (tx *Tx) suspendOverspent(scope budgetScope) (over bool, err error) {
	row, err := tx.budget(scope)
	if err != nil {
		return false, err
	}
	if row != nil {
		u, err := tx.spent(scope, row.Value.Period)
		if err != nil {
			return false, err
		}
		over = row.Value.exceededBy(&u)
	}
	if over && row.Value.Period == BudgetMonth {
		err = tx.SetTimer(timerBudgetMonth, scope.String(), nextMonth(tx.now))
	} else {
		err = tx.ClearTimer(timerBudgetMonth, scope.String())
	}
	switch {
	case err != nil:
	case over:
		err = tx.suspendScope(parkBudget, scope.String())
	default:
		err = tx.resumeScope(parkBudget, scope.String())
	}
	return over, err
}

// endScope ends running sessions of a scope, from an index entry on. It leaves those beyond a
// batch to a timer.
func (tx *Tx) endScope(scope budgetScope, from []byte) error {
	found, next, err := tx.runningOf(scope, from)
	if err != nil {
		return err
	}
	for _, s := range found {
		if tx.written() > maxFollowed {
			next = s.at
			break
		}
		if _, err := tx.endForBudget(s.pk, scope); err != nil {
			return err
		}
	}
	if next == nil {
		return nil
	}
	return tx.SetTimerAtOnce(timerBudgetEnd, budgetEndSubject(next, scope))
}

// runningSession is a running session, with its entry in the index that it was found by.
type runningSession struct{ at, pk []byte }

// runningOf returns running sessions of a scope, from an index entry on, and the entry from
// which to go on, or nil.
func (tx *Tx) runningOf(scope budgetScope, from []byte) (found []runningSession, next []byte, err error) {
	index, prefix := sessionByStatus, storage.Key(nil).Byte(SessionRunning.rank())
	switch scope.kind {
	case usageOfAgent:
		index, prefix = sessionEngaged, storage.Key(nil).Str(scope.id)
	case usageOfIssue:
		id, _ := storage.ParseID(scope.id)
		index, prefix = sessionActive, storage.Key(nil).ID(id)
	}
	looked := 0
	err = tx.Rows(index, prefix, from, func(fields, _ []byte) (bool, error) {
		at := append([]byte{}, fields[len(prefix):]...)
		if looked++; looked > maxScanned || len(found) == maxBudgetEnded {
			next = at
			return false, nil
		}
		pk := at[len(at)-storage.ListedKeyLen:]
		runs := false
		_, err := sessions.Record(tx, pk, func(rec storage.Record) error {
			runs = rec.Flags()&sessionIsRunning != 0
			if !runs || scope.kind != usageOfProject {
				return nil
			}
			project, err := tx.projectOf(issueIn(rec))
			runs = runs && project == scope.id
			return err
		})
		if err == nil && runs {
			found = append(found, runningSession{at, pk})
		}
		return true, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the running sessions of a budget: %w", err)
	}
	return found, next, nil
}

// endForBudget cancels a session and escalates its issue, as at the end of its maxDuration
// (Decisions 32 and 67). It does nothing if the session does not run.
func (tx *Tx) endForBudget(pk []byte, scope budgetScope) (ended bool, err error) {
	row, err := sessions.Get(tx, pk)
	if err != nil || row == nil || row.Value.Status != SessionRunning {
		return false, err
	}
	if err := tx.escalate(row.Value.issue()); err != nil {
		return false, err
	}
	// The issue's new priority has moved the session in the queue.
	if row, err = sessions.Get(tx, pk); err != nil || row == nil {
		return false, err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return false, err
	}
	reason := reasonBudget
	c.s.FailureReason = &reason
	if err := c.move(SessionCanceled, byService); err != nil {
		return false, err
	}
	if err := c.logActivity(ActivityError, fmt.Sprintf("Canceled: the budget of %s is used up.", scope)); err != nil {
		return false, err
	}
	c.events = []*eventKind{eventSessionEscalated}
	_, err = c.save()
	return true, err
}

// endBudgetOp ends further running sessions of a scope, unless its budget has room again.
var endBudgetOp = NewCommand[TimerIn, None]("EndOverspent", "End further sessions of a used-up budget", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	from, scope, ok := parseBudgetEnd(in.Subject)
	if !ok {
		return Reply{}, fmt.Errorf("a timer's subject is %q, and no place and scope", in.Subject)
	}
	scopes, err := tx.suspended(parkBudget)
	if err != nil || !scopes[scope.String()] {
		return Reply{Outcome: NoContent}, err
	}
	return Reply{Outcome: NoContent}, tx.endScope(scope, from)
}, Prompt)

// budgetMonthOp releases what waits for a budget whose month is over.
var budgetMonthOp = NewCommand[TimerIn, None]("BeginBudgetMonth", "Release what waits for a budget's next month", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	scope, ok := parseBudgetScope(in.Subject)
	if !ok {
		return Reply{}, fmt.Errorf("a timer's subject is the scope %q", in.Subject)
	}
	return Reply{Outcome: NoContent}, tx.applyBudget(scope)
})
