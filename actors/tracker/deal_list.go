package tracker

// ListDealsIn asks for a page of deals.
type ListDealsIn struct {
	Limit  int    `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor string `query:"cursor" rules:"max=1024"`
}

// DealList is the answer to ListDeals.
type DealList struct {
	Deals      []Deal `json:"deals"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// ListDeals lists the workspace's deals, newest first.
var ListDeals = NewQuery[ListDealsIn, DealList]("ListDeals", "List deals", Needs{Level: Read}, listDeals, OneMoment)

func listDeals(v *View, in *ListDealsIn) (Reply, error) {
	return listRecords(v, &PageIn{Limit: in.Limit, Cursor: in.Cursor}, "deals", &deals, nil)
}
