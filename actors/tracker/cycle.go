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

// CreateCycleIn asks for a cycle.
type CreateCycleIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	PeriodFields
}

// PatchCycleIn changes a cycle. Absent fields stay as they are.
type PatchCycleIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	PeriodFields
}

// CycleList is a page of cycles.
type CycleList struct {
	Cycles     []Cycle `json:"cycles"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// Cycles are the operations on cycles.
var Cycles = declareRecords(records[Cycle, CreateCycleIn, PatchCycleIn, CycleList]{
	table: &cycles,
	one:   "cycle",
	many:  "cycles",
	most:  10_000,
	make: func(in *CreateCycleIn, made newRecord) (Cycle, error) {
		c := Cycle{ID: CycleID(made.id), OrganizationID: made.workspace, Name: in.Name, CreatedAt: made.at, UpdatedAt: made.at}
		return c, in.apply(&c.StartsAt, &c.EndsAt)
	},
	id: func(in *PatchCycleIn) string { return in.ID },
	change: func(in *PatchCycleIn, c *Cycle) error {
		c.Name = in.Name.Or(c.Name)
		return in.apply(&c.StartsAt, &c.EndsAt)
	},
	updated: func(c *Cycle) *Timestamp { return &c.UpdatedAt },
})
