package tracker

import (
	"switchyard/storage"
)

// budgetOp cancels a session that has used up its maxDuration, and escalates its issue
// (Decision 32). A session that started to run after its timer was set ends later than
// the timer says.
var budgetOp = NewCommand[TimerIn, None]("EndBudget", "Cancel a session past its maxDuration", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if later, err := tx.putOff(in); err != nil || later {
		return Reply{Outcome: NoContent}, err
	}
	row, err := tx.timedSession(in)
	if err != nil {
		return Reply{}, err
	}
	if row == nil || row.Value.Status.Ended() || row.Value.MaxDurationMinutes == nil {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	if ends := row.Value.budgetEnds(); ends.After(tx.now) {
		return Reply{Outcome: NoContent}, tx.SetTimer(in.Kind, in.Subject, ends)
	}
	if err := tx.escalate(row.Value.issue()); err != nil {
		return Reply{}, err
	}
	// The issue's new priority has moved the session in the queue.
	if row, err = tx.timedSession(in); err != nil {
		return Reply{}, err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return Reply{}, err
	}
	if err := c.move(SessionCanceled, byService); err != nil {
		return Reply{}, err
	}
	length := Counted(*row.Value.MaxDurationMinutes, "minute", "minutes")
	if err := c.logActivity(ActivityError, "Canceled: its budget of "+length+" is used up."); err != nil {
		return Reply{}, err
	}
	c.events = []*eventKind{eventSessionEscalated}
	_, err = c.save()
	return Reply{Outcome: NoContent}, err
})

// escalate sets an issue's status to triage and raises its priority by one step. An
// archived issue stays as it is.
func (tx *Tx) escalate(issue storage.ID) error {
	row, err := issues.Get(tx, issueKey(issue))
	if err != nil || row == nil || row.Value.ArchivedAt != nil {
		return err
	}
	escalated := *row
	t := &escalated.Value
	t.Status = StatusTriage
	t.Resolution = nil // an open issue has no resolution
	switch t.Priority {
	case PriorityLow:
		t.Priority = PriorityMedium
	case PriorityMedium:
		t.Priority = PriorityHigh
	default:
		t.Priority = PriorityUrgent
	}
	tx.escalates = true
	_, err = tx.writeIssue(row, &escalated)
	tx.escalates = false
	return err
}
