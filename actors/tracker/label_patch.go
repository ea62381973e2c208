package tracker

// PatchLabelIn changes a label. Absent fields stay as they are.
type PatchLabelIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	LabelFields
}

// PatchLabel changes a label.
var PatchLabel = NewCommand[PatchLabelIn, Label]("PatchLabel", "Change a label", Needs{Level: Write}, patchLabel)

func patchLabel(tx *Tx, in *PatchLabelIn) (Reply, error) {
	row, err := recordIn(&tx.View, &labels, in.ID, "label")
	if err != nil {
		return Reply{}, err
	}
	l := row.Value
	l.Name = in.Name.Or(l.Name)
	in.apply(&l)
	return changeRecord(tx, &labels, row, &l, &l.UpdatedAt)
}
