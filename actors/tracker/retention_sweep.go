package tracker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"switchyard/storage"
)

// A workspace with a retention has one timer, every --sweep-interval. Its run deletes or
// archives what is past its time, the oldest first, as far as that fits into a batch. The
// timer continues with the rest at once. Indexes by time lead to what is due, so a sweep that
// finds nothing costs three seeks.

const timerSweepRetention = "sweep.retention"

var sweepRetentionOp = NewCommand[TimerIn, None]("SweepRetention", "Give up what is past its time", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	row, err := retentions.Get(tx, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the retention: %w", err)
	}
	if row == nil || row.Value.forever() {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	// An admin may set a retention while an import runs, whose next lines refer to what is past its time.
	if later, err := tx.putOff(in); err != nil || later {
		return Reply{Outcome: NoContent}, err
	}
	more, err := tx.sweepRetention(&row.Value)
	if err != nil {
		return Reply{}, fmt.Errorf("sweep a workspace: %w", err)
	}
	if more {
		return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(in.Kind, in.Subject)
	}
	return Reply{Outcome: NoContent}, tx.SetTimer(in.Kind, in.Subject, tx.now.Add(tx.operator.sweepInterval()))
}, WithSpaceEffect(FreesSpace))

// sweepRetention does one batch of a sweep, and reports whether some is left.
func (tx *Tx) sweepRetention(r *Retention) (more bool, err error) {
	work := tx.newWorkBudget()
	for _, step := range [...]struct {
		days *int64
		do   func(until time.Time, work *workBudget) (more bool, err error)
	}{
		{r.EndedSessionsDays, tx.sweepSessions},
		{r.DeliveriesDays, tx.sweepDeliveries},
		{r.ClosedIssuesDays, func(until time.Time, work *workBudget) (bool, error) {
			if r.ClosedIssues == DeleteClosed {
				return tx.sweepIssues(until, work)
			}
			return tx.archiveIssues(until, work)
		}},
	} {
		if step.days == nil {
			continue
		}
		until := time.UnixMilli(tx.now.UnixMilli() - *step.days*(24*time.Hour).Milliseconds())
		if more, err = step.do(until, work); err != nil || more {
			return more, err
		}
	}
	return false, nil
}

// keysUntil lists the keys behind the times of an index, up to a time and at most limit of
// them, the oldest first.
func (v *View) keysUntil(index storage.TableID, prefix storage.Key, until time.Time, limit int) (keys [][]byte, err error) {
	if until.UnixMilli() < 0 || limit <= 0 {
		return nil, nil
	}
	last := uint64(min(until.UnixMilli(), math.MaxInt64))
	err = v.Rows(index, prefix, nil, func(fields, _ []byte) (bool, error) {
		fields = fields[len(prefix):]
		if len(fields) < 8 {
			return false, fmt.Errorf("%w: entry by time of %d bytes", storage.ErrFormat, len(fields))
		}
		if binary.BigEndian.Uint64(fields) > last {
			return false, nil
		}
		keys = append(keys, bytes.Clone(fields[8:]))
		return len(keys) < limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list what is past its time: %w", err)
	}
	return keys, nil
}

// sweepSessions deletes sessions that ended up to a time, and reports whether some are left
// that can be deleted now.
func (tx *Tx) sweepSessions(until time.Time, work *workBudget) (more bool, err error) {
	keys, err := tx.keysUntil(sessionByEnd, nil, until, work.left+1)
	if err != nil {
		return false, err
	}
	deleted := false
	for _, pk := range keys {
		if work.spent() {
			return deleted, nil
		}
		row, err := sessions.Get(tx, pk)
		if err == nil && row == nil {
			err = fmt.Errorf("an index names an ended session that is not there")
		}
		if err != nil {
			return false, err
		}
		did, more, err := tx.deleteSession(row, work)
		if err != nil || more {
			return true, err
		}
		deleted = deleted || did
	}
	return false, nil
}

// sweepDeliveries deletes deliveries that were over at a time, and reports whether some are
// left.
func (tx *Tx) sweepDeliveries(until time.Time, work *workBudget) (more bool, err error) {
	keys, err := tx.keysUntil(deliveryByEnd, nil, until, work.left+1)
	if err != nil {
		return false, err
	}
	dropped := map[storage.ID]int{} // by webhook
	for _, pk := range keys {
		if more = work.spent(); more {
			break
		}
		row, err := deliveries.Get(tx, pk)
		if err == nil && row == nil {
			err = fmt.Errorf("an index names a delivery that is not there")
		}
		if err != nil {
			return false, err
		}
		if err := deliveries.Delete(tx, row); err != nil {
			return false, fmt.Errorf("delete a delivery: %w", err)
		}
		dropped[storage.ID(pk)]++
	}
	for webhook, n := range dropped {
		if err := tx.addTo(deliveryCount, webhook, -n); err != nil {
			return false, err
		}
	}
	return more, nil
}

// archiveIssues archives issues that were closed up to a time, and reports whether some are
// left.
func (tx *Tx) archiveIssues(until time.Time, work *workBudget) (more bool, err error) {
	return tx.eachClosed(false, until, work, func(row *storage.Row[Issue]) (bool, error) {
		return false, tx.archiveIssue(row)
	})
}

// sweepIssues deletes issues that were closed up to a time, archived ones too, and reports
// whether some are left.
func (tx *Tx) sweepIssues(until time.Time, work *workBudget) (more bool, err error) {
	for _, archived := range [...]bool{true, false} {
		more, err := tx.eachClosed(archived, until, work, func(row *storage.Row[Issue]) (bool, error) {
			if more, err := tx.removeIssue(row, work); err != nil || more {
				return more, err
			}
			// The marks of the next deletion replace those of this one.
			return false, tx.runCascade()
		})
		if err != nil || more {
			return more, err
		}
	}
	return false, nil
}

// eachClosed calls do with the issues that were closed up to a time, until the batch is full
// or do reports that it has not finished with one. It reports whether some are left.
func (tx *Tx) eachClosed(archived bool, until time.Time, work *workBudget, do func(*storage.Row[Issue]) (more bool, err error)) (more bool, err error) {
	keys, err := tx.keysUntil(closingByTime, closingTime(nil, archived), until, work.left+1)
	if err != nil {
		return false, err
	}
	for _, pk := range keys {
		if work.spent() {
			return true, nil
		}
		row, err := issues.Get(tx, pk)
		if err == nil && row == nil {
			err = fmt.Errorf("an index names a closed issue that is not there")
		}
		if err != nil {
			return false, err
		}
		if more, err := do(row); err != nil || more {
			return more, err
		}
	}
	return false, nil
}
