package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// Timer is work that the service has to do in a workspace at a time. Its row is written
// in the batch that makes the work necessary, so it survives crashes.
type Timer struct {
	Kind    string    `json:"kind"`
	Subject string    `json:"subject"`
	Due     Timestamp `json:"due"`
}

// TimerIn is the input of the operation that a timer runs.
type TimerIn struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
}

// DueTimer is a timer that a shard's scheduler must run.
type DueTimer struct {
	Workspace storage.ID
	Kind      string
	Subject   string
	Due       time.Time
}

// timers has one row per kind and subject. The index spans the shard, so that the
// shard's scheduler finds due timers in one range, in the order of their time.
var timers = storage.Table[Timer]{
	ID:   timerTable,
	Name: "timer",
	Key:  func(k storage.Key, t *Timer) storage.Key { return timerKey(k, t.Kind, t.Subject) },
	Indexes: []storage.Index[Timer]{{
		ID:        timerByDue,
		Name:      "due",
		ShardWide: true,
		Entries: func(e *storage.Entries, t *Timer) {
			e.Add(e.Key().U64(uint64(t.Due.Time().UnixMilli())))
		},
	}},
	Dirty: DirtyTimers,
}

var _ = declareTable(&timers)

func timerKey(k storage.Key, kind, subject string) storage.Key { return k.Str(kind).Str(subject) }

// SetTimer sets the timer that runs the operation of a kind (see TimerOps) for subject;
// an existing timer of that kind and subject is moved. Neither string may contain a NUL
// byte. Work that goes on in the next batch has SetTimerAtOnce.
func (tx *Tx) SetTimer(kind, subject string, at time.Time) error {
	t := Timer{Kind: kind, Subject: subject, Due: At(at)}
	old, err := timers.Get(tx, timerKey(nil, kind, subject))
	if err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	switch {
	case old == nil:
		_, err = timers.Insert(tx, &t)
	case old.Value != t:
		_, err = timers.Update(tx, old, &t)
	}
	if err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	return nil
}

// SetTimerAtOnce is SetTimer for work that goes on in the next batch, whatever the time is.
func (tx *Tx) SetTimerAtOnce(kind, subject string) error {
	at, err := tx.atOnce()
	if err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	return tx.SetTimer(kind, subject, at)
}

// timesAtOnce bounds the times of timers that are due at once, in milliseconds since 1970. They end in
// November 2004: the clock of the next owner may be behind tx.now, or this one may be wrong, and these
// times are past for both. Every version takes them for overdue timers.
const timesAtOnce = 1 << 40

// atOnce returns the time of the timers that this command sets to be due at once. Commands of a workspace
// get different times, because the scheduler takes a timer which is still set to the time of its run for one
// whose run has failed. The times grow, so that timers run in the order in which they were set, for 74 hours,
// and begin anew then.
func (tx *Tx) atOnce() (time.Time, error) {
	if tx.dueAtOnce.IsZero() {
		tick, err := tx.tick()
		if err != nil {
			return time.Time{}, err
		}
		tx.dueAtOnce = time.UnixMilli(int64(tick % timesAtOnce)).UTC()
	}
	return tx.dueAtOnce, nil
}

// ClearTimer removes a timer, if it is set.
func (tx *Tx) ClearTimer(kind, subject string) error {
	old, err := timers.Get(tx, timerKey(nil, kind, subject))
	if err == nil && old != nil {
		err = timers.Delete(tx, old)
	}
	if err != nil {
		return fmt.Errorf("clear a timer: %w", err)
	}
	return nil
}

// hasTimer reports whether a timer is set.
func (tx *Tx) hasTimer(kind, subject string) (bool, error) {
	row, err := timers.Get(tx, timerKey(nil, kind, subject))
	if err != nil {
		return false, fmt.Errorf("read a timer: %w", err)
	}
	return row != nil, nil
}

// ReadDue calls fn with the timers of a shard that are due at now, the longest overdue first,
// from a position on, until fn returns false. A nil position is the beginning. It returns the
// time of the first timer that is not due yet, or zero if fn ended it or there is none. v
// reads the shard's own range.
func ReadDue(v *storage.View, from []byte, now time.Time, fn func(DueTimer) bool) (next time.Time, err error) {
	err = v.Rows(timerByDue, nil, from, func(fields, _ []byte) (bool, error) {
		t, err := parseDue(fields)
		if err != nil {
			return false, err
		}
		if t.Due.After(now) {
			next = t.Due
			return false, nil
		}
		return fn(t), nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read due timers: %w", err)
	}
	return next, nil
}

// Position returns the place of a timer in the order of ReadDue.
func (t *DueTimer) Position() []byte {
	k := make(storage.Key, 0, 8+len(t.Workspace)+len(t.Kind)+len(t.Subject)+2)
	return timerKey(k.U64(uint64(t.Due.UnixMilli())).ID(t.Workspace), t.Kind, t.Subject)
}

// IsSet reports whether a timer is still set to its time. v reads the shard's own range.
func (t *DueTimer) IsSet(v *storage.View) (bool, error) {
	row, err := v.Value(timerByDue, t.Position(), nil)
	if err != nil {
		return false, fmt.Errorf("read a due timer: %w", err)
	}
	return row != nil, nil
}

// SetTo returns the time to which the timer's kind and subject are set now. set is false if
// there is no such timer. v reads the timer's workspace.
func (t *DueTimer) SetTo(v *storage.View) (due time.Time, set bool, err error) {
	row, err := timers.Get(v, timerKey(nil, t.Kind, t.Subject))
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read a timer: %w", err)
	}
	if row == nil {
		return time.Time{}, false, nil
	}
	return row.Value.Due.Time(), true, nil
}

// parseDue parses an entry of timerByDue: due, workspace, kind, subject.
func parseDue(fields []byte) (t DueTimer, err error) {
	if len(fields) < 8+len(t.Workspace) {
		return t, fmt.Errorf("%w: timer entry of %d bytes", storage.ErrFormat, len(fields))
	}
	t.Due = time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).UTC()
	copy(t.Workspace[:], fields[8:])
	kind, rest, ok := storage.CutStr(fields[8+len(t.Workspace):])
	if !ok {
		return t, fmt.Errorf("%w: timer entry without a kind", storage.ErrFormat)
	}
	// Subjects have ids from clients, so the key may have escaped them.
	subject, rest, ok := storage.CutStr(rest)
	if !ok || len(rest) > 0 {
		return t, fmt.Errorf("%w: timer entry without a subject", storage.ErrFormat)
	}
	t.Kind, t.Subject = kind, subject
	return t, nil
}
