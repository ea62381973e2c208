package tracker

import (
	"fmt"

	"switchyard/storage"
)

// TeamMembersIn identifies a team whose members are listed.
type TeamMembersIn struct {
	ID TeamID `path:"id"`
	PageIn
}

// TeamMemberList is the answer to ListTeamMembers.
type TeamMemberList struct {
	Members    []TeamMember `json:"members"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

// ListTeamMembers lists the members of a team, in the order of their ids.
var ListTeamMembers = NewQuery[TeamMembersIn, TeamMemberList]("ListTeamMembers", "List a team's members", Needs{Level: Read}, listTeamMembers, FromSnapshot)

func listTeamMembers(v *View, in *TeamMembersIn) (Reply, error) {
	team, err := v.teamByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if team == nil {
		return Reply{}, NotFound("team")
	}
	p, err := newPage(v.Buf, pageSpec{name: "members", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(team.Team, "members")})
	if err != nil {
		return Reply{}, err
	}
	err = teamMembers.Scan(v, team.Team[:], p.after, func(pk []byte, rec storage.Record) (bool, error) {
		return p.add(pk, rec.JSON()), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list a team's members: %w", err)
	}
	return p.reply(), nil
}
