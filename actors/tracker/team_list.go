package tracker

import "switchyard/storage"

// TeamList is the answer to ListTeams.
type TeamList struct {
	Teams      []Team `json:"teams"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// ListTeams lists the teams that the caller may see, newest first.
var ListTeams = NewQuery[PageIn, TeamList]("ListTeams", "List teams", Needs{Level: Read}, listTeams, FromSnapshot)

func listTeams(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "teams", &teams, func(rec storage.Record) bool { return v.Caller.CanViewTeam(rec.Team()) })
}
