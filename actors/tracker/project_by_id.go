package tracker

// ProjectByID reads one project.
var ProjectByID = NewQuery[RecordIn, Project]("ProjectByID", "Get a project", Needs{Level: Read}, projectByID)

func projectByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &projects, in, "project")
}
