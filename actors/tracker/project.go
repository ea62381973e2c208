package tracker

import "switchyard/storage"

// ProjectID is the id of a project.
type ProjectID string

// Project is a piece of work that issues of any team belong to.
type Project struct {
	ID             ProjectID   `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	Description    *string     `json:"description"`
	LeadID         *string     `json:"leadId"`
	StartsAt       *Timestamp  `json:"startsAt"`
	EndsAt         *Timestamp  `json:"endsAt"`
	CreatedAt      Timestamp   `json:"createdAt"`
	UpdatedAt      Timestamp   `json:"updatedAt"`
}

var projects = storage.Table[Project]{
	ID:   projectTable,
	Name: "project",
	Key:  func(k storage.Key, p *Project) storage.Key { return newestKey(k, p.ID) },
	Changed: func(w storage.Writer, old, new *Project) (err error) {
		if tx, ok := w.(*Tx); ok && new == nil {
			_, err = tx.dropBudget(budgetScope{usageOfProject, string(old.ID)})
		}
		return err
	},
}

// ProjectFields are the fields that the creation and the change of a project share,
// except for its name. The lead's id is not checked (Decision 15).
type ProjectFields struct {
	Description Opt[string] `json:"description" rules:"nullable,max=10000"`
	LeadID      Opt[string] `json:"leadId" rules:"nullable,min=1,max=255"`
	PeriodFields
}

func (f *ProjectFields) apply(p *Project) error {
	assign(&p.Description, &f.Description)
	assign(&p.LeadID, &f.LeadID)
	return f.PeriodFields.apply(&p.StartsAt, &p.EndsAt)
}

// CreateProjectIn asks for a project.
type CreateProjectIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	ProjectFields
}

// PatchProjectIn changes a project. Absent fields stay as they are.
type PatchProjectIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	ProjectFields
}

// ProjectList is a page of projects.
type ProjectList struct {
	Projects   []Project `json:"projects"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// Projects are the operations on projects.
var Projects = declareRecords(records[Project, CreateProjectIn, PatchProjectIn, ProjectList]{
	table: &projects,
	one:   "project",
	many:  "projects",
	most:  10_000,
	make: func(in *CreateProjectIn, made newRecord) (Project, error) {
		p := Project{ID: ProjectID(made.id), OrganizationID: made.workspace, Name: in.Name, CreatedAt: made.at, UpdatedAt: made.at}
		return p, in.apply(&p)
	},
	id: func(in *PatchProjectIn) string { return in.ID },
	change: func(in *PatchProjectIn, p *Project) error {
		p.Name = in.Name.Or(p.Name)
		return in.apply(p)
	},
	updated: func(p *Project) *Timestamp { return &p.UpdatedAt },
})
