package tracker

import (
	"errors"
	"fmt"

	"switchyard/storage"
)

// automation is what a command leaves to be done by the rules of Decision 21:
// closing a parent may close what is below it, and closing the last open child may
// close what is above. The rules are carried out once, behind the command's own
// changes, in the same batch.
//
// The two never meet, so it does not matter in which order things are done. What
// follows its parent down has a closed parent, which can't become done; a parent
// that becomes done has no open child, which could follow it. Issues are only ever
// closed, each at most once, so it ends.
type automation struct {
	closings []closing
	parents  []storage.ID // who may have lost their last open child
	// spared is an issue that is about to be deleted.
	spared   storage.ID
	settling bool
	count    int                 // issues changed by the rules
	changed  map[storage.ID]bool // which those are
}

// closing is an issue that was closed, and whose open children may have to be.
type closing struct {
	issue, team storage.ID
	status      IssueStatus
	after       []byte // children from behind this primary key on; nil: all
	// resumed: this goes on with what was begun under the settings of its time.
	resumed bool
}

// What one command closes by the rules before the rest is left to timers.
//
// The answer never waits for the rest: it is given with the first batch, which
// holds a timer for each line of work that is left. So a crash between two batches
// loses nothing, and other commands of the workspace get in between, which they
// would not if the command went on as one with Reply.More. It would then also have
// to know itself again: its If-Match no longer fits, and the issue is closed.
const (
	maxAutoClosed = 500
	// maxAutoBytes counts what the command wrote by itself, too. What one issue adds
	// to it has to fit in front of maxCommandBytes.
	maxAutoBytes = 4 << 20
)

// enterTriage assigns an unassigned issue that comes into triage to whom its team
// names. An assignee given in the same write is there by now; null is none.
func (tx *Tx) enterTriage(was IssueStatus, t *Issue) error {
	if t.Status != StatusTriage || was == StatusTriage || t.AssigneeID != nil {
		return nil
	}
	team, err := tx.teamOf(t.team())
	if err == nil && team != nil {
		t.AssigneeID = team.Value.TriageAssigneeID
	}
	return err
}

// noteClosing notes what a change of an issue may entail. old is nil for a new
// issue, t for one that is removed. Most changes entail nothing and cost a look at
// two statuses and two parents.
func (tx *Tx) noteClosing(old, t *Issue) {
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
		tx.noteParent(t.parent())
	}
	if wasOpen && moved && old.ParentID != nil {
		tx.noteParent(old.parent())
	}
}

// rules is where to note something for settle.
func (tx *Tx) rules() *automation {
	if tx.auto == nil {
		tx.auto = &automation{}
	}
	return tx.auto
}

// closedByRule tells whether settle has closed an issue.
func (tx *Tx) closedByRule(id storage.ID) bool { return tx.auto != nil && tx.auto.changed[id] }

func (tx *Tx) noteParent(id storage.ID) {
	a := tx.rules()
	if n := len(a.parents); id != a.spared && (n == 0 || a.parents[n-1] != id) {
		a.parents = append(a.parents, id)
	}
}

// settle carries the rules out on what was noted.
func (tx *Tx) settle() error {
	a := tx.auto
	if a == nil || len(a.closings)+len(a.parents) == 0 {
		return nil
	}
	a.settling = true
	// Children first, all of them: an issue between a closed parent and closed children
	// gets its parent's status, however many batches that takes.
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

// childrenFollow tells whether the children of a team's issues are closed with
// them.
func (tx *Tx) childrenFollow(team storage.ID) (bool, error) {
	row, err := tx.teamOf(team)
	return row != nil && row.Value.SubIssueAutoClose, err
}

// closeBelow gives the open children of a closed issue its status, and those of
// each child right behind it, so that what is left when the command's share is used
// up is one line of work per level.
func (tx *Tx) closeBelow(parent storage.ID, status IssueStatus, after []byte) error {
	keys, err := tx.openChildren(parent, after, tx.ledger.share-tx.auto.count+1)
	if err != nil {
		return err
	}
	for _, pk := range keys {
		if tx.shareUsed() {
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

// openChildren lists the primary keys of an issue's open children, newest first,
// from behind one on, at most limit of them.
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

// closeAbove makes an issue done whose children are all closed, at least one, and
// then looks at its parent.
func (tx *Tx) closeAbove(id storage.ID) error {
	for id != (storage.ID{}) && id != tx.auto.spared {
		if follows, err := tx.parentFollows(id); err != nil || !follows {
			return err
		}
		if later, err := tx.childrenWait(); err != nil || later || tx.shareUsed() {
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

// childrenWait tells whether children are still to be closed by a timer.
func (tx *Tx) childrenWait() (bool, error) {
	return tx.Has(timerTable, storage.Key(nil).Str(timerCloseChildren))
}

// parentFollows tells whether an issue is open and its team wants it done because
// its children are closed.
func (tx *Tx) parentFollows(id storage.ID) (bool, error) {
	pk := issueKey(id)
	var open bool
	var teamID storage.ID
	_, err := issues.Record(tx, pk, func(rec storage.Record) error {
		open, teamID = rec.Flags()&issueClosed == 0, rec.Team()
		return nil
	})
	if err != nil || !open { // also when it is gone
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
	closed := row.Value
	closed.Status = status
	if _, _, err := tx.updateIssue(row, &closed); err != nil {
		return err
	}
	a := tx.auto
	if a.changed == nil {
		a.changed = map[storage.ID]bool{}
	}
	a.changed[closed.id()] = true
	a.count++
	return nil
}

// shareUsed tells whether the rest has to wait for a batch of its own.
func (tx *Tx) shareUsed() bool {
	return tx.auto.count >= tx.ledger.share || tx.written() > maxAutoBytes
}
