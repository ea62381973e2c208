package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// Each workspace counts the bytes that it stores: the keys and values of its records,
// their index entries, events, history, activities, attachments and kept answers. The
// write buffer adds the bytes of each command to the counters of its batch, so they are exact
// at any time and the same on all replicas. The search index, aggregates and small rows
// with a limit of their own are not counted. The rows of issues and of sessions that have
// not ended are counted beside the bytes, see limits.go.

// The rows of bytesTable.
var (
	bytesAll     = storage.ID{}      // counter: all counted rows
	bytesAnswers = storage.ID{15: 1} // counter: kept answers, a part of bytesAll
	// bytesIssues and bytesSessions are counters of rows: all issues, and the sessions that
	// have not ended.
	bytesIssues   = storage.ID{15: 3}
	bytesSessions = storage.ID{15: 4}
	// bytesNext exists while a workspace from before the counters is being counted: the
	// first key that is not counted yet.
	bytesNext = storage.ID{15: 2}
)

// SpaceEffect is the effect of an operation on the bytes that its workspace stores.
type SpaceEffect uint8

const (
	// UsesSpace is the effect of most changes; the limits apply to them.
	UsesSpace SpaceEffect = iota
	// NeedsNoSpace is for changes that must work in a full workspace and store next to
	// nothing. Their answers are kept for idempotency keys only while there is room.
	NeedsNoSpace
	// FreesSpace is for deletions and cancellations.
	FreesSpace
	// EndsWorkspace is for steps of a workspace's deletion. They are the last to be refused on a
	// full disk.
	EndsWorkspace
)

// WithSpaceEffect sets the effect of an operation on the bytes that its workspace stores.
func WithSpaceEffect(r SpaceEffect) Option { return func(o *Op) { o.Space = r } }

// meter decides which rows count. It is made once: the schema never changes.
var meter *storage.Meter // of the whole Schema

// keepsAnswer reports whether the answer of a command is to be kept for its key. A repeat of
// a command that wrote nothing changes nothing, so its answer is not kept if the
// workspace has no room for it.
func (l *WriteBuffer) keepsAnswer(tx *Tx, op *Op, req *Request, wrote bool, size int) (bool, error) {
	if wrote && op.Space != NeedsNoSpace || req.Caller.Root {
		return true, nil
	}
	most, err := l.most(tx)
	if err != nil || most.bytes == noLimit && l.defaults.AnswerBytes == 0 {
		return err == nil, err
	}
	all, err := l.counters.number(tx, bytesKey(bytesAll))
	if err != nil {
		return false, err
	}
	answers, err := l.counters.number(tx, bytesKey(bytesAnswers))
	if err != nil {
		return false, err
	}
	n := uint64(size) + answerRows
	return all+n <= most.bytes && answers+n <= orNoLimit(l.defaults.AnswerBytes), nil
}

// answerRows is the approximate size of an answer's rows without its body.
const answerRows = 256

func bytesKey(subject storage.ID) counterKey {
	return counterKey{table: bytesTable, subject: subject}
}

func errBytes(limit uint64) *Error {
	err := Conflict("The workspace would store more than its "+Counted(limit, "byte", "bytes")+".",
		"Delete issues, attachments or comments that are not needed any more; events end after 30 days and kept answers after 24 hours. The operator sets the limit for the workspace, or with --limit-bytes for all.")
	err.Details = LimitDetails{Limit: "bytes", Max: limit}
	return err
}

func errAnswerBytes(limit uint64) *Error {
	err := Conflict("The answers kept for the workspace's idempotency keys would take more than "+Counted(limit, "byte", "bytes")+".",
		"Answers are kept for 24 hours: send fewer or smaller changes with an Idempotency-Key, or leave the key out. The operator sets the limit with --limit-answer-bytes.")
	err.Details = LimitDetails{Limit: "answerBytes", Max: limit}
	return err
}

// resumeCount finds out how far the rows of the workspace have been counted. It starts
// the count of a workspace from before the counters.
func (l *WriteBuffer) resumeCount(tx *Tx) error {
	next, err := tx.Value(bytesTable, bytesNext[:], nil)
	if err != nil {
		return fmt.Errorf("read how far a workspace is counted: %w", err)
	}
	l.store.CountBelow(next)
	if next != nil {
		return nil
	}
	counted, err := l.isCounted(tx)
	if err != nil || counted {
		return err
	}
	return tx.beginCount()
}

