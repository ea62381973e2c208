package tracker

import (
	"fmt"

	"switchyard/storage"
)

// This file has the definition of ready (Decision 57): for one issue in isReady, and for
// the sets that lists are filtered with in matchReady and excludeReady. An issue is ready
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
	occupied, err := v.occupied(id)
	return !occupied, err
}

// occupied reports whether an issue has a session that has not ended, those that wait until
// it is not blocked left out.
func (v *View) occupied(id storage.ID) (bool, error) {
	active := 0
	if err := v.Rows(sessionActive, id[:], nil, func(_, _ []byte) (bool, error) { active++; return true, nil }); err != nil {
		return false, fmt.Errorf("look for an issue's sessions: %w", err)
	}
	if active == 0 {
		return false, nil
	}
	if err := v.Rows(sessionWhenReady, id[:], nil, func(_, _ []byte) (bool, error) { active--; return true, nil }); err != nil {
		return false, fmt.Errorf("look for the sessions that wait for an issue: %w", err)
	}
	return active > 0, nil
}
