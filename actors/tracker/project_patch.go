package tracker

// PatchProjectIn changes a project. Absent fields stay as they are.
type PatchProjectIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	ProjectFields
}

// PatchProject changes a project.
var PatchProject = NewCommand[PatchProjectIn, Project]("PatchProject", "Change a project", Needs{Level: Write}, patchProject)

func patchProject(tx *Tx, in *PatchProjectIn) (Reply, error) {
	row, err := recordIn(&tx.View, &projects, in.ID, "project")
	if err != nil {
		return Reply{}, err
	}
	p := row.Value
	p.Name = in.Name.Or(p.Name)
	if err := in.apply(&p); err != nil {
		return Reply{}, err
	}
	return changeRecord(tx, &projects, row, &p, &p.UpdatedAt)
}
