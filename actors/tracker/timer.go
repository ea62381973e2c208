package tracker

import (
	"encoding/binary"
	"fmt"
	"strings"
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
// byte.
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

// ListDue returns the timers of a shard that are due at now, the longest overdue first
// and at most limit of them, and the time of the first timer that is not among them, or
// zero. It skips those for which wanted returns false. v reads the shard's own range.
func ListDue(v *storage.View, now time.Time, limit int, wanted func(workspace storage.ID, kind string) bool) (due []DueTimer, next time.Time, err error) {
	err = v.Rows(timerByDue, nil, nil, func(fields, _ []byte) (bool, error) {
		t, err := parseDue(fields)
		if err != nil {
			return false, err
		}
		if t.Due.After(now) {
			next = t.Due
			return false, nil
		}
		if !wanted(t.Workspace, t.Kind) {
			return true, nil
		}
		if len(due) >= limit {
			next = t.Due
			return false, nil
		}
		due = append(due, t)
		return true, nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list due timers: %w", err)
	}
	return due, next, nil
}

// parseDue parses an entry of timerByDue: due, workspace, kind, subject.
func parseDue(fields []byte) (t DueTimer, err error) {
	if len(fields) < 8+len(t.Workspace)+2 || fields[len(fields)-1] != 0 {
		return t, fmt.Errorf("%w: timer entry of %d bytes", storage.ErrFormat, len(fields))
	}
	t.Due = time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).UTC()
	copy(t.Workspace[:], fields[8:])
	kind, subject, ok := strings.Cut(string(fields[8+len(t.Workspace):len(fields)-1]), "\x00")
	if !ok {
		return t, fmt.Errorf("%w: timer entry without a subject", storage.ErrFormat)
	}
	t.Kind, t.Subject = kind, subject
	return t, nil
}
