package tracker

// DeleteTemplate removes a template. Teams that refer to it keep its id.
var DeleteTemplate = NewCommand[RecordIn, None]("DeleteTemplate", "Delete a template", Needs{Level: Write}, deleteTemplate, WithRoom(Frees))

func deleteTemplate(tx *Tx, in *RecordIn) (Reply, error) {
	return removeRecord(tx, &templates, in, "template")
}
