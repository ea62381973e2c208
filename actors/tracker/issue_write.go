package tracker

import (
	"fmt"

	"switchyard/storage"
)

// issueWrite is one write of an issue: its creation, a change or its deletion.
type issueWrite struct {
	old *storage.Row[Issue] // nil for a new issue
	new *storage.Row[Issue] // nil for a deleted issue; the stored row once the write is done
	// body is the JSON of new or, of a deleted issue, its last one.
	body []byte
	// changes are the changed fields. A change without any writes nothing.
	changes []Change
	// event is the id of a change's event, which its history has too.
	event storage.ID
}

// issueEffect is one effect of writing an issue.
type issueEffect struct {
	name string // for errors
	do   func(tx *Tx, w *issueWrite) error
}

// issueEffects are the effects of every write of an issue, in their order: an effect sees
// the results of those before it. A record that is derived from issues is kept up to
// date by an effect here, and nowhere else. Set by init, because dispatching an issue may
// write issues again.
var issueEffects []issueEffect

func init() {
	issueEffects = []issueEffect{
		{"assign an issue in triage", (*Tx).triageEffect},
		{"compare an issue's fields", (*Tx).changesEffect},
		{"store an issue", (*Tx).storeEffect},
		{"note when an issue is closed", (*Tx).closedEffect},
		{"remove an issue's identifiers", (*Tx).identifierEffect},
		{"remove an issue's grants", (*Tx).accessEffect},
		{"remove an issue's usage", (*Tx).usageEffect},
		{"keep budgets of an issue", (*Tx).budgetEffect},
		{"index an issue", (*Tx).searchEffect},
		{"keep an issue's history", (*Tx).historyEffect},
		{"note a closed issue", (*Tx).closingEffect},
		{"count open blockers", (*Tx).blockingEffect},
		{"count an issue", (*Tx).aggregateEffect},
		{"emit an issue's event", (*Tx).eventEffect},
		{"keep a deleted issue's state", (*Tx).tombstoneEffect},
		{"wake what waits for an issue", (*Tx).waitEffect},
		{"move an issue's sessions in the queue", (*Tx).queueEffect},
		{"wake claims of an issue's sessions", (*Tx).teamEffect},
		{"dispatch an issue", (*Tx).dispatchEffect},
	}
}

// writeIssue stores an issue in place of old with all effects of the write. old is nil
// for a new issue, and new for one to delete, which must have no children. The write that
// it returns has the stored row; if no field differs, that is old.
func (tx *Tx) writeIssue(old, new *storage.Row[Issue]) (*issueWrite, error) {
	w := &issueWrite{old: old, new: new}
	for i := range issueEffects {
		effect := &issueEffects[i]
		if err := effect.do(tx, w); err != nil {
			return nil, fmt.Errorf("%s: %w", effect.name, err)
		}
		if old != nil && w.new == old { // unchanged
			break
		}
	}
	return w, nil
}

// triageEffect assigns an unassigned issue that enters triage to its team's triage
// assignee. An assignee in the same write is already set; an explicit null counts as
// unassigned.
func (tx *Tx) triageEffect(w *issueWrite) error {
	if w.new == nil {
		return nil
	}
	t := &w.new.Value
	if t.Status != StatusTriage || t.AssigneeID != nil || w.old != nil && w.old.Value.Status == StatusTriage {
		return nil
	}
	team, err := tx.teamOf(t.team())
	if err == nil && team != nil {
		t.AssigneeID = team.Value.TriageAssigneeID
	}
	return err
}

// changesEffect lists the changed fields of an existing issue. Without any the write ends
// here, with the issue as it is.
func (tx *Tx) changesEffect(w *issueWrite) (err error) {
	if w.old == nil || w.new == nil {
		return nil
	}
	t := &w.new.Value
	if w.changes = issueChanges(&w.old.Value, t); len(w.changes) == 0 {
		w.new = w.old
		w.body, err = tx.storedIssue(t.id())
		return err
	}
	t.UpdatedAt = At(tx.now)
	return nil
}

