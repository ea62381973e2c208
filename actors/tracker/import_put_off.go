package tracker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"switchyard/storage"
)

const (
	// importIdle is the time for which timers of sessions, and sweeps, wait for the next lines of an import.
	// A workspace whose import was given up has them again.
	importIdle = 24 * time.Hour
	// putOffBy is the least time after which a timer that waits looks at the import again. An import of a large
	// file takes hours, and each look is a write: so the time is a tenth of what the import has lasted.
	putOffBy = 10 * time.Second
)

// runningImport returns the import of which lines are still to come, or nil.
func runningImport(v *storage.View) (*importRecord, error) {
	row, err := imports.Get(v, nil)
	if err != nil {
		return nil, fmt.Errorf("read the import: %w", err)
	}
	if row == nil || row.Value.State != ImportRunning {
		return nil, nil
	}
	return &row.Value, nil
}

// isImported is storage.Schema.Unfinished: lines of the workspace's import are still to come.
func isImported(v *storage.View) (bool, error) {
	record, err := runningImport(v)
	if errors.Is(err, storage.ErrFormat) {
		return false, nil // the table's own check reports it
	}
	return record != nil, err
}

// putOff sets a timer anew while an import runs, and reports whether it did. The effect of a timer of
// sessions is an activity, or the end of a session. Older activities of the session, and the sessions
// that wait for it, may come with later lines, and so may what belongs to the records that a sweep deletes.
func (tx *Tx) putOff(in *TimerIn) (bool, error) {
	record, err := runningImport(&tx.View.View)
	if err != nil || record == nil || !record.UpdatedAt.Time().Add(importIdle).After(tx.now) {
		return false, err
	}
	lasted := tx.now.Sub(record.CreatedAt.Time())
	at := tx.now.Add(max(putOffBy, lasted/10))
	if ends := record.UpdatedAt.Time().Add(importIdle); at.After(ends) {
		at = ends
	}
	if in.Kind == timerSessionLeases {
		tx.leasesDue = &at
	}
	return true, tx.SetTimer(in.Kind, in.Subject, at)
}

// resumeLeases sets the timer of leases to the first check that was put off. The timers of
// single sessions find the end of the import themselves.
func (tx *Tx) resumeLeases() error {
	first := time.Time{}
	err := tx.Rows(sessionLeases, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) < 8 {
			return false, fmt.Errorf("%w: lease entry of %d bytes", storage.ErrFormat, len(fields))
		}
		first = time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).UTC()
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("list the leases: %w", err)
	}
	if first.IsZero() {
		return nil
	}
	return tx.armLeases(first)
}
