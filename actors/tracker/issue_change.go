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
	// eventIssueArchived tells that an issue was archived; the opposite is a change like others.
	eventIssueArchived = newEventKind("issue.archived", "issues", onItself)
)

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
	note(&c, "archivedAt", from.ArchivedAt, to.ArchivedAt)
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
