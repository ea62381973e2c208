package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// eventLife is how long events are kept (Decision 44).
const eventLife = 30 * 24 * time.Hour

const (
	// sweepBatch limits the rows that one run of a sweep removes.
	sweepBatch = 1000
	// sweepPause is the least time between two sweeps unless rows are overdue, so that
	// rows which expire one by one don't cost a run each.
	sweepPause = 10 * time.Minute
)

// sweeps is a set of kinds of rows that share one timer per kind instead of having a
// timer each: expired rows, and issues that the search index does not cover. The timer
// is set while any row of its kind exists.
type sweeps uint8

const (
	sweepAnswers sweeps = 1 << iota
	sweepEvents
	sweepMemberships
	indexSearch
	sweepReceived
	mergeSegments
)

// Timer kinds of the sweeps.
const (
	timerSweepAnswers     = "sweep.answers"
	timerSweepEvents      = "sweep.events"
	timerSweepMemberships = "sweep.memberships"
	timerSweepReceived    = "sweep.received"
)

func (s sweeps) kind() string {
	switch s {
	case sweepAnswers:
		return timerSweepAnswers
	case sweepEvents:
		return timerSweepEvents
	case indexSearch:
		return timerIndexSearch
	case mergeSegments:
		return timerMergeSegments
	case sweepReceived:
		return timerSweepReceived
	}
	return timerSweepMemberships
}

// setSweep sets the sweeping timer of a kind, now that a row of it exists. The write buffer
// remembers that, so most calls cost a comparison.
func (tx *Tx) setSweep(s sweeps, due time.Time) error {
	if (tx.buffer.armed|tx.armed)&s != 0 {
		return nil
	}
	row, err := timers.Get(tx, timerKey(nil, s.kind(), ""))
	if err != nil {
		return fmt.Errorf("read a sweeping timer: %w", err)
	}
	if row == nil {
		if err := tx.SetTimer(s.kind(), "", due); err != nil {
			return err
		}
	}
	tx.armed |= s
	return nil
}

// endSweep ends the run of a sweep: it sets the timer to run at once if more rows are due, or to
// next if that is not zero, and otherwise clears it.
func (tx *Tx) endSweep(s sweeps, more bool, next time.Time) error {
	switch {
	case more:
		return tx.SetTimerAtOnce(s.kind(), "")
	case !next.IsZero():
		if soon := tx.now.Add(sweepPause); next.Before(soon) {
			next = soon
		}
		return tx.SetTimer(s.kind(), "", next)
	}
	tx.buffer.armed &^= s
	return tx.ClearTimer(s.kind(), "")
}

var sweepAnswersOp = NewCommand[TimerIn, None]("SweepAnswers", "Remove expired answers to idempotency keys", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	var expired []answerKey
	var ages [][]byte
	more, next := false, time.Time{}
	err := tx.Rows(idempotencyByAge, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != 8+len(answerKey{}) {
			return false, fmt.Errorf("%w: age entry of %d bytes", storage.ErrFormat, len(fields))
		}
		dies := time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).Add(idempotencyLife)
		if dies.After(tx.now) {
			next = dies
			return false, nil
		}
		if more = len(expired) == sweepBatch; more {
			return false, nil
		}
		expired = append(expired, answerKey(fields[8:]))
		ages = append(ages, append([]byte(nil), fields...))
		return true, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("sweep answers: %w", err)
	}
	for i, key := range expired {
		if err := tx.Writer().DeleteValue(idempotencyTable, key[:]); err != nil {
			return Reply{}, err
		}
		if err := tx.Writer().RemoveValue(idempotencyByAge, ages[i], 0); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, tx.endSweep(sweepAnswers, more, next)
}, WithSpaceEffect(FreesSpace))

var sweepEventsOp = NewCommand[TimerIn, None]("SweepEvents", "Remove events past their time", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	type expiredEvent struct {
		sequence uint64
		size     int
	}
	var expired []expiredEvent
	var gone []storage.ID
	more, next := false, time.Time{}
	err := tx.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		at, err := eventTime(value)
		if err != nil {
			return false, err
		}
		dies := at.Time().Add(eventLife)
		if dies.After(tx.now) {
			next = dies
			return false, nil
		}
		if more = len(expired) == sweepBatch; more {
			return false, nil
		}
		expired = append(expired, expiredEvent{binary.BigEndian.Uint64(fields), len(value)})
		id, err := deletedIssueIn(storage.Record(value).JSON())
		if err == nil && id != (storage.ID{}) {
			gone = append(gone, id)
		}
		return true, err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("sweep events: %w", err)
	}
	for _, e := range expired {
		if err := tx.Writer().RemoveValue(eventTable, storage.Key(nil).U64(e.sequence), e.size); err != nil {
			return Reply{}, err
		}
	}
	for _, issue := range gone {
		if err := tx.Writer().DeleteValue(tombstoneTable, issue[:]); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, tx.endSweep(sweepEvents, more, next)
}, WithSpaceEffect(FreesSpace))
