package tracker

// DealByID reads one deal.
var DealByID = NewQuery[RecordIn, Deal]("DealByID", "Get a deal", Needs{Level: Read}, dealByID)

func dealByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &deals, in, "deal")
}
