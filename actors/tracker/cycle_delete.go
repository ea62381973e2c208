package tracker

// DeleteCycle removes a cycle. Issues that refer to it keep its id.
var DeleteCycle = NewCommand[RecordIn, None]("DeleteCycle", "Delete a cycle", Needs{Level: Write}, deleteCycle, WithRoom(Frees))

func deleteCycle(tx *Tx, in *RecordIn) (Reply, error) {
	return removeRecord(tx, &cycles, in, "cycle")
}
