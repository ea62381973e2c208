package tracker

// PatchDealIn changes a deal. Absent fields stay as they are.
type PatchDealIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	DealFields
}

// PatchDeal changes a deal.
var PatchDeal = NewCommand[PatchDealIn, Deal]("PatchDeal", "Change a deal", Needs{Level: Write}, patchDeal)

func patchDeal(tx *Tx, in *PatchDealIn) (Reply, error) {
	row, err := recordIn(&tx.View, &deals, in.ID, "deal")
	if err != nil {
		return Reply{}, err
	}
	d := row.Value
	d.Name = in.Name.Or(d.Name)
	in.apply(&d)
	return tx.updateDeal(row, &d)
}
