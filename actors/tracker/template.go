package tracker

import "switchyard/storage"

// TemplateID is the id of a template.
type TemplateID string

// Template holds fields for new issues. A null field sets nothing. Clients propose the
// title to the author of an issue; a creation always has its own.
type Template struct {
	ID                TemplateID     `json:"id"`
	OrganizationID    WorkspaceID    `json:"organizationId"`
	Name              string         `json:"name"`
	Title             *string        `json:"title"`
	TeamID            *TeamID        `json:"teamId" transfer:"any"`
	TeamKey           *string        `json:"teamKey"`
	Description       *string        `json:"description"`
	Status            *IssueStatus   `json:"status"`
	Priority          *IssuePriority `json:"priority"`
	Resolution        *string        `json:"resolution" enum:"duplicate,not_planned,intended_behavior,not_reproducible,obsolete,resolved"`
	ParentID          *IssueID       `json:"parentId" transfer:"any"`
	SubIssueSortOrder *float64       `json:"subIssueSortOrder"`
	Estimate          *int64         `json:"estimate"`
	IsDraft           *bool          `json:"isDraft"`
	SnoozedUntil      *Timestamp     `json:"snoozedUntil"`
	AssigneeID        *string        `json:"assigneeId"`
	ProjectID         *string        `json:"projectId"`
	CycleID           *string        `json:"cycleId"`
	// LabelIDs is an array, unlike an issue's.
	LabelIDs  *[]string `json:"labelIds"`
	Repo      *string   `json:"repo"`
	Branch    *string   `json:"branch"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

var templates = storage.Table[Template]{
	ID:   templateTable,
	Name: "template",
	Key:  func(k storage.Key, t *Template) storage.Key { return newestKey(k, t.ID) },
}

// TemplateFields are the fields that the creation and the change of a template share,
// except for its name: the fields of a new issue, with the rules of IssueFields, so
// that values from a template need no further check. In a creation null is the same as
// an absent field.
type TemplateFields struct {
	Title             Opt[string]        `json:"title" rules:"nullable,min=1,max=1000"`
	TeamID            Opt[TeamID]        `json:"teamId" rules:"nullable,max=255"`
	TeamKey           Opt[string]        `json:"teamKey" rules:"nullable,max=255"`
	Description       Opt[string]        `json:"description" rules:"nullable,max=262144"`
	Status            Opt[IssueStatus]   `json:"status" rules:"nullable"`
	Priority          Opt[IssuePriority] `json:"priority" rules:"nullable"`
	Resolution        Opt[string]        `json:"resolution" rules:"nullable" enum:"duplicate,not_planned,intended_behavior,not_reproducible,obsolete,resolved"`
	ParentID          Opt[IssueID]       `json:"parentId" rules:"nullable,max=255"`
	SubIssueSortOrder Opt[float64]       `json:"subIssueSortOrder" rules:"nullable"`
	Estimate          Opt[int64]         `json:"estimate" rules:"nullable,min=0,max=9007199254740991"`
	IsDraft           Opt[bool]          `json:"isDraft" rules:"nullable"`
	SnoozedUntil      Opt[string]        `json:"snoozedUntil" rules:"nullable,datetime"`
	AssigneeID        Opt[string]        `json:"assigneeId" rules:"nullable,min=1,max=255"`
	ProjectID         Opt[string]        `json:"projectId" rules:"nullable,min=1,max=255"`
	CycleID           Opt[string]        `json:"cycleId" rules:"nullable,min=1,max=255"`
	LabelIDs          Opt[[]string]      `json:"labelIds" rules:"nullable,max=100" items:"min=1,max=255"`
	Repo              Opt[string]        `json:"repo" rules:"nullable,max=255"`
	Branch            Opt[string]        `json:"branch" rules:"nullable,max=255"`
}

// Validate checks what the tags can't express.
func (f *TemplateFields) Validate(faults *Faults) {
	momentFault("snoozedUntil", &f.SnoozedUntil, faults)
}

// apply sets the given fields of a template.
func (f *TemplateFields) apply(t *Template) {
	assign(&t.Title, &f.Title)
	assign(&t.TeamID, &f.TeamID)
	assign(&t.TeamKey, &f.TeamKey)
	assign(&t.Description, &f.Description)
	assign(&t.Status, &f.Status)
	assign(&t.Priority, &f.Priority)
	assign(&t.Resolution, &f.Resolution)
	assign(&t.ParentID, &f.ParentID)
	assign(&t.SubIssueSortOrder, &f.SubIssueSortOrder)
	assign(&t.Estimate, &f.Estimate)
	assign(&t.IsDraft, &f.IsDraft)
	if f.SnoozedUntil.Set {
		t.SnoozedUntil = snooze(f.SnoozedUntil.Ptr())
	}
	assign(&t.AssigneeID, &f.AssigneeID)
	assign(&t.ProjectID, &f.ProjectID)
	assign(&t.CycleID, &f.CycleID)
	assign(&t.LabelIDs, &f.LabelIDs)
	assign(&t.Repo, &f.Repo)
	assign(&t.Branch, &f.Branch)
}

// CreateTemplateIn is a new template. Teams, parents and other records that its fields
// name need not exist: such fields are left out of an issue.
type CreateTemplateIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	TemplateFields
}

// PatchTemplateIn changes a template. Absent fields stay as they are, null clears.
type PatchTemplateIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	TemplateFields
}

// TemplateList is a page of templates.
type TemplateList struct {
	Templates  []Template `json:"templates"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// Templates are the operations on templates. Issues made with a template stay as they
// are when it changes.
var Templates = declareRecords(records[Template, CreateTemplateIn, PatchTemplateIn, TemplateList]{
	table: &templates,
	one:   "template",
	many:  "templates",
	// A template may be as large as an issue, and there is no need for many.
	most: 1_000,
	make: func(in *CreateTemplateIn, made newRecord) (Template, error) {
		t := Template{ID: TemplateID(made.id), OrganizationID: made.workspace, Name: in.Name, CreatedAt: made.at, UpdatedAt: made.at}
		in.apply(&t)
		return t, nil
	},
	id: func(in *PatchTemplateIn) string { return in.ID },
	change: func(in *PatchTemplateIn, t *Template) error {
		t.Name = in.Name.Or(t.Name)
		in.apply(t)
		return nil
	},
	updated: func(t *Template) *Timestamp { return &t.UpdatedAt },
})
