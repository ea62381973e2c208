package tracker

// CycleList is the answer to ListCycles.
type CycleList struct {
	Cycles     []Cycle `json:"cycles"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListCycles lists the workspace's cycles, newest first.
var ListCycles = NewQuery[PageIn, CycleList]("ListCycles", "List cycles", Needs{Level: Read}, listCycles, OneMoment)

func listCycles(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "cycles", &cycles, nil)
}
