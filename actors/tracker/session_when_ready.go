package tracker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"switchyard/storage"
)

// A session with whenReady waits while its issue is blocked (Decision 59). The command that
// closes or removes the last open blocker moves it on in its own batch, and the one that
// closes the issue itself cancels it. A timer continues if a command has no room for all of them.

// timerWhenReady continues with the sessions that wait for an issue, its subject.
const timerWhenReady = "session.ready"

func init() {
	afterUnblock = append(afterUnblock, (*Tx).settleUnblocked)
	afterClose = append(afterClose, (*Tx).settleWhenReady)
}

// awaitsIssue reports whether a session with whenReady still waits, be it for something
// else before its issue.
func (s *sessionRecord) awaitsIssue() bool {
	park := s.Inner.Park
	return s.WhenReady && s.Status == SessionWaiting && s.Inner.StartedAt == "" && park != nil && park.Reason <= parkBlocked
}

// addWhenReady adds the entry of a session that waits for its issue. Those that wait for
// nothing else come first.
func addWhenReady(e *storage.Entries, s *sessionRecord) {
	if !s.awaitsIssue() {
		return
	}
	var later byte
	if s.Inner.Park.Reason != parkBlocked {
		later = 1
	}
	e.Add(e.Key().ID(s.issue()).Byte(later))
}

// waitersOf are the sessions that wait for an issue which a command has to move on if the issue is closed. If
// it is open, these are the sessions that wait for nothing else.
type waitersOf uint8

const (
	// waitersOfClosing are all sessions: the command closes the issue.
	waitersOfClosing waitersOf = iota
	// waitersOfTimer are those that were there when the issue was closed.
	waitersOfTimer
	// waitersOfUnblocked are those that wait for nothing else. The others were dispatched after the
	// issue was closed.
	waitersOfUnblocked
)

// settleWhenReady cancels the sessions that wait for an issue that was closed.
func (tx *Tx) settleWhenReady(issue storage.ID) error {
	return tx.settleWaiting(issue, waitersOfClosing)
}

// settleUnblocked moves the sessions on that wait for an issue, if it is not blocked any more.
func (tx *Tx) settleUnblocked(issue storage.ID) error {
	return tx.settleWaiting(issue, waitersOfUnblocked)
}

func (tx *Tx) settleWaiting(issue storage.ID, waiters waitersOf) error {
	keys, err := tx.rowKeys(sessionWhenReady, storage.Key(nil).ID(issue), maxUnblockedSessions+1)
	if err != nil {
		return fmt.Errorf("list the sessions that wait for an issue: %w", err)
	}
	if len(keys) == 0 {
		return nil
	}
	there, closed, err := tx.issueIsClosed(issue)
	if err != nil || !there {
		return err
	}
	if !closed {
		if blocked, err := tx.blocked(issue); err != nil || blocked {
			return err
		}
	}
	switch {
	case !closed || waiters == waitersOfUnblocked:
		keys = keys[:onlyBlocked(keys)]
	case waiters == waitersOfTimer:
		if keys, err = tx.waitedAtClosing(issue, keys); err != nil {
			return err
		}
	}
	for i, pk := range keys {
		if i == maxUnblockedSessions || tx.followers.moved >= maxFollowers || tx.written() > maxFollowed {
			if waiters == waitersOfClosing {
				// The timer tells sessions that are dispatched from now on by their ids.
				if err := tx.endMillisecond(); err != nil {
					return err
				}
			}
			return tx.SetTimerAtOnce(timerWhenReady, issue.String())
		}
		if err := tx.moveWhenReady(pk[len(pk)-storage.ListedKeyLen:], closed); err != nil {
			return err
		}
		tx.followers.moved++
	}
	return nil
}

// waitedAtClosing returns the first entries of the sessions that waited for a closed issue when it was closed.
// keys are the first entries of all that wait for it. Those that wait for nothing else are among them: a
// dispatch of a closed issue begins no such wait. Of the others, the newest come first. A session of the
// same millisecond was there: the closing has ended that millisecond (endMillisecond).
func (tx *Tx) waitedAtClosing(issue storage.ID, keys [][]byte) ([][]byte, error) {
	n := onlyBlocked(keys)
	if n == len(keys) {
		return keys, nil
	}
	row, err := closings.Get(tx, issueKey(issue))
	if err != nil || row == nil {
		return keys[:n], err
	}
	newest := storage.ID(bytes.Repeat([]byte{0xff}, len(issue)))
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(row.Value.ClosedAt.Time().UnixMilli()))
	copy(newest[:], ms[2:])
	older, err := tx.rowKeysFrom(sessionWhenReady, storage.Key(nil).ID(issue), storage.Key(nil).Byte(1).DescID(newest), maxUnblockedSessions+1-n)
	if err != nil {
		return nil, fmt.Errorf("list the sessions that waited for a closed issue: %w", err)
	}
	return append(keys[:n], older...), nil
}

// issueIsClosed reports whether an issue is there, and whether it is closed.
func (tx *Tx) issueIsClosed(issue storage.ID) (there, closed bool, err error) {
	there, err = issues.Record(tx, issueKey(issue), func(rec storage.Record) error {
		closed = rec.Flags()&issueClosed != 0
		return nil
	})
	return there, closed, err
}

// onlyBlocked returns the number of entries of sessions that wait for their issue and for
// nothing else. They come first.
func onlyBlocked(entries [][]byte) int {
	n := slices.IndexFunc(entries, func(e []byte) bool { return e[0] != 0 })
	if n < 0 {
		return len(entries)
	}
	return n
}

// moveWhenReady moves a session on, or cancels it. It does nothing if the session does not
// wait for its issue any more: it may have been canceled with one that it was queued after.
func (tx *Tx) moveWhenReady(pk []byte, closed bool) error {
	row, err := sessions.Get(tx, pk)
	if err == nil && row == nil {
		err = fmt.Errorf("the index names a waiting session that is not there")
	}
	if err != nil || !row.Value.awaitsIssue() {
		return err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return err
	}
	if closed {
		err = c.cancel("its issue was closed first", byService)
	} else if _, err = c.advance(); err == nil {
		err = c.logActivity(ActivityStatus, "Nothing blocks the issue any more.")
	}
	if err != nil {
		return err
	}
	_, err = c.save()
	return err
}

// settleWhenReadyOp continues with the sessions that wait for an issue. If the issue was opened again
// meanwhile, those that are left go on waiting (Decision 59).
var settleWhenReadyOp = NewCommand[TimerIn, None]("SettleWhenReady", "Move on the sessions that waited for an issue", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	issue, ok := storage.ParseID(in.Subject)
	if !ok {
		return Reply{Outcome: NoContent}, nil
	}
	return Reply{Outcome: NoContent}, tx.settleWaiting(issue, waitersOfTimer)
}, Prompt)
