package tracker

// PatchCycleIn changes a cycle. Absent fields stay as they are.
type PatchCycleIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	PeriodFields
}

// PatchCycle changes a cycle.
var PatchCycle = NewCommand[PatchCycleIn, Cycle]("PatchCycle", "Change a cycle", Needs{Level: Write}, patchCycle)

func patchCycle(tx *Tx, in *PatchCycleIn) (Reply, error) {
	row, err := recordIn(&tx.View, &cycles, in.ID, "cycle")
	if err != nil {
		return Reply{}, err
	}
	c := row.Value
	c.Name = in.Name.Or(c.Name)
	if err := in.apply(&c.StartsAt, &c.EndsAt); err != nil {
		return Reply{}, err
	}
	return changeRecord(tx, &cycles, row, &c, &c.UpdatedAt)
}
