package tracker

// CreateCycleIn is a new cycle.
type CreateCycleIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	PeriodFields
}

// CreateCycle adds a cycle.
var CreateCycle = NewCommand[CreateCycleIn, Cycle]("CreateCycle", "Create a cycle", Needs{Level: Write}, createCycle, Answers(Created))

func createCycle(tx *Tx, in *CreateCycleIn) (Reply, error) {
	id, err := tx.newRecordID(cycleTable)
	if err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	c := Cycle{ID: CycleID(id), OrganizationID: WorkspaceID(tx.Workspace().String()), Name: in.Name, CreatedAt: now, UpdatedAt: now}
	if err := in.apply(&c.StartsAt, &c.EndsAt); err != nil {
		return Reply{}, err
	}
	return addRecord(tx, &cycles, &c)
}
