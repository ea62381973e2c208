package tracker

import (
	"fmt"

	"switchyard/storage"
)

// Types of events about issues.
var (
	eventIssueCreated = newEventKind("issue.created", "issues", onItself)
	eventIssueUpdated = newEventKind("issue.updated", "issues", onItself)
	eventIssueDeleted = newEventKind("issue.deleted", "issues", onItself)
)

// addIssue stores a new issue with its event and returns its JSON.
func (tx *Tx) addIssue(t *Issue) ([]byte, error) {
	if err := tx.enterTriage("", t); err != nil {
		return nil, err
	}
	body, err := issues.Insert(tx, t)
	if err != nil {
		return nil, fmt.Errorf("store an issue: %w", err)
	}
	if err := tx.indexNew(t); err != nil {
		return nil, err
	}
	tx.recordClosing(nil, t)
	if err := tx.aggregateIssue(nil, t); err != nil {
		return nil, err
	}
	if err := tx.Emit(eventIssueCreated, storage.Header{Flags: t.flags(), Version: 1, Team: t.team()}, body, nil); err != nil {
		return nil, err
	}
	return body, tx.assigned(nil, t)
}

// updateIssue stores a changed issue with its event, and returns its JSON and version.
// It writes nothing if no field differs.
func (tx *Tx) updateIssue(old *storage.Row[Issue], t *Issue) (body []byte, version uint64, err error) {
	if err := tx.enterTriage(old.Value.Status, t); err != nil {
		return nil, 0, err
	}
	changes := issueChanges(&old.Value, t)
	if len(changes) == 0 {
		body, err = tx.storedIssue(t.id())
		return body, old.Version, err
	}
	t.UpdatedAt = At(tx.Now())
	body, err = issues.Update(tx, old, t)
	if err != nil {
		return nil, 0, fmt.Errorf("store an issue: %w", err)
	}
	if err := tx.indexChange(&old.Value, t); err != nil {
		return nil, 0, err
	}
	id, err := tx.keepHistory(t.id(), changes)
	if err != nil {
		return nil, 0, err
	}
	tx.recordClosing(&old.Value, t)
	if err := tx.aggregateIssue(old, t); err != nil {
		return nil, 0, err
	}
	header := storage.Header{Flags: t.flags() | old.Flags&issues.Held, Version: old.Version + 1, Team: t.team()}
	if err := tx.emit(id, eventIssueUpdated, header, body, changes); err != nil {
		return nil, 0, err
	}
	if err := tx.priorityChanged(&old.Value, t); err != nil {
		return nil, 0, err
	}
	return body, header.Version, tx.assigned(&old.Value, t)
}

// eraseIssue removes an issue without children, with everything that belongs to it, and
// emits its event.
func (tx *Tx) eraseIssue(row *storage.Row[Issue]) error {
	body, err := tx.storedIssue(row.Value.id())
	if err != nil {
		return err
	}
	if err := tx.forgetIdentifiers(&row.Value); err != nil {
		return err
	}
	if _, err := tx.forgetHistory(row.Value.id()); err != nil {
		return err
	}
	tx.recordClosing(&row.Value, nil)
	if err := tx.deleteAccess(row); err != nil {
		return err
	}
	if err := issues.Delete(tx, row); err != nil {
		return fmt.Errorf("remove an issue: %w", err)
	}
	if err := tx.indexGone(&row.Value); err != nil {
		return err
	}
	if err := tx.aggregateIssue(row, nil); err != nil {
		return err
	}
	if err := tx.Emit(eventIssueDeleted, row.Header, body, nil); err != nil {
		return err
	}
	return tx.writeTombstone(row)
}

// storedIssue returns a copy of the JSON of an existing issue.
func (v *View) storedIssue(id storage.ID) (body []byte, err error) {
	found, err := issues.Record(v, issueKey(id), func(rec storage.Record) error {
		body = append(body, rec.JSON()...)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("issue %s is not there", id)
	}
	return body, err
}

// issueChanges lists the fields that differ, in the order of the issue's fields,
// without updatedAt.
func issueChanges(from, to *Issue) []Change {
	var c changes
	note(&c, "externalRef", from.ExternalRef, to.ExternalRef)
	note(&c, "teamId", &from.TeamID, &to.TeamID)
	note(&c, "title", &from.Title, &to.Title)
	note(&c, "description", from.Description, to.Description)
	note(&c, "status", &from.Status, &to.Status)
	note(&c, "priority", &from.Priority, &to.Priority)
	note(&c, "resolution", from.Resolution, to.Resolution)
	note(&c, "parentId", from.ParentID, to.ParentID)
	note(&c, "subIssueSortOrder", from.SubIssueSortOrder, to.SubIssueSortOrder)
	note(&c, "estimate", from.Estimate, to.Estimate)
	note(&c, "isDraft", &from.IsDraft, &to.IsDraft)
	note(&c, "snoozedUntil", from.SnoozedUntil, to.SnoozedUntil)
	note(&c, "assigneeId", from.AssigneeID, to.AssigneeID)
	note(&c, "projectId", from.ProjectID, to.ProjectID)
	note(&c, "cycleId", from.CycleID, to.CycleID)
	note(&c, "labelIds", from.LabelIDs, to.LabelIDs)
	note(&c, "number", from.Number, to.Number)
	note(&c, "identifier", from.Identifier, to.Identifier)
	note(&c, "repo", from.Repo, to.Repo)
	note(&c, "branch", from.Branch, to.Branch)
	note(&c, "prUrl", from.PRURL, to.PRURL)
	note(&c, "prState", from.PRState, to.PRState)
	note(&c, "prCheckState", from.PRCheckState, to.PRCheckState)
	return c
}

type changes []Change

// note adds a field whose values differ; nil stands for null.
func note[T comparable](c *changes, field string, from, to *T) {
	if from == to || from != nil && to != nil && *from == *to {
		return
	}
	*c = append(*c, Change{Field: field, From: from, To: to})
}
