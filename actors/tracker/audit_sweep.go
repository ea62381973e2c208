package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

const (
	timerSweepAudit = "sweep.audit"
	// sweepAuditEvery is the longest time between two sweeps of a workspace's audit, so that a
	// shorter --audit-retention takes effect within it.
	sweepAuditEvery = 24 * time.Hour
)

func (s *AgentSettings) auditRetention() time.Duration {
	if s == nil || s.AuditRetention <= 0 {
		return 9600 * time.Hour
	}
	return s.AuditRetention
}

// auditEnd returns the key behind which the entries are past their time.
func (v *View) auditEnd() storage.Key {
	var first storage.ID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, v.now.Add(-v.operator.auditRetention()).UnixMilli())))
	copy(first[:6], ms[2:])
	return storage.Key(nil).DescID(first)
}

// sweepAuditLater sets the timer of the sweep, unless it is set.
func (tx *Tx) sweepAuditLater() error {
	set, err := tx.Has(timerTable, timerKey(nil, timerSweepAudit, ""))
	if err != nil || set {
		return err
	}
	return tx.SetTimer(timerSweepAudit, "", tx.now.Add(min(sweepAuditEvery, tx.operator.auditRetention())))
}

var sweepAuditOp = NewCommand[TimerIn, None]("SweepAudit", "Remove entries of the audit past their time", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	var rows []*storage.Row[AuditEntry]
	more := false
	err := audits.Scan(tx, nil, tx.auditEnd(), func(_ []byte, rec storage.Record) (bool, error) {
		if more = len(rows) == sweepBatch; more {
			return false, nil
		}
		row, err := audits.Decode(rec)
		rows = append(rows, row)
		return true, err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("sweep the audit: %w", err)
	}
	for _, row := range rows {
		if err := audits.Delete(tx, row); err != nil {
			return Reply{}, err
		}
	}
	if more {
		return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(timerSweepAudit, "")
	}
	left, err := tx.Has(auditTable, nil)
	if err != nil {
		return Reply{}, err
	}
	if !left {
		return Reply{Outcome: NoContent}, tx.ClearTimer(timerSweepAudit, "")
	}
	return Reply{Outcome: NoContent}, tx.SetTimer(timerSweepAudit, "", tx.now.Add(min(sweepAuditEvery, tx.operator.auditRetention())))
}, WithSpaceEffect(FreesSpace))

// checkAudit checks that entries past their time will be removed, and that the operator's will
// be sent.
func checkAudit(v *storage.View, report reporter) error {
	for table, kind := range map[storage.TableID]string{auditTable: timerSweepAudit, auditUnsent: timerSendAudit} {
		there, err := v.Has(table, nil)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		set, err := v.Has(timerTable, timerKey(nil, kind, ""))
		if err != nil {
			return err
		}
		if !set {
			report(audits.Name, nil, "there are entries, and no timer %s is set", kind)
		}
	}
	return nil
}
