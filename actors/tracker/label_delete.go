package tracker

// DeleteLabel removes a label. Issues that refer to it keep its id.
var DeleteLabel = NewCommand[RecordIn, None]("DeleteLabel", "Delete a label", Needs{Level: Write}, deleteLabel, WithRoom(Frees))

func deleteLabel(tx *Tx, in *RecordIn) (Reply, error) {
	return removeRecord(tx, &labels, in, "label")
}
