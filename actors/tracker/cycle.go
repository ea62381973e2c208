package tracker

import "switchyard/storage"

// CycleID is the id of a cycle.
type CycleID string

// Cycle is a period of time that issues of any team are planned for.
type Cycle struct {
	ID             CycleID     `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	StartsAt       *Timestamp  `json:"startsAt"`
	EndsAt         *Timestamp  `json:"endsAt"`
	CreatedAt      Timestamp   `json:"createdAt"`
	UpdatedAt      Timestamp   `json:"updatedAt"`
}

var cycles = storage.Table[Cycle]{
	ID:   cycleTable,
	Name: "cycle",
	Key:  func(k storage.Key, c *Cycle) storage.Key { return newestKey(k, c.ID) },
}
