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
	// putOffBy is the time after which a timer that waits looks at the import again.
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
	at := tx.now.Add(putOffBy)
	if in.Kind == timerSessionLeases {
		tx.leasesDue = &at
	}
	return true, tx.SetTimer(in.Kind, in.Subject, at)
}

// timerImportedWaits goes through the sessions with whenReady once an import is done. Its subject is
// the issue from which on it goes, or empty.
const timerImportedWaits = "import.ready"

// resumeWhenReady has the sessions moved on that wait for issues which nothing blocks. A file that
// an earlier version exported between two batches of a release does not say which they are.
func (tx *Tx) resumeWhenReady() error {
	some, err := tx.any(sessionWhenReady)
	if err != nil || !some {
		return err
	}
	return tx.SetTimer(timerImportedWaits, "", tx.now.Add(time.Millisecond))
}

// maxImportedWaits is the number of issues that one command looks at.
const maxImportedWaits = 200

// settleImportedOp moves the sessions on that an import has left waiting for issues which nothing
// blocks.
var settleImportedOp = NewCommand[TimerIn, None]("SettleImported", "Move on the sessions that waited for imported issues", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	from, _ := storage.ParseID(in.Subject)
	at := from[:]
	for looked := 0; ; looked++ {
		keys, err := tx.rowKeysFrom(sessionWhenReady, nil, at, 1)
		if err != nil || len(keys) == 0 {
			return Reply{Outcome: NoContent}, err
		}
		issue := storage.ID(keys[0][:len(from)])
		if looked == maxImportedWaits || tx.followers.moved >= maxUnblockedSessions || tx.written() > maxFollowed {
			// See sessionHasEnded for the millisecond.
			return Reply{Outcome: NoContent}, tx.SetTimer(in.Kind, issue.String(), tx.now.Add(time.Millisecond))
		}
		if err := tx.settleUnblocked(issue); err != nil {
			return Reply{}, err
		}
		at = append(issue[:], 0xff) // behind all entries of the issue
	}
}, Prompt)

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
