package tracker

// SCIMGroupByIDIn identifies a group.
type SCIMGroupByIDIn struct {
	SCIMBase
	SCIMSelection
	ID          TeamID `path:"id"`
	IfNoneMatch string `header:"If-None-Match"`
}

// SCIMGroupByID reads one group.
var SCIMGroupByID = NewQuery[SCIMGroupByIDIn, SCIMGroup]("ScimGroupByID", "Get a provisioned group", Needs{Level: Read}, scimGroupByID, FromSnapshot, SCIMScope(SCIMGroupsRead), Answers(Done, NotModified))

func scimGroupByID(v *View, in *SCIMGroupByIDIn) (Reply, error) {
	row, err := v.scimGroupRow(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("group")
	}
	shown, err := v.scimGroupShown(&row.Value, &in.SCIMBase, in.shows("members"))
	if err != nil {
		return Reply{}, err
	}
	if scimUnchanged(in.IfNoneMatch, shown.Meta.Version) {
		return Reply{Outcome: NotModified, ETag: shown.Meta.Version}, nil
	}
	return replySCIMGroup(Done, shown, &in.SCIMSelection)
}
