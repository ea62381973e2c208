package tracker

// LabelList is the answer to ListLabels.
type LabelList struct {
	Labels     []Label `json:"labels"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListLabels lists the workspace's labels, newest first.
var ListLabels = NewQuery[PageIn, LabelList]("ListLabels", "List labels", Needs{Level: Read}, listLabels, OneMoment)

func listLabels(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "labels", &labels, nil)
}
