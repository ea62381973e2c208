package tracker

import (
	"errors"
	"fmt"

	"switchyard/storage"
)

// automation collects the work that the rules of Decision 21 add to a command: closing
// a parent may close its descendants, and closing the last open child may close its
// ancestors. The rules run once, after the command's own changes, in the same batch.
//
// The two rules do not affect each other, so their order does not matter. An issue that
// is closed with its parent has a closed parent, which can't become done; a parent that
// becomes done has no open child to close. Issues are only ever closed, each at most
// once, so the rules terminate.
type automation struct {
	closings []closing
	parents  []storage.ID // issues that may have lost their last open child
	// spared is an issue that is about to be deleted.
	spared   storage.ID
	settling bool
	count    int                 // number of issues changed by the rules
	changed  map[storage.ID]bool // the issues changed by the rules
}

// closing is a closed issue whose open children may have to be closed.
type closing struct {
	issue, team storage.ID
	status      IssueStatus
	after       []byte // children after this primary key; nil for all
	// resumed is set if a timer continues work whose team setting was already checked.
	resumed bool
}

// maxAutoClosed and maxAutoBytes limit what one command closes by the rules before it
// leaves the rest to timers.
//
// The answer does not wait for the rest: it is sent after the first batch, which has a
// timer for each remaining branch. So a crash between two batches loses nothing, and
// other commands of the workspace run in between. A command that continued with
// Reply.More would block them, and would have to recognize its own changes: its
// If-Match no longer matches, and the issue is already closed.
const (
	maxAutoClosed = 500
	// maxAutoBytes includes the bytes that the command wrote before the rules. The
	// changes of one more issue must still fit into maxCommandBytes.
	maxAutoBytes = 4 << 20
)

// recordClosing records the consequences of a change for runCascade. old is nil for a new
// issue, t for a removed one. Most changes have none, and cost the comparison of two
// statuses and two parents.
func (tx *Tx) recordClosing(old, t *Issue) {
	if tx.auto != nil && tx.auto.settling {
		return
	}
	wasOpen := old != nil && !old.Status.Closed()
	isClosed := t != nil && t.Status.Closed()
	if wasOpen && isClosed {
		a := tx.rules()
		a.closings = append(a.closings, closing{issue: t.id(), team: t.team(), status: t.Status})
	}
	moved := old == nil || t == nil || old.ParentID != t.ParentID && (old.ParentID == nil || t.ParentID == nil || *old.ParentID != *t.ParentID)
	if isClosed && t.ParentID != nil && (wasOpen || moved) {
		tx.recordParent(t.parent())
	}
	if wasOpen && moved && old.ParentID != nil {
		tx.recordParent(old.parent())
	}
}

// rules returns the automation of this command.
func (tx *Tx) rules() *automation {
	if tx.auto == nil {
		tx.auto = &automation{}
	}
	return tx.auto
}

// closedByRule reports whether runCascade has closed an issue.
func (tx *Tx) closedByRule(id storage.ID) bool { return tx.auto != nil && tx.auto.changed[id] }

func (tx *Tx) recordParent(id storage.ID) {
	a := tx.rules()
	if n := len(a.parents); id != a.spared && (n == 0 || a.parents[n-1] != id) {
		a.parents = append(a.parents, id)
	}
}

// applyRules applies the rules to the recorded changes.
func (tx *Tx) applyRules() error {
	a := tx.auto
	if a == nil || len(a.closings)+len(a.parents) == 0 {
		return nil
	}
	a.settling = true
	// All children come before the parents: an issue between a closed parent and closed
	// children gets its parent's status, however many batches that takes.
	for _, c := range a.closings {
		if err := tx.settleClosing(&c); err != nil {
			return fmt.Errorf("close the children of an issue: %w", err)
		}
	}
	for _, id := range a.parents {
		if err := tx.closeAbove(id); err != nil {
			return fmt.Errorf("close the parent of an issue: %w", err)
		}
	}
	a.closings, a.parents, a.settling = nil, nil, false
	return nil
}

func (tx *Tx) settleClosing(c *closing) error {
	if !c.resumed {
		if follow, err := tx.childrenFollow(c.team); err != nil || !follow {
			return err
		}
	}
	return tx.closeBelow(c.issue, c.status, c.after)
}

