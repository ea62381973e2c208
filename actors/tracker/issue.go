package tracker

import (
	"switchyard/storage"
)

// IssueID names an issue.
type IssueID string

// IssueStatus is the state of an issue's work.
type IssueStatus string

// The statuses of an issue.
const (
	StatusTriage     IssueStatus = "triage"
	StatusBacklog    IssueStatus = "backlog"
	StatusTodo       IssueStatus = "todo"
	StatusInProgress IssueStatus = "in_progress"
	StatusDone       IssueStatus = "done"
	StatusCanceled   IssueStatus = "canceled"
)

// issueStatuses lists every status; a status's place in it is its byte in the
// index, so the order is part of the format on disk.
var issueStatuses = [...]IssueStatus{StatusTriage, StatusBacklog, StatusTodo, StatusInProgress, StatusDone, StatusCanceled}

func (s IssueStatus) rank() byte { return rankOf(issueStatuses[:], s) }

// EnumValues implements Enumerated.
func (IssueStatus) EnumValues() []string { return enumTexts(issueStatuses[:]) }

// Closed reports whether nothing is left to do.
func (s IssueStatus) Closed() bool { return s == StatusDone || s == StatusCanceled }

// IssuePriority says how soon an issue should be worked on.
type IssuePriority string

// The priorities of an issue.
const (
	PriorityLow    IssuePriority = "low"
	PriorityMedium IssuePriority = "medium"
	PriorityHigh   IssuePriority = "high"
	PriorityUrgent IssuePriority = "urgent"
)

// issuePriorities lists every priority; a priority's place in it is its byte in the
// index, so the order is part of the format on disk.
var issuePriorities = [...]IssuePriority{PriorityLow, PriorityMedium, PriorityHigh, PriorityUrgent}

func (p IssuePriority) rank() byte { return rankOf(issuePriorities[:], p) }

// EnumValues implements Enumerated.
func (IssuePriority) EnumValues() []string { return enumTexts(issuePriorities[:]) }

// Issue is a piece of work. Its JSON is stored and sent to clients: the fields, their
// order and their types are the service's contract.
type Issue struct {
	ID                IssueID       `json:"id"`
	OrganizationID    WorkspaceID   `json:"organizationId"`
	ExternalRef       *string       `json:"externalRef"`
	TeamID            TeamID        `json:"teamId"`
	Title             string        `json:"title"`
	Description       *string       `json:"description"`
	Status            IssueStatus   `json:"status"`
	Priority          IssuePriority `json:"priority"`
	Resolution        *string       `json:"resolution" enum:"duplicate,not_planned,intended_behavior,not_reproducible,obsolete,resolved"`
	ParentID          *IssueID      `json:"parentId"`
	SubIssueSortOrder *float64      `json:"subIssueSortOrder"`
	Estimate          *int64        `json:"estimate"`
	IsDraft           bool          `json:"isDraft"`
	SnoozedUntil      *Timestamp    `json:"snoozedUntil"`
	AssigneeID        *string       `json:"assigneeId"`
	ProjectID         *string       `json:"projectId"`
	CycleID           *string       `json:"cycleId"`
	// LabelIDs is the JSON text of the array (Decision 16).
	LabelIDs *string `json:"labelIds"`
	// Number counts the issues of a team; with the team's key it makes the
	// identifier. Every issue has both.
	Number       *uint64   `json:"number"`
	Identifier   *string   `json:"identifier"`
	Repo         *string   `json:"repo"`
	Branch       *string   `json:"branch"`
	PRURL        *string   `json:"prUrl"`
	PRState      *string   `json:"prState" enum:"draft,open,merged,closed"`
	PRCheckState *string   `json:"prCheckState" enum:"pending,success,failure,neutral"`
	CreatedAt    Timestamp `json:"createdAt"`
	UpdatedAt    Timestamp `json:"updatedAt"`
	// ArchivedAt is the time when the issue was archived; absent unless it is (Decision
	// 72). Archived issues are closed.
	ArchivedAt *Timestamp `json:"archivedAt,omitempty"`
}

// Flags of an issue's record: what lists decide by without decoding it.
const (
	// issueRestricted is for issues that only listed actors may see.
	issueRestricted storage.Flags = 1 << iota
	issueDraft
	issueClosed
	issueHasParent
	// issueSnoozed says that there is a snoozedUntil, past or to come.
	issueSnoozed
	issueArchived
)

// issueKey is the primary key: lists walk it newest first.
func issueKey(id storage.ID) storage.Key {
	return storage.Key(make([]byte, 0, storage.ListedKeyLen)).DescID(id)
}

// issueOfKey returns the id that issueKey made a primary key of.
func issueOfKey(pk []byte) (id storage.ID) {
	for i := range id {
		id[i] = ^pk[i]
	}
	return id
}

