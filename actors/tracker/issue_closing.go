package tracker

import (
	"fmt"

	"switchyard/storage"
)

// closedIssue says when a closed issue was closed or, if it was archived since, brought back.
// Retention goes by it. The row of an issue that is brought back is made anew.
type closedIssue struct {
	IssueID  IssueID   `json:"issueId"`
	ClosedAt Timestamp `json:"closedAt"`
	Archived bool      `json:"archived"`
	// Pull is the pull request of an archived issue, as calls of version control have told it since;
	// nil if they have told nothing new.
	Pull *toldPull `json:"pull,omitempty"`
}

// toldPull has the fields of an issue that calls of version control set.
type toldPull struct {
	URL    *string `json:"prUrl"`
	State  *string `json:"prState" enum:"draft,open,merged,closed"`
	Checks *string `json:"prCheckState" enum:"pending,success,failure,neutral"`
}

func (c *closedIssue) issue() storage.ID {
	id, _ := storage.ParseID(c.IssueID)
	return id
}

// closings has a row for each closed issue.
var closings = storage.Table[closedIssue]{
	ID:   closingTable,
	Name: "closing",
	Key:  func(k storage.Key, c *closedIssue) storage.Key { return k.DescID(c.issue()) },
	Indexes: []storage.Index[closedIssue]{{
		ID:   closingByTime,
		Name: "time",
		Entries: func(e *storage.Entries, c *closedIssue) {
			e.Add(closingTime(e.Key(), c.Archived).U64(uint64(c.ClosedAt.Time().UnixMilli())))
		},
	}},
}

var _ = declareTable(&closings)

// closingTime is the beginning of the entries of issues that are archived, or not.
func closingTime(k storage.Key, archived bool) storage.Key {
	if archived {
		return k.Byte(1)
	}
	return k.Byte(0)
}

// closedEffect notes when an issue is closed, archived or brought back. Other writes cost
// two comparisons.
func (tx *Tx) closedEffect(w *issueWrite) error {
	was, is := closedState(w.before()), closedState(w.after())
	if was == is {
		return nil
	}
	t := w.after()
	if t == nil {
		t = w.before()
	}
	row, err := closings.Get(tx, issueKey(t.id()))
	if err != nil {
		return fmt.Errorf("read when an issue was closed: %w", err)
	}
	if is == notClosed {
		if row != nil {
			err = closings.Delete(tx, row)
		}
		return err
	}
	c := closedIssue{IssueID: t.ID, ClosedAt: At(tx.order), Archived: is == closedArchived}
	if c.Archived && row != nil {
		c.ClosedAt = row.Value.ClosedAt
	}
	return tx.storeClosing(row, &c)
}

// storeClosing stores when an issue was closed, in place of row unless that is nil.
func (tx *Tx) storeClosing(row *storage.Row[closedIssue], c *closedIssue) (err error) {
	if row == nil {
		_, err = closings.Insert(tx, c)
	} else {
		_, err = closings.Update(tx, row, c)
	}
	if err != nil {
		return fmt.Errorf("store when an issue was closed: %w", err)
	}
	return nil
}

// tellArchived keeps what a call of version control tells of an archived issue. The issue stays as it
// is (Decision 72). Its sessions go on: those that wait for this are woken, and later waits go by it.
func (tx *Tx) tellArchived(row *storage.Row[Issue], change func(*Issue) bool) error {
	before := *row
	if err := tx.addTold(&before.Value); err != nil {
		return err
	}
	after := before
	if !change(&after.Value) || len(issueChanges(&before.Value, &after.Value)) == 0 {
		return nil
	}
	note, err := closings.Get(tx, issueKey(row.Value.id()))
	if err == nil && note == nil {
		err = fmt.Errorf("there is no note of the closing of the archived issue %s", row.Value.ID)
	}
	if err != nil {
		return fmt.Errorf("keep what is told of an archived issue: %w", err)
	}
	c, t := note.Value, &after.Value
	c.Pull = &toldPull{URL: t.PRURL, State: t.PRState, Checks: t.PRCheckState}
	if err := tx.storeClosing(note, &c); err != nil {
		return err
	}
	return tx.waitEffect(&issueWrite{old: &before, new: &after})
}

// addTold sets the fields of an archived issue's pull request to what calls of version control have told.
func (v *View) addTold(t *Issue) error {
	if t.ArchivedAt == nil {
		return nil
	}
	note, err := closings.Get(v, issueKey(t.id()))
	if err != nil {
		return fmt.Errorf("read what was told of an archived issue: %w", err)
	}
	if note != nil && note.Value.Pull != nil {
		p := note.Value.Pull
		t.PRURL, t.PRState, t.PRCheckState = p.URL, p.State, p.Checks
	}
	return nil
}

// The states of an issue that closings tells apart.
const (
	notClosed byte = iota
	closedLive
	closedArchived
)

func closedState(t *Issue) byte {
	switch {
	case t == nil || !t.Status.Closed():
		return notClosed
	case t.ArchivedAt != nil:
		return closedArchived
	}
	return closedLive
}

// checkClosing checks that it is known of a closed issue, and of no other, when it was
// closed.
func checkClosing(v *storage.View, pk []byte, t *Issue, report func(string, ...any)) {
	row, err := closings.Get(v, pk)
	if err != nil {
		return // the table's own check reports it
	}
	switch state := closedState(t); {
	case t.ArchivedAt != nil && state == notClosed:
		report("is %s and archived", t.Status)
	case (row == nil) != (state == notClosed):
		report("is %s, and when it was closed is noted: %t", t.Status, row != nil)
	case row != nil && row.Value.Archived != (state == closedArchived):
		report("its note of the closing says that it is archived: %t", row.Value.Archived)
	case row != nil && row.Value.Pull != nil && state != closedArchived:
		report("its note of the closing has a pull request, and it is not archived")
	}
}

// checkClosings checks that no note of a closing is about an issue that is not there.
func checkClosings(v *storage.View, report reporter) error {
	return closings.Scan(v, nil, nil, func(pk []byte, _ storage.Record) (bool, error) {
		there, err := v.Has(issueTable, pk)
		if err == nil && !there {
			report(closings.Name, pk, "its issue is not there")
		}
		return true, err
	})
}
