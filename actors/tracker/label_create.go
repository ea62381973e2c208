package tracker

// CreateLabelIn is a new label. Names need not be unique.
type CreateLabelIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	LabelFields
}

// CreateLabel adds a label.
var CreateLabel = NewCommand[CreateLabelIn, Label]("CreateLabel", "Create a label", Needs{Level: Write}, createLabel, Answers(Created))

func createLabel(tx *Tx, in *CreateLabelIn) (Reply, error) {
	id, err := tx.newRecordID(labelTable)
	if err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	l := Label{ID: LabelID(id), OrganizationID: WorkspaceID(tx.Workspace().String()), Name: in.Name, CreatedAt: now, UpdatedAt: now}
	in.apply(&l)
	return addRecord(tx, &labels, &l)
}