// childrenFollow reports whether a team's setting closes children with their parent.
func (tx *Tx) childrenFollow(team storage.ID) (bool, error) {
	row, err := tx.teamOf(team)
	return row != nil && row.Value.SubIssueAutoClose, err
}

// closeBelow gives the open children of a closed issue its status, and descends into
// each child before the next, so that when the command's limit is reached, at most one
// branch per level is left.
func (tx *Tx) closeBelow(parent storage.ID, status IssueStatus, after []byte) error {
	keys, err := tx.openChildren(parent, after, tx.buffer.closeLimit-tx.auto.count+1)
	if err != nil {
		return err
	}
	for _, pk := range keys {
		if tx.limitReached() {
			return tx.continueBelow(parent, after)
		}
		child, err := issues.Get(tx, pk)
		if err != nil {
			return err
		}
		if child == nil {
			return fmt.Errorf("issue %s: the index names an open child that is not there", parent)
		}
		if err := tx.closeByRule(child, status); err != nil {
			return err
		}
		after = pk
		follow, err := tx.childrenFollow(child.Team)
		if err != nil {
			return err
		}
		if follow {
			if err := tx.closeBelow(child.Value.id(), status, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// openChildren returns at most limit primary keys of an issue's open children after a
// key, newest first.
func (tx *Tx) openChildren(parent storage.ID, after []byte, limit int) (keys [][]byte, err error) {
	prefix := issueKey(parent)
	err = tx.Rows(issueByOpenChild, prefix, after, func(fields, _ []byte) (bool, error) {
		if pk := fields[len(prefix):]; string(pk) != string(after) {
			keys = append(keys, append([]byte(nil), pk...))
		}
		return len(keys) < limit, nil
	})
	return keys, err
}

// closeAbove makes an issue done if it has children and all of them are closed, and
// continues with its parent.
func (tx *Tx) closeAbove(id storage.ID) error {
	for id != (storage.ID{}) && id != tx.auto.spared {
		if follows, err := tx.parentFollows(id); err != nil || !follows {
			return err
		}
		if later, err := tx.childrenWait(); err != nil || later || tx.limitReached() {
			return errors.Join(err, tx.continueAbove(id))
		}
		row, err := issues.Get(tx, issueKey(id))
		if err != nil {
			return err
		}
		if err := tx.closeByRule(row, StatusDone); err != nil {
			return err
		}
		id = row.Value.parent()
	}
	return nil
}

// childrenWait reports whether a timer still has children to close.
func (tx *Tx) childrenWait() (bool, error) {
	return tx.Has(timerTable, storage.Key(nil).Str(timerCloseChildren))
}

// parentFollows reports whether an issue is open, its children are all closed, and its
// team's setting then makes it done.
func (tx *Tx) parentFollows(id storage.ID) (bool, error) {
	pk := issueKey(id)
	var open bool
	var teamID storage.ID
	_, err := issues.Record(tx, pk, func(rec storage.Record) error {
		open, teamID = rec.Flags()&issueClosed == 0, rec.Team()
		return nil
	})
	if err != nil || !open { // also if it was deleted
		return false, err
	}
	team, err := tx.teamOf(teamID)
	if err != nil || team == nil || !team.Value.ParentAutoClose {
		return false, err
	}
	if waits, err := tx.Has(issueByOpenChild, pk); err != nil || waits {
		return false, err
	}
	return tx.Has(issueByParent, pk)
}

func (tx *Tx) closeByRule(row *storage.Row[Issue], status IssueStatus) error {
	closed := *row
	closed.Value.Status = status
	if _, err := tx.writeIssue(row, &closed); err != nil {
		return err
	}
	a := tx.auto
	if a.changed == nil {
		a.changed = map[storage.ID]bool{}
	}
	a.changed[closed.Value.id()] = true
	a.count++
	return nil
}

// limitReached reports whether the rest must wait for another batch.
func (tx *Tx) limitReached() bool {
	return tx.auto.count >= tx.buffer.closeLimit || tx.written() > maxAutoBytes || tx.blocks.full()
}
