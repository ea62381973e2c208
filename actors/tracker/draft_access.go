package tracker

import (
	"fmt"

	"switchyard/storage"
)

// canViewDraft reports, from the stored form, whether the caller may know that a draft
// exists: callers who see its issue do or, if it has no issue, those who see the team
// that the issue would belong to. Every read of a draft for a caller uses it.
func (v *View) canViewDraft(rec storage.Record) (bool, error) {
	flags := rec.Flags()
	if lane := v.Caller.Lane; lane != nil {
		if flags&draftOfSession == 0 {
			return false, nil
		}
		// The fields with text from clients come after this one, or are strings.
		if id, _ := storage.ParseID(storedText(rec.JSON(), "sessionId")); id != lane.Session {
			return false, nil
		}
	}
	if flags&draftOnIssue != 0 {
		return v.hasIssue(issueIn(rec))
	}
	if !v.Caller.CanViewTeam(rec.Team()) {
		return false, nil
	}
	if v.Caller.Root || v.Caller.Level >= Admin {
		return true, nil
	}
	// A deleted team may have been private, so nobody but admins sees its drafts.
	return v.Has(teamTable, storage.Key(nil).DescID(rec.Team()))
}

// draft returns a draft, or NOT_FOUND if it does not exist or the caller may not see
// it.
func (v *View) draft(id string) (row *storage.Row[draftRecord], err error) {
	err = v.draftRecord(id, func(rec storage.Record) error {
		row, err = drafts.Decode(rec)
		return err
	})
	return row, err
}

// draftRecord passes the stored form of a draft to fn; it returns NOT_FOUND if the
// draft does not exist or the caller may not see it.
func (v *View) draftRecord(id string, fn func(storage.Record) error) error {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return NotFound("draft")
	}
	seen := false
	_, err := drafts.Record(v, storage.Key(nil).DescID(parsed), func(rec storage.Record) (err error) {
		if seen, err = v.canViewDraft(rec); err != nil || !seen {
			return err
		}
		return fn(rec)
	})
	if err != nil {
		return fmt.Errorf("read a draft: %w", err)
	}
	if !seen {
		return NotFound("draft")
	}
	return nil
}

// draftHeader returns the header that decides who may see events of a draft: that of
// its issue's record, or its own if it has no issue.
func (v *View) draftHeader(d *draftRecord) (storage.Header, error) {
	if d.IssueID == nil {
		flags, team := drafts.Head(d)
		return storage.Header{Flags: flags &^ (draftOnIssue | draftOfSession), Team: team}, nil
	}
	id, _ := storage.ParseID(*d.IssueID)
	head, err := v.issueHead(id)
	if err != nil {
		return storage.Header{}, err
	}
	if head == nil {
		return storage.Header{}, fmt.Errorf("draft %s: its issue is not there", d.ID)
	}
	return *head, nil
}

// dropDrafts removes drafts of an issue that is being deleted and reports whether some
// are left.
func (tx *Tx) dropDrafts(issue *storage.Row[Issue], work *workBudget) (more bool, err error) {
	keys, err := tx.rowKeys(draftByAbout, aboutKey(nil, aboutIssue, issue.Value.ID), work.left+1)
	if err != nil {
		return false, fmt.Errorf("list an issue's drafts: %w", err)
	}
	for _, pk := range keys {
		if work.spent() {
			return true, nil
		}
		row, err := drafts.Get(tx, pk)
		if err != nil {
			return false, fmt.Errorf("read a draft: %w", err)
		}
		if row == nil {
			return false, fmt.Errorf("issue %s: the index names a draft that is not there", issue.Value.ID)
		}
		if err := drafts.Delete(tx, row); err != nil {
			return false, fmt.Errorf("remove a draft: %w", err)
		}
	}
	return false, nil
}
