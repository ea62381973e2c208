package tracker

import "switchyard/storage"

// DraftByID reads one draft.
var DraftByID = NewQuery[RecordIn, Draft]("DraftByID", "Get a draft", Needs{Read, "issues"}, draftByID, ForLanes)

func draftByID(v *View, in *RecordIn) (Reply, error) {
	err := v.draftRecord(in.ID, func(rec storage.Record) error {
		if err := v.awaitTurn(rec); err != nil {
			return err
		}
		v.Buf = append(append(v.Buf[:0], publicPart(rec.JSON())...), '}')
		return nil
	})
	return Reply{Body: v.Buf}, err
}
