package tracker

// PatchTemplateIn changes a template. Absent fields stay as they are, null clears.
type PatchTemplateIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	TemplateFields
}

// PatchTemplate changes a template. Issues made with it are not changed.
var PatchTemplate = NewCommand[PatchTemplateIn, Template]("PatchTemplate", "Change a template", Needs{Level: Write}, patchTemplate)

func patchTemplate(tx *Tx, in *PatchTemplateIn) (Reply, error) {
	row, err := recordIn(&tx.View, &templates, in.ID, "template")
	if err != nil {
		return Reply{}, err
	}
	t := row.Value
	t.Name = in.Name.Or(t.Name)
	in.apply(&t)
	return changeRecord(tx, &templates, row, &t, &t.UpdatedAt)
}
