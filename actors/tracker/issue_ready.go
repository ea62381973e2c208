package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// This file has the definition of ready (Decision 57): for one issue in isReady, and for
// the sets that lists are filtered with in selectReady. An issue is ready
// when its status is one of readyStatuses, it is no draft, it isn't snoozed, no open issue
// blocks it, and no session of it occupies it.

// readyStatuses are the statuses of an issue that somebody can work on.
var readyStatuses = statusesOf(StatusBacklog, StatusTodo, StatusInProgress)

// isReady reports whether a stored issue is ready.
func (v *View) isReady(id storage.ID, rec storage.Record, now Timestamp) (bool, error) {
	if rec.Flags()&(issueDraft|issueClosed) != 0 || snoozedAt(rec, now) {
		return false, nil
	}
	if status := IssueStatus(storedText(rec.JSON(), "status")); statusesOf(status)&readyStatuses == 0 {
		return false, nil
	}
	if blocked, err := v.isBlocked(issueKey(id)); err != nil || blocked {
		return false, err
	}
	occupied, err := v.isOccupied(id)
	return !occupied, err
}

// isOccupied reports whether an issue has a session that keeps it from being ready.
func (v *View) isOccupied(id storage.ID) (occupied bool, err error) {
	err = v.Rows(sessionActive, id[:], nil, func(fields, _ []byte) (bool, error) {
		occupied = occupies(fields)
		return !occupied, nil
	})
	if err != nil {
		return false, fmt.Errorf("look for an issue's sessions: %w", err)
	}
	return occupied, nil
}

// occupation says what a session means for whether its issue is ready. It is a byte of
// entries of sessionActive.
type occupation byte

const (
	noOccupation  occupation = iota // the session has ended
	awaitsIssue                     // it waits for its issue not to be blocked
	occupiesIssue                   // the issue is not ready while the session lasts
)

// occupation returns what the session means for its issue.
func (s *sessionRecord) occupation() occupation {
	switch {
	case s.Status.Ended():
		return noOccupation
	case s.awaitsIssue():
		return awaitsIssue
	}
	return occupiesIssue
}

// occupies reports whether the session of an entry of sessionActive keeps its issue from
// being ready: every one that has not ended does, unless it waits for just that.
func occupies(fields []byte) bool {
	_, rest, ok := storage.CutStr(fields[len(storage.ID{}):])
	return !ok || len(rest) == storage.ListedKeyLen
}

// keepsReadiness decides on an issue by the filters ready and blocked.
func (r *residualFilter) keepsReadiness(pk []byte, rec storage.Record) (bool, error) {
	if r.f.Ready.Set {
		ready, err := r.v.isReady(issueOfKey(pk), rec, r.now)
		if err != nil || ready != r.f.Ready.Value {
			return false, err
		}
	}
	if r.f.Blocked.Set {
		blocked, err := r.v.isBlocked(pk)
		return blocked == r.f.Blocked.Value, err
	}
	return true, nil
}

// selectReady adds the filter ready to a query of the sets, whose matches have
// readyStatuses where the filter is true. It reports whether that says all of it.
func (f *IssueFilter) selectReady(q *storage.FilterQuery, now time.Time) (exact bool) {
	unready := []storage.Match{storage.Equal(issueByDraft, nil), storage.Equal(blockedTable, nil), storage.Equal(sessionActive, nil)}
	switch {
	case !f.readyBySets():
		return false
	case !f.Ready.Set:
	case f.Ready.Value:
		q.AwakeAt = now.UnixMilli()
		for _, m := range unready {
			q.Without = append(q.Without, storage.Without{Match: m})
		}
	default:
		q.Without = append(q.Without, storage.Without{Match: matchStatuses(readyStatuses), Unless: unready})
	}
	return true
}

// readyBySets reports whether the sets decide on the filters ready and blocked. They can't
// tell snoozed issues, which are not ready.
func (f *IssueFilter) readyBySets() bool {
	return !f.Ready.Set || f.Ready.Value || !f.IncludeSnoozed.Value
}
