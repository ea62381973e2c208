package tracker

import "switchyard/storage"

// ProjectID names a project.
type ProjectID string

// Project is a piece of work that issues of any team are part of.
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

// ProjectFields are what a creation and a change of a project both take besides its
// name. The lead is taken as it comes, known or not (Decision 15).
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
