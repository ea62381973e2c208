package tracker

// CycleByID reads one cycle.
var CycleByID = NewQuery[RecordIn, Cycle]("CycleByID", "Get a cycle", Needs{Level: Read}, cycleByID)

func cycleByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &cycles, in, "cycle")
}
