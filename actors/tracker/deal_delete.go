package tracker

// DeleteDeal removes a deal.
var DeleteDeal = NewCommand[RecordIn, None]("DeleteDeal", "Delete a deal", Needs{Level: Write}, deleteDeal, WithRoom(Frees))

func deleteDeal(tx *Tx, in *RecordIn) (Reply, error) {
	row, err := recordIn(&tx.View, &deals, in.ID, "deal")
	if err != nil {
		return Reply{}, err
	}
	body, err := jsonReply(Done, &row.Value)
	if err != nil {
		return Reply{}, err
	}
	reply, err := removeRecord(tx, &deals, in, "deal")
	if err != nil {
		return Reply{}, err
	}
	return reply, tx.Emit(eventDealDeleted, toAll, body.Body, nil)
}
