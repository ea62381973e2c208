package tracker

import (
	"fmt"

	"switchyard/storage"
)

// dispatchAssigned dispatches an issue to the agent that a write made its assignee,
// unless that agent has an unfinished session of the issue (Decision 30), or gets one by this
// command. An escalation of an issue that has no room for a session dispatches it to nobody. was
// is nil for a new issue.
func (tx *Tx) dispatchAssigned(was *Issue, issue *storage.Row[Issue]) error {
	t := &issue.Value
	if t.AssigneeID == nil || was != nil && was.AssigneeID != nil && *was.AssigneeID == *t.AssigneeID {
		return nil
	}
	if tx.dispatches != nil && tx.dispatches(*t.AssigneeID) {
		return nil
	}
	if n, err := tx.agentCount(); err != nil || n == 0 {
		return err
	}
	agent, err := tx.agent(*t.AssigneeID)
	if err != nil || agent == nil {
		return err
	}
	active, err := tx.Has(sessionActive, storage.Key(nil).ID(t.id()).Str(*t.AssigneeID))
	if err != nil || active {
		return err
	}
	if tx.escalates {
		if full, err := tx.isFull(t.id()); err != nil || full {
			return err
		}
	}
	s, body, _, err := tx.addSession(&newSession{Issue: issue, AgentID: *t.AssigneeID})
	if err != nil {
		return err
	}
	tx.dispatched = append(appendDerived(body, s), '}')
	return nil
}

// dispatchedSession returns the session that this command created by naming an
// assignee, in the form that clients get, or nil.
func (tx *Tx) dispatchedSession() []byte { return tx.dispatched }

// cancelSessionsOf cancels sessions of an issue that is about to be deleted, stores who may
// see each of them, and reports whether some are left.
func (tx *Tx) cancelSessionsOf(issue *storage.Row[Issue], work *workBudget) (more bool, err error) {
	of := issue.Value.id()
	keys, err := tx.rowKeys(sessionByIssue, of[:], work.left+1)
	if err != nil {
		return false, fmt.Errorf("list an issue's sessions: %w", err)
	}
	for _, pk := range keys {
		if work.spent() {
			return true, nil
		}
		row, err := sessions.Get(tx, pk)
		if err != nil {
			return false, err
		}
		if row == nil {
			return false, fmt.Errorf("issue %s: the index names a session that is not there", issue.Value.ID)
		}
		c, err := tx.changeSession(row)
		if err != nil {
			return false, err
		}
		c.s.Inner.Orphan, c.s.Inner.Team = true, issue.Value.TeamID
		c.s.Inner.Restricted = issue.Flags&issueRestricted != 0
		if !c.s.Status.Ended() {
			if err := c.cancel("its issue was deleted", byService); err != nil {
				return false, err
			}
		}
		if _, err := c.save(); err != nil {
			return false, err
		}
	}
	return false, nil
}
