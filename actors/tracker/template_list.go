package tracker

// TemplateList is the answer to ListTemplates.
type TemplateList struct {
	Templates  []Template `json:"templates"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// ListTemplates lists the workspace's templates, newest first.
var ListTemplates = NewQuery[PageIn, TemplateList]("ListTemplates", "List templates", Needs{Level: Read}, listTemplates, OneMoment)

func listTemplates(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "templates", &templates, nil)
}
