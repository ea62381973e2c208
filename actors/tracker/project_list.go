package tracker

// ProjectList is the answer to ListProjects.
type ProjectList struct {
	Projects   []Project `json:"projects"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// ListProjects lists the workspace's projects, newest first.
var ListProjects = NewQuery[PageIn, ProjectList]("ListProjects", "List projects", Needs{Level: Read}, listProjects, OneMoment)

func listProjects(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "projects", &projects, nil)
}
