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
