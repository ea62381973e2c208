package tracker

// LabelByID reads one label.
var LabelByID = NewQuery[RecordIn, Label]("LabelByID", "Get a label", Needs{Level: Read}, labelByID)

func labelByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &labels, in, "label")
}
