package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// Retention says after how many days a workspace gives up what is over; null: never
// (Decision 72).
type Retention struct {
	EndedSessionsDays *int64       `json:"endedSessionsDays"`
	DeliveriesDays    *int64       `json:"deliveriesDays"`
	ClosedIssuesDays  *int64       `json:"closedIssuesDays"`
	ClosedIssues      ClosedIssues `json:"closedIssues"`
}

// ClosedIssues is what retention does with closed issues.
type ClosedIssues string

// The ways to deal with closed issues.
const (
	ArchiveClosed ClosedIssues = "archive"
	DeleteClosed  ClosedIssues = "delete"
)

// EnumValues implements Enumerated.
func (ClosedIssues) EnumValues() []string {
	return enumTexts([]ClosedIssues{ArchiveClosed, DeleteClosed})
}

// forever reports whether everything is kept.
func (r *Retention) forever() bool {
	return r.EndedSessionsDays == nil && r.DeliveriesDays == nil && r.ClosedIssuesDays == nil
}

// maxRetentionDays is the most days that can be set, more than 2,700 years.
const maxRetentionDays = 1_000_000

// retentions has at most one row, the workspace's retention. Without it everything is kept.
var retentions = storage.Table[Retention]{
	ID:      retentionTable,
	Name:    "retention",
	Key:     func(k storage.Key, _ *Retention) storage.Key { return k },
	Changed: auditedHere[Retention](auditRetention, false),
}

var _ = declareTable(&retentions)

// GetRetention shows a workspace's retention.
var GetRetention = NewQuery[None, Retention]("GetRetention", "Show what a workspace keeps, and for how long", Needs{Level: Admin}, func(v *View, _ *None) (Reply, error) {
	row, err := retentions.Get(v, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the retention: %w", err)
	}
	if row == nil {
		return jsonReply(Done, Retention{ClosedIssues: ArchiveClosed})
	}
	return jsonReply(Done, row.Value)
})

// PutRetentionIn is a retention in a request. An absent or null number of days is no limit.
type PutRetentionIn struct {
	EndedSessionsDays Opt[int64]        `json:"endedSessionsDays" rules:"nullable,min=0,max=1000000"`
	DeliveriesDays    Opt[int64]        `json:"deliveriesDays" rules:"nullable,min=0,max=1000000"`
	ClosedIssuesDays  Opt[int64]        `json:"closedIssuesDays" rules:"nullable,min=0,max=1000000"`
	ClosedIssues      Opt[ClosedIssues] `json:"closedIssues" default:"archive"`
}

// PutRetention sets a workspace's retention in place of the one before. The next sweep
// goes by it.
var PutRetention = NewCommand[PutRetentionIn, Retention]("PutRetention", "Set what a workspace keeps, and for how long", Needs{Level: Admin}, putRetention, Audits(auditRetention))

func putRetention(tx *Tx, in *PutRetentionIn) (Reply, error) {
	r := Retention{
		EndedSessionsDays: in.EndedSessionsDays.Ptr(), DeliveriesDays: in.DeliveriesDays.Ptr(), ClosedIssuesDays: in.ClosedIssuesDays.Ptr(),
		ClosedIssues: in.ClosedIssues.Or(ArchiveClosed),
	}
	if err := tx.setRetention(&r); err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, r)
}

// setRetention stores a retention and sets the timer of its sweep.
func (tx *Tx) setRetention(r *Retention) error {
	row, err := retentions.Get(tx, nil)
	switch {
	case err != nil:
	case row == nil:
		_, err = retentions.Insert(tx, r)
	default:
		_, err = retentions.Update(tx, row, r)
	}
	if err != nil {
		return fmt.Errorf("store the retention: %w", err)
	}
	if r.forever() {
		return tx.ClearTimer(timerSweepRetention, "")
	}
	timer, err := timers.Get(tx, timerKey(nil, timerSweepRetention, ""))
	if err != nil {
		return fmt.Errorf("read the timer of the retention: %w", err)
	}
	due := tx.now.Add(tx.operator.sweepInterval())
	if timer != nil && !timer.Value.Due.Time().After(due) {
		return nil
	}
	return tx.SetTimer(timerSweepRetention, "", due)
}

// takeRetention sets the retention of an import. It is the last line but the end, so that no
// sweep meets half of the records.
func takeRetention(im *importing, data []byte) error {
	var r Retention
	if err := im.decode(data, &r); err != nil {
		return err
	}
	for _, days := range [...]*int64{r.EndedSessionsDays, r.DeliveriesDays, r.ClosedIssuesDays} {
		if days != nil && (*days < 0 || *days > maxRetentionDays) {
			return im.refuse("data must have whole days of 0 to %d, or null.", maxRetentionDays)
		}
	}
	return im.tx.setRetention(&r)
}

func (s *AgentSettings) sweepInterval() time.Duration {
	if s == nil || s.SweepInterval <= 0 {
		return time.Hour
	}
	return s.SweepInterval
}

// checkRetention checks that the timer of the sweep is set if there is something to sweep.
func checkRetention(v *storage.View, report reporter) error {
	row, err := retentions.Get(v, nil)
	if err != nil {
		return nil // the table's own check reports it
	}
	need := row != nil && !row.Value.forever()
	set, err := v.Has(timerTable, timerKey(nil, timerSweepRetention, ""))
	if err == nil && need != set {
		report(retentions.Name, nil, "the timer of its sweep is set: %t", set)
	}
	return err
}
