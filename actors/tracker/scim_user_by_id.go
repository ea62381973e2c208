package tracker

// SCIMUserByIDIn identifies a user.
type SCIMUserByIDIn struct {
	SCIMBase
	SCIMSelection
	ID          UserID `path:"id"`
	IfNoneMatch string `header:"If-None-Match"`
}

// SCIMUserByID reads one user.
var SCIMUserByID = NewQuery[SCIMUserByIDIn, SCIMUser]("ScimUserByID", "Get a provisioned user", Needs{Level: Read}, scimUserByID, FromSnapshot, SCIMScope(SCIMUsersRead), Answers(Done, NotModified))

func scimUserByID(v *View, in *SCIMUserByIDIn) (Reply, error) {
	row, err := v.scimUserRow(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("user")
	}
	shown, err := v.scimUserShown(&row.Value, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	if scimUnchanged(in.IfNoneMatch, shown.Meta.Version) {
		return Reply{Outcome: NotModified, ETag: shown.Meta.Version}, nil
	}
	return replySCIMUser(Done, shown, &in.SCIMSelection)
}