// beginCount starts to count the workspace's rows.
func (tx *Tx) beginCount() error {
	for _, subject := range countSubjects {
		n, err := tx.buffer.counters.change(tx, bytesKey(subject))
		if err != nil {
			return err
		}
		n.n = 0
	}
	start := tx.countNothing()
	if err := tx.Writer().SetValue(bytesTable, bytesNext[:], start); err != nil {
		return err
	}
	return tx.SetTimerAtOnce(timerCountBytes, "")
}

// countNothing has no rows counted, and returns the first key of the workspace.
func (tx *Tx) countNothing() []byte {
	start, _ := storage.WorkspaceRange(tx.Shard(), tx.Workspace())
	tx.Writer().CountBelow(start)
	return start
}

// isCounted reports whether the counters of a workspace have counted its rows.
func (l *WriteBuffer) isCounted(tx *Tx) (bool, error) {
	n, err := l.counters.number(tx, bytesKey(bytesAll))
	if err != nil || n == 0 { // the workspace's own row counts, so the counter of a counted workspace is above 0
		return false, err
	}
	// The counters of rows are younger than that of bytes.
	for i, subject := range rowCounters {
		n, err := l.counters.number(tx, bytesKey(subject))
		if err != nil {
			return false, err
		}
		if n > 0 {
			continue
		}
		if rows, err := tx.Has(limitedRows[i], nil); err != nil || rows {
			return false, err
		}
	}
	return true, nil
}

const timerCountBytes = "count.bytes"

// countStep is the number of rows that one run of countBytesOp counts; it takes some
// milliseconds.
const countStep = 10_000

// countBytesOp continues the count of a workspace from before the counters. No limit
// applies until it is done.
var countBytesOp = NewCommand[TimerIn, None]("CountBytes", "Count what a workspace stores", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	w := tx.Writer()
	if w.CountingBelow() == nil {
		return Reply{Outcome: NoContent}, tx.ClearTimer(timerCountBytes, "")
	}
	more, err := w.CountOn(tx.buffer.countRows)
	if err != nil {
		return Reply{}, fmt.Errorf("count a workspace's bytes: %w", err)
	}
	if more {
		if err := w.SetValue(bytesTable, bytesNext[:], w.CountingBelow()); err != nil {
			return Reply{}, err
		}
		return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(timerCountBytes, "")
	}
	if err := w.DeleteValue(bytesTable, bytesNext[:]); err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(timerCountBytes, "")
})

// checkBytesRow checks one row of bytesTable.
func checkBytesRow(_ *storage.View, fields, value []byte) error {
	switch {
	case len(fields) != len(storage.ID{}):
		return fmt.Errorf("%w: bytes of %d fields", storage.ErrFormat, len(fields))
	case !bytes.Equal(fields, bytesNext[:]) && len(value) != 8:
		return fmt.Errorf("%w: counter of %d bytes", storage.ErrFormat, len(value))
	}
	return nil
}

// checkBytes checks the counters of a workspace against its rows. Counters of a
// workspace that is not yet counted are not checked.
func checkBytes(v *storage.View, found storage.Bytes, report func(storage.Problem)) error {
	if v.Workspace().IsService() {
		return nil
	}
	next, err := v.Value(bytesTable, bytesNext[:], nil)
	if err != nil || next != nil {
		return err
	}
	all, err := v.Number(bytesTable, bytesAll[:])
	if err != nil || all == 0 {
		return err
	}
	answers, err := v.Number(bytesTable, bytesAnswers[:])
	if err != nil {
		return err
	}
	if uint64(found.All) != all || uint64(found.Apart) != answers {
		reportTo(report)("bytes", nil, "counted are %d bytes, %d of them answers; stored are %d and %d", all, answers, found.All, found.Apart)
	}
	for i, subject := range rowCounters {
		n, err := v.Number(bytesTable, subject[:])
		if err != nil {
			return err
		}
		if uint64(found.Rows[i]) != n {
			reportTo(report)("bytes", subject[:], "counted are %d rows under id %d; there are %d", n, limitedRows[i], found.Rows[i])
		}
	}
	return nil
}
