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
