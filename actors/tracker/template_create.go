package tracker

// CreateTemplateIn is a new template. Teams, parents and others that its fields refer
// to need not exist: those that can't be used are left out of an issue.
type CreateTemplateIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	TemplateFields
}

// CreateTemplate adds a template.
var CreateTemplate = NewCommand[CreateTemplateIn, Template]("CreateTemplate", "Create a template", Needs{Level: Write}, createTemplate, Answers(Created))

func createTemplate(tx *Tx, in *CreateTemplateIn) (Reply, error) {
	id, err := tx.newRecordID(templateTable)
	if err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	t := Template{ID: TemplateID(id), OrganizationID: WorkspaceID(tx.Workspace().String()), Name: in.Name, CreatedAt: now, UpdatedAt: now}
	in.apply(&t)
	return addRecord(tx, &templates, &t)
}