// id is the issue's identifier in binary form. Stored issues have a valid one.
func (t *Issue) id() storage.ID {
	id, _ := storage.ParseID(t.ID)
	return id
}

func (t *Issue) team() storage.ID {
	id, _ := storage.ParseID(t.TeamID)
	return id
}

// parent returns the id of the parent; zero if there is none.
func (t *Issue) parent() storage.ID {
	if t.ParentID == nil {
		return storage.ID{}
	}
	id, _ := storage.ParseID(*t.ParentID)
	return id
}

func (t *Issue) flags() (f storage.Flags) {
	if t.IsDraft {
		f |= issueDraft
	}
	if t.Status.Closed() {
		f |= issueClosed
	}
	if t.ParentID != nil {
		f |= issueHasParent
	}
	if t.SnoozedUntil != nil {
		f |= issueSnoozed
	}
	if t.ArchivedAt != nil {
		f |= issueArchived
	}
	return f
}

// issues keeps the issues of a workspace. Entries by a reference to something
// that may be absent are left out when it is, except the assignee's: being
// unassigned is a list of its own, under the empty text, which no actor has.
var issues = storage.Table[Issue]{
	ID:   issueTable,
	Name: "issue",
	Key:  func(k storage.Key, t *Issue) storage.Key { return k.DescID(t.id()) },
	Head: func(t *Issue) (storage.Flags, storage.ID) { return t.flags(), t.team() },
	Held: issueRestricted,
	Indexes: []storage.Index[Issue]{
		{ID: issueByRef, Name: "externalRef", Unique: true, Entries: func(e *storage.Entries, t *Issue) {
			if t.ExternalRef != nil {
				e.Add(e.Key().Str(*t.ExternalRef))
			}
		}},
		{ID: issueByStatus, Name: "status", Entries: func(e *storage.Entries, t *Issue) {
			e.Add(e.Key().Byte(t.Status.rank()))
		}},
		{ID: issueByPriority, Name: "priority", Entries: func(e *storage.Entries, t *Issue) {
			e.Add(e.Key().Byte(t.Priority.rank()))
		}},
		{ID: issueByTeam, Name: "team", Entries: func(e *storage.Entries, t *Issue) {
			e.Add(e.Key().ID(t.team()))
		}},
		{ID: issueByParent, Name: "parent", Entries: func(e *storage.Entries, t *Issue) {
			if t.ParentID != nil {
				e.Add(e.Key().DescID(t.parent()))
			}
		}},
		// The rules of closing ask whether every child is closed: with the open children
		// in an index of their own that is one look, however many there are.
		{ID: issueByOpenChild, Name: "openChild", Entries: func(e *storage.Entries, t *Issue) {
			if t.ParentID != nil && !t.Status.Closed() {
				e.Add(e.Key().DescID(t.parent()))
			}
		}},
		{ID: issueByHasParent, Name: "hasParent", Entries: func(e *storage.Entries, t *Issue) {
			if t.ParentID != nil {
				e.Add(e.Key())
			}
		}},
		{ID: issueByAssignee, Name: "assignee", Entries: func(e *storage.Entries, t *Issue) {
			if t.AssigneeID != nil {
				e.Add(e.Key().Str(*t.AssigneeID))
			} else {
				e.Add(e.Key().Str(""))
			}
		}},
		{ID: issueByProject, Name: "project", Entries: func(e *storage.Entries, t *Issue) {
			if t.ProjectID != nil {
				e.Add(e.Key().Str(*t.ProjectID))
			}
		}},
		{ID: issueByCycle, Name: "cycle", Entries: func(e *storage.Entries, t *Issue) {
			if t.CycleID != nil {
				e.Add(e.Key().Str(*t.CycleID))
			}
		}},
		{ID: issueByLabel, Name: "label", Entries: func(e *storage.Entries, t *Issue) {
			for _, label := range t.labels() {
				e.Add(e.Key().Str(label))
			}
		}},
		{ID: issueByDraft, Name: "draft", Entries: func(e *storage.Entries, t *Issue) {
			if t.IsDraft {
				e.Add(e.Key())
			}
		}},
		{ID: issueByArchived, Name: "archived", Entries: func(e *storage.Entries, t *Issue) {
			if t.ArchivedAt != nil {
				e.Add(e.Key())
			}
		}},
		{ID: issueByBranch, Name: "branch", Entries: func(e *storage.Entries, t *Issue) {
			if t.Branch != nil && *t.Branch != "" {
				e.Add(e.Key().Str(*t.Branch))
			}
		}},
		{ID: issueByPR, Name: "pr", Entries: func(e *storage.Entries, t *Issue) {
			if t.PRURL != nil {
				e.Add(e.Key().Str(*t.PRURL))
			}
		}},
	},
	Dirty: DirtySets,
}

var _ = declareTable(&issues, newestFirst)