// storeEffect writes the record with its indexes, or removes it.
func (tx *Tx) storeEffect(w *issueWrite) (err error) {
	if w.old == nil {
		err = tx.refer(w.new)
	} else {
		err = tx.completeEvent(w.old)
	}
	if err != nil {
		return err
	}
	if w.new != nil {
		w.body, err = issues.Put(tx, w.old, w.new)
		return err
	}
	if w.body, err = tx.storedIssue(w.old.Value.id()); err != nil {
		return err
	}
	return issues.Delete(tx, w.old)
}

func (tx *Tx) identifierEffect(w *issueWrite) error {
	if w.new != nil {
		return nil // it was numbered by newIssue or moveIssue
	}
	return tx.forgetIdentifiers(&w.old.Value)
}

func (tx *Tx) accessEffect(w *issueWrite) error {
	if w.new != nil {
		return nil
	}
	return tx.deleteAccess(w.old)
}

func (tx *Tx) searchEffect(w *issueWrite) error {
	switch {
	case w.new == nil:
		return tx.indexGone(&w.old.Value)
	case w.old == nil:
		return tx.indexNew(&w.new.Value)
	}
	return tx.indexChange(&w.old.Value, &w.new.Value)
}

// historyEffect keeps a change, and removes the history of a deleted issue.
func (tx *Tx) historyEffect(w *issueWrite) (err error) {
	switch {
	case w.new == nil:
		err = tx.forgetHistory(w.old.Value.id())
	case w.old != nil:
		w.event, err = tx.keepHistory(w.new.Value.id(), w.changes)
	}
	return err
}

// closingEffect notes what the rules of closing have to do at the end of the command.
func (tx *Tx) closingEffect(w *issueWrite) error {
	tx.recordClosing(w.before(), w.after())
	return nil
}

func (tx *Tx) aggregateEffect(w *issueWrite) error { return tx.aggregateIssue(w.old, w.after()) }

func (tx *Tx) eventEffect(w *issueWrite) error {
	switch {
	case w.old == nil:
		return tx.emitCreation(w.new, w.body)
	case w.new == nil:
		return tx.Emit(eventIssueDeleted, w.old.Header, w.body, nil)
	}
	kind := eventIssueUpdated
	if w.old.Value.ArchivedAt == nil && w.new.Value.ArchivedAt != nil {
		kind = eventIssueArchived
	}
	return tx.emit(w.event, kind, w.new.Header, w.body, w.changes)
}

// tombstoneEffect comes after the event of the deletion, whose number the tombstone has.
func (tx *Tx) tombstoneEffect(w *issueWrite) error {
	if w.new != nil {
		return nil
	}
	return tx.writeTombstone(w.old)
}

// queueEffect moves an issue's sessions in the claim queue after a change of its priority.
func (tx *Tx) queueEffect(w *issueWrite) error {
	if w.old == nil || w.new == nil || w.old.Value.Priority == w.new.Value.Priority {
		return nil
	}
	return tx.placeSessions(w.new.Value.id(), w.new.Value.Priority)
}

// teamEffect wakes claims after a change of an issue's team, which other callers see.
func (tx *Tx) teamEffect(w *issueWrite) error {
	if w.old == nil || w.new == nil || w.old.Value.TeamID == w.new.Value.TeamID {
		return nil
	}
	return tx.wakeForIssue(w.new.Value.id())
}

// dispatchEffect dispatches an issue to the agent that the write made its assignee.
func (tx *Tx) dispatchEffect(w *issueWrite) error {
	if w.new == nil {
		return nil
	}
	return tx.dispatchAssigned(w.before(), w.new)
}

// before returns the issue before the write, or nil.
func (w *issueWrite) before() *Issue {
	if w.old == nil {
		return nil
	}
	return &w.old.Value
}

// after returns the issue after the write, or nil.
func (w *issueWrite) after() *Issue {
	if w.new == nil {
		return nil
	}
	return &w.new.Value
}
