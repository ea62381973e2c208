package tracker

import "switchyard/storage"

// LabelID is the id of a label.
type LabelID string

// Label is a mark that issues of any team may have.
type Label struct {
	ID             LabelID     `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	Color          *string     `json:"color"`
	Description    *string     `json:"description"`
	CreatedAt      Timestamp   `json:"createdAt"`
	UpdatedAt      Timestamp   `json:"updatedAt"`
}

var labels = storage.Table[Label]{
	ID:   labelTable,
	Name: "label",
	Key:  func(k storage.Key, l *Label) storage.Key { return newestKey(k, l.ID) },
}

// LabelFields are the fields that the creation and the change of a label share, except
// for its name.
type LabelFields struct {
	Color       Opt[string] `json:"color" rules:"nullable,max=32"`
	Description Opt[string] `json:"description" rules:"nullable,max=2000"`
}

func (f *LabelFields) apply(l *Label) {
	assign(&l.Color, &f.Color)
	assign(&l.Description, &f.Description)
}

// CreateLabelIn asks for a label. Two may have the same name.
type CreateLabelIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	LabelFields
}

// PatchLabelIn changes a label. Absent fields stay as they are.
type PatchLabelIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	LabelFields
}

// LabelList is a page of labels.
type LabelList struct {
	Labels     []Label `json:"labels"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// Labels are the operations on labels.
var Labels = declareRecords(records[Label, CreateLabelIn, PatchLabelIn, LabelList]{
	table: &labels,
	one:   "label",
	many:  "labels",
	most:  10_000,
	make: func(in *CreateLabelIn, made newRecord) (Label, error) {
		l := Label{ID: LabelID(made.id), OrganizationID: made.workspace, Name: in.Name, CreatedAt: made.at, UpdatedAt: made.at}
		in.apply(&l)
		return l, nil
	},
	id: func(in *PatchLabelIn) string { return in.ID },
	change: func(in *PatchLabelIn, l *Label) error {
		l.Name = in.Name.Or(l.Name)
		in.apply(l)
		return nil
	},
	updated: func(l *Label) *Timestamp { return &l.UpdatedAt },
})
