package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// A burndown is computed from recorded changes, not from the present state of issues. A
// row of burndownTable records the days on which an issue entered or left a cycle, or
// was closed or reopened in it. A row begins with a header like a record's, with the
// issue's team and restricted flag, so that the row itself mostly decides who may see it,
// and a burndown reads one range. The header is followed by varints: the
// estimate that the issue presently adds to the cycle, and the changes. A change is the
// number of days since the previous change (the first: since 1970), times four, plus
// the state at the end of the day.
//
// burndownTable   cycle | issue's primary key -> header | estimate | changes
// burndownByIssue issue's primary key | cycle

// burndownState is the state of an issue in a cycle.
type burndownState uint8

const (
	burndownOut burndownState = iota // in another cycle, or a draft
	burndownOpen
	burndownClosed
)

const (
	// maxBurndownChanges limits the days in a row. Beyond it the oldest are dropped. A
	// burndown up to today does not need them: it has at most maxBurndownDays.
	maxBurndownChanges = 4000
	// maxBurndownCycles limits the cycles that an issue has rows in. Beyond it the row
	// of the cycle that it left first is dropped.
	maxBurndownCycles = 100
)

// burndownDay returns the day of a time in UTC, counted from 1970.
func burndownDay(t time.Time) int64 {
	const day = 24 * 60 * 60
	s := t.Unix()
	if s < 0 {
		s -= day - 1
	}
	return s / day
}

// burndownChange is a day whose state at the end differs from that of the previous day.
type burndownChange struct {
	day   int64
	state burndownState
}

// burndownWalk decodes the changes of a row one by one.
type burndownWalk struct {
	rest []byte
	burndownChange
}

// next moves to the next change; it returns false after the last.
func (w *burndownWalk) next() (bool, error) {
	if len(w.rest) == 0 {
		return false, nil
	}
	n, size := binary.Uvarint(w.rest)
	if size <= 0 || n&3 > uint64(burndownClosed) || n>>2 > maxBurndownDay {
		return false, fmt.Errorf("%w: changes of a burndown", storage.ErrFormat)
	}
	w.rest = w.rest[size:]
	w.day += int64(n >> 2)
	w.state = burndownState(n & 3)
	return true, nil
}

// maxBurndownDay is later than any day, those of the year 9999 included.
const maxBurndownDay = 1 << 24

// parseBurndown decodes a row up to its changes.
func parseBurndown(value []byte) (rec storage.Record, estimate uint64, walk burndownWalk, err error) {
	if rec, err = storage.ParseRecord(value); err != nil {
		return nil, 0, walk, err
	}
	estimate, size := binary.Uvarint(rec.JSON())
	if size <= 0 {
		return nil, 0, walk, fmt.Errorf("%w: estimate of a burndown", storage.ErrFormat)
	}
	walk.rest = rec.JSON()[size:]
	return rec, estimate, walk, nil
}

// burndownHeader returns the header that decides who may see a row.
func (a *aggregated) burndownHeader() storage.Header {
	h := storage.Header{Team: a.team}
	if a.restricted {
		h.Flags = issueRestricted
	}
	return h
}

func (a *aggregated) appendBurndown(b []byte, estimate uint64, changes []burndownChange) []byte {
	b = binary.AppendUvarint(storage.AppendHeader(b, a.burndownHeader()), estimate)
	day := int64(0)
	for _, c := range changes {
		b = binary.AppendUvarint(b, uint64(c.day-day)<<2|uint64(c.state))
		day = c.day
	}
	return b
}

// burndownKey returns the key of the row of a cycle, given in the encoding of Key.Str,
// and an issue.
func burndownKey(cycle []byte, id storage.ID) storage.Key {
	return append(make(storage.Key, 0, len(cycle)+storage.ListedKeyLen), cycle...).DescID(id)
}

// recordBurndown records an issue's state in its cycle from now on, and in the one that
// it leaves. There are no rows for an issue that never had a cycle.
func (tx *Tx) recordBurndown(t *Issue, created bool, before, after *aggregated) error {
	moved := !created && (before.team != after.team || before.restricted != after.restricted)
	if before.cycle == "" && after.cycle == "" && !moved {
		return nil
	}
	id := t.id()
	if before.cycle != after.cycle && before.cycle != "" {
		gone := *after
		gone.estimate, gone.cycleState = 0, burndownOut
		if err := tx.writeBurndown(storage.Key(nil).Str(before.cycle), id, false, &gone); err != nil {
			return err
		}
	}
	changed := before.cycle != after.cycle || before.cycleState != after.cycleState || before.estimate != after.estimate
	if after.cycle != "" && changed {
		if err := tx.writeBurndown(storage.Key(nil).Str(after.cycle), id, created, after); err != nil {
			return err
		}
	}
	if !moved {
		return nil
	}
	return tx.showBurndown(id, after)
}

