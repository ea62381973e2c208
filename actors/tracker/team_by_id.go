package tracker

// TeamByIDIn identifies a team.
type TeamByIDIn struct {
	ID TeamID `path:"id"`
}

// TeamByID reads one team.
var TeamByID = NewQuery[TeamByIDIn, Team]("TeamByID", "Get a team", Needs{Level: Read}, teamByID)

func teamByID(v *View, in *TeamByIDIn) (Reply, error) {
	team, err := v.teamByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if team == nil {
		return Reply{}, NotFound("team")
	}
	return jsonReply(Done, &team.Value)
}
