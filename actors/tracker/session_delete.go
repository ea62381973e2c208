package tracker

import (
	"fmt"

	"switchyard/storage"
)

// deleteSession removes an ended session with all its rows, and reports whether it did.
// more says that the batch is full before all drafts of the session have lost it. A session
// that others are still queued behind stays: they are about to move on.
//
// The usage that its agents have reported stays in all sums, which budgets go by.
func (tx *Tx) deleteSession(row *storage.Row[sessionRecord], work *workBudget) (deleted, more bool, err error) {
	id := row.Value.id()
	if awaited, err := tx.Has(sessionByPredecessor, id[:]); err != nil || awaited {
		return false, false, err
	}
	if more, err := tx.detachDrafts(row.Value.ID, work); err != nil || more {
		return false, more, err
	}
	in := &row.Value.Inner
	work.left = max(0, work.left-(in.Claims+int(in.Last-in.First))/8) // a row each, gone through to be counted
	for _, table := range [...]storage.TableID{activityTable, attemptTable} {
		if err := tx.Writer().DeleteRows(table, id[:]); err != nil {
			return false, false, fmt.Errorf("delete a session's rows: %w", err)
		}
	}
	for _, table := range [...]storage.TableID{sessionBriefTable, checkpointTable, planTable} {
		if err := tx.Writer().DeleteValue(table, id[:]); err != nil {
			return false, false, fmt.Errorf("delete a session's rows: %w", err)
		}
	}
	if err := sessions.Delete(tx, row); err != nil {
		return false, false, fmt.Errorf("delete a session: %w", err)
	}
	tx.wakeWatchers(id)
	return true, false, tx.sessionMoved(&row.Value, nil)
}

// detachDrafts clears the session of its drafts, and reports whether some are left.
func (tx *Tx) detachDrafts(session SessionID, work *workBudget) (more bool, err error) {
	keys, err := tx.rowKeys(draftByAbout, aboutKey(nil, aboutSession, session), work.left+1)
	if err != nil {
		return false, fmt.Errorf("list a session's drafts: %w", err)
	}
	for _, pk := range keys {
		if work.spent() {
			return true, nil
		}
		row, err := drafts.Get(tx, pk)
		if err == nil && row == nil {
			err = fmt.Errorf("session %s: the index names a draft that is not there", session)
		}
		if err != nil {
			return false, err
		}
		alone := row.Value
		alone.SessionID = nil
		if _, err := drafts.Update(tx, row, &alone); err != nil {
			return false, fmt.Errorf("store a draft: %w", err)
		}
	}
	return false, nil
}
