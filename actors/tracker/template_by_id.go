package tracker

// TemplateByID reads one template.
var TemplateByID = NewQuery[RecordIn, Template]("TemplateByID", "Get a template", Needs{Level: Read}, templateByID)

func templateByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &templates, in, "template")
}
