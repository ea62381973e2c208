package tracker

import (
	"fmt"
	"slices"
	"time"

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

// settleWhenReady moves the sessions on that wait for an issue, if it is not blocked any
// more, and cancels them if it is closed.
func (tx *Tx) settleWhenReady(issue storage.ID) error { return tx.settleWaiting(issue, false) }

// settleUnblocked is settleWhenReady without the sessions that wait for something else first. Of a
// closed issue these were dispatched after it was closed.
func (tx *Tx) settleUnblocked(issue storage.ID) error { return tx.settleWaiting(issue, true) }

func (tx *Tx) settleWaiting(issue storage.ID, unblocked bool) error {
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
	if unblocked || !closed {
		keys = keys[:onlyBlocked(keys)]
	}
	for i, pk := range keys {
		if i == maxUnblockedSessions || tx.followers.moved >= maxFollowers || tx.written() > maxFollowed {
			return tx.SetTimer(timerWhenReady, issue.String(), tx.now.Add(time.Millisecond))
		}
		if err := tx.moveWhenReady(pk[len(pk)-storage.ListedKeyLen:], closed); err != nil {
			return err
		}
		tx.followers.moved++
	}
	return nil
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

// settleWhenReadyOp continues with the sessions that wait for an issue.
var settleWhenReadyOp = NewCommand[TimerIn, None]("SettleWhenReady", "Move on the sessions that waited for an issue", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	issue, ok := storage.ParseID(in.Subject)
	if !ok {
		return Reply{Outcome: NoContent}, nil
	}
	return Reply{Outcome: NoContent}, tx.settleWhenReady(issue)
}, Prompt)
