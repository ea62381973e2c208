package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// Each workspace counts the bytes that it stores: the keys and values of its records,
// their index entries, events, history, activities, attachments and kept answers. The
// ledger adds the bytes of each command to the counters of its batch, so they are exact
// at any time and the same on all replicas. The search index, tallies and small rows
// with a limit of their own are not counted.

// The rows of bytesTable.
var (
	bytesAll     = storage.ID{}      // counter: all counted rows
	bytesAnswers = storage.ID{15: 1} // counter: kept answers, a part of bytesAll
	// bytesNext exists while a workspace from before the counters is being counted: the
	// first key that is not counted yet.
	bytesNext = storage.ID{15: 2}
)

// Limits are the bytes that a workspace may store; 0: no limit.
type Limits struct {
	Bytes       uint64 // in all, flag --limit-bytes
	AnswerBytes uint64 // kept answers, flag --limit-answer-bytes
}

// SpaceEffect is the effect of an operation on the bytes that its workspace stores.
type SpaceEffect uint8

const (
	// UsesSpace is the effect of most changes; the limits apply to them.
	UsesSpace SpaceEffect = iota
	// NeedsNoSpace is for changes that must go on in a full workspace and store next to
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

// LimitDetails are the details of the CONFLICT for a change that would exceed a limit
// of the workspace.
type LimitDetails struct {
	Limit string `json:"limit"`
	Max   uint64 `json:"max"`
}

// Limit sets the limits of the workspace; nil means no limits.
func (l *WriteBuffer) Limit(limits *Limits) {
	if limits == nil {
		limits = &Limits{}
	}
	l.limits = *limits
}

// meter decides which rows count. It is made once: the schema never changes.
var meter *storage.Meter // of the whole Schema

// limited reports whether the limits apply to a command.
func (l *WriteBuffer) limited(op *Op, req *Request) bool {
	switch {
	case op.Space != UsesSpace, req.Caller.Root, l.store.CountingBelow() != nil:
		return false
	}
	// Calls of providers are stored by the service itself, and limited.
	return req.Caller.Type != ActorSystem || req.permit.basis == basisSignature
}

// keeps reports whether the answer of a command is to be kept for its key. A repeat of
// a command that wrote nothing changes nothing, so its answer is not kept if the
// workspace has no room for it.
func (l *WriteBuffer) keeps(tx *Tx, op *Op, req *Request, wrote bool, size int) (bool, error) {
	if wrote && op.Space != NeedsNoSpace || req.Caller.Root || l.limits == (Limits{}) {
		return true, nil
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
	return !beyond(all+n, l.limits.Bytes) && !beyond(answers+n, l.limits.AnswerBytes), nil
}

// answerRows is the approximate size of an answer's rows without its body.
const answerRows = 256

func beyond(n, limit uint64) bool { return limit > 0 && n > limit }

func bytesKey(subject storage.ID) counterKey {
	return counterKey{table: bytesTable, subject: subject}
}

// charge adds the bytes that the command wrote to the workspace's counters, and returns
// an error if they exceed a limit.
func (l *WriteBuffer) charge(tx *Tx, op *Op, req *Request) error {
	grown := l.store.Counted()
	if grown == (storage.Bytes{}) || tx.Workspace() == storage.DirectoryID {
		return nil
	}
	limited := l.limited(op, req)
	for _, c := range []struct {
		subject storage.ID
		grown   int64
		limit   uint64
		refusal func(uint64) *Error
	}{
		{bytesAll, grown.All, l.limits.Bytes, errBytes},
		{bytesAnswers, grown.Apart, l.limits.AnswerBytes, errAnswerBytes},
	} {
		if c.grown == 0 {
			continue
		}
		n, err := l.counters.change(tx, bytesKey(c.subject))
		if err != nil {
			return err
		}
		n.n = uint64(max(0, int64(n.n)+c.grown))
		if limited && c.grown > 0 && beyond(n.n, c.limit) {
			return c.refusal(c.limit)
		}
	}
	return nil
}

func errBytes(limit uint64) *Error {
	err := Conflict(fmt.Sprintf("The workspace would store more than its %d bytes.", limit),
		"Delete issues, attachments or comments that are not needed any more; events end after 30 days and kept answers after 24 hours. The operator sets the limit with --limit-bytes.")
	err.Details = LimitDetails{Limit: "bytes", Max: limit}
	return err
}

func errAnswerBytes(limit uint64) *Error {
	err := Conflict(fmt.Sprintf("The answers kept for the workspace's idempotency keys would take more than %d bytes.", limit),
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
	n, err := l.counters.number(tx, bytesKey(bytesAll))
	if err != nil || n > 0 { // the workspace's own row counts, so the counter of a counted workspace is above 0
		return err
	}
	start, _ := storage.WorkspaceRange(tx.Shard(), tx.Workspace())
	l.store.CountBelow(start)
	if err := tx.Writer().SetValue(bytesTable, bytesNext[:], start); err != nil {
		return err
	}
	return tx.SetTimer(timerCountBytes, "", tx.now)
}

const timerCountBytes = "count.bytes"

// countPortion is the number of rows that one run of countBytesOp counts; it takes some
// milliseconds.
const countPortion = 10_000

// countBytesOp continues the count of a workspace from before the counters. No limit
// applies until it is done.
var countBytesOp = NewCommand[TimerIn, None]("CountBytes", "Count what a workspace stores", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	w := tx.Writer()
	if w.CountingBelow() == nil {
		return Reply{Outcome: NoContent}, tx.ClearTimer(timerCountBytes, "")
	}
	more, err := w.CountOn(tx.buffer.countRows)
	if err != nil {
		return Reply{}, fmt.Errorf("count what a workspace stores: %w", err)
	}
	if more {
		if err := w.SetValue(bytesTable, bytesNext[:], w.CountingBelow()); err != nil {
			return Reply{}, err
		}
		return Reply{Outcome: NoContent}, tx.SetTimer(timerCountBytes, "", tx.now)
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
	if v.Workspace() == storage.DirectoryID {
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
	return nil
}