// writeBurndown writes the present state of an issue in a cycle to its row.
func (tx *Tx) writeBurndown(cycle storage.Key, id storage.ID, created bool, now *aggregated) error {
	key := burndownKey(cycle, id)
	var changes []burndownChange
	known := false
	if !created {
		value, err := tx.Value(burndownTable, key, nil)
		if err != nil {
			return fmt.Errorf("read a burndown: %w", err)
		}
		if known = value != nil; known {
			if changes, err = burndownChanges(value); err != nil {
				return err
			}
		}
	}
	changes = withChange(changes, burndownChange{burndownDay(tx.now), now.cycleState})
	byIssue := append(issueKey(id), cycle...)
	if len(changes) == 0 {
		if !known {
			return nil
		}
		if err := tx.Writer().DeleteValue(burndownByIssue, byIssue); err != nil {
			return err
		}
		return tx.Writer().DeleteValue(burndownTable, key)
	}
	if !known {
		if !created {
			if err := tx.boundBurndowns(id); err != nil {
				return err
			}
		}
		if err := tx.Writer().SetValue(burndownByIssue, byIssue, nil); err != nil {
			return err
		}
	}
	estimate := now.estimate
	if now.cycleState == burndownOut {
		estimate = 0
	}
	return tx.Writer().SetValue(burndownTable, key, now.appendBurndown(nil, estimate, changes))
}

func burndownChanges(value []byte) (changes []burndownChange, err error) {
	_, _, walk, err := parseBurndown(value)
	for more := err == nil; more; {
		if more, err = walk.next(); more {
			changes = append(changes, walk.burndownChange)
		}
	}
	return changes, err
}

// withChange appends a change. Of several changes in one day the last counts, and a
// change to the present state is dropped.
func withChange(changes []burndownChange, c burndownChange) []burndownChange {
	for n := len(changes); n > 0 && changes[n-1].day >= c.day; n-- { // of a later day: the clock was ahead
		changes = changes[:n-1]
	}
	last := burndownOut
	if n := len(changes); n > 0 {
		last = changes[n-1].state
	}
	if c.state == last {
		return changes
	}
	changes = append(changes, c)
	for len(changes) > maxBurndownChanges || len(changes) > 0 && changes[0].state == burndownOut {
		changes = changes[1:] // older changes are dropped; the first one is never to burndownOut
	}
	return changes
}

// issueCycles returns the cycles that an issue has rows in, in the encoding of Key.Str.
func (v *View) issueCycles(id storage.ID) (cycles []storage.Key, err error) {
	pk := issueKey(id)
	err = v.Rows(burndownByIssue, pk, nil, func(fields, _ []byte) (bool, error) {
		cycles = append(cycles, append(storage.Key(nil), fields[len(pk):]...))
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read an issue's cycles: %w", err)
	}
	return cycles, nil
}

// boundBurndowns makes room for one more cycle of an issue.
func (tx *Tx) boundBurndowns(id storage.ID) error {
	cycles, err := tx.issueCycles(id)
	if err != nil || len(cycles) < maxBurndownCycles {
		return err
	}
	first, at := -1, int64(0)
	for i, cycle := range cycles {
		value, err := tx.Value(burndownTable, burndownKey(cycle, id), nil)
		if err != nil {
			return fmt.Errorf("read a burndown: %w", err)
		}
		changes, err := burndownChanges(value)
		if err != nil {
			return err
		}
		if n := len(changes); n > 0 && (first < 0 || changes[n-1].day < at) {
			first, at = i, changes[n-1].day
		}
	}
	if first < 0 {
		return fmt.Errorf("%w: burndowns without a change", storage.ErrFormat)
	}
	return tx.dropBurndown(cycles[first], id)
}

func (tx *Tx) dropBurndown(cycle storage.Key, id storage.ID) error {
	if err := tx.Writer().DeleteValue(burndownTable, burndownKey(cycle, id)); err != nil {
		return err
	}
	return tx.Writer().DeleteValue(burndownByIssue, append(issueKey(id), cycle...))
}

// showBurndown writes the present team and restricted flag into all rows of an issue.
func (tx *Tx) showBurndown(id storage.ID, now *aggregated) error {
	cycles, err := tx.issueCycles(id)
	if err != nil {
		return err
	}
	for _, cycle := range cycles {
		key := burndownKey(cycle, id)
		value, err := tx.Value(burndownTable, key, nil)
		if err != nil {
			return fmt.Errorf("read a burndown: %w", err)
		}
		rec, err := storage.ParseRecord(value)
		if err != nil {
			return fmt.Errorf("read a burndown: %w", err)
		}
		head := storage.AppendHeader(nil, now.burndownHeader())
		if err := tx.Writer().SetValue(burndownTable, key, append(head, rec.JSON()...)); err != nil {
			return err
		}
	}
	return nil
}

// eraseBurndown removes all rows of an issue.
func (tx *Tx) eraseBurndown(id storage.ID) error {
	cycles, err := tx.issueCycles(id)
	if err != nil {
		return err
	}
	for _, cycle := range cycles {
		if err := tx.dropBurndown(cycle, id); err != nil {
			return err
		}
	}
	return nil
}
