package tracker

// CreateProjectIn is a new project.
type CreateProjectIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	ProjectFields
}

// CreateProject adds a project.
var CreateProject = NewCommand[CreateProjectIn, Project]("CreateProject", "Create a project", Needs{Level: Write}, createProject, Answers(Created))

func createProject(tx *Tx, in *CreateProjectIn) (Reply, error) {
	id, err := tx.newRecordID(projectTable)
	if err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	p := Project{ID: ProjectID(id), OrganizationID: WorkspaceID(tx.Workspace().String()), Name: in.Name, CreatedAt: now, UpdatedAt: now}
	if err := in.apply(&p); err != nil {
		return Reply{}, err
	}
	return addRecord(tx, &projects, &p)
}
