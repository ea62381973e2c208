package tracker

// CreateTemplateIn asks for a template. Teams, parents and whatever else its fields
// name need not be there: what can't be filled in is left out of an issue.
type CreateTemplateIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	TemplateFields
}

// CreateTemplate adds a template.
var CreateTemplate = NewCommand[CreateTemplateIn, Template]("CreateTemplate", "Create a template", Needs{Level: Write}, createTemplate)

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
