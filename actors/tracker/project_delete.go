package tracker

// DeleteProject removes a project. Issues that refer to it keep its id.
var DeleteProject = NewCommand[RecordIn, None]("DeleteProject", "Delete a project", Needs{Level: Write}, deleteProject, WithRoom(Frees))

func deleteProject(tx *Tx, in *RecordIn) (Reply, error) {
	return removeRecord(tx, &projects, in, "project")
}
