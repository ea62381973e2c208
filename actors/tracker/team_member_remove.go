package tracker

// RemoveTeamMember removes a member from a team.
var RemoveTeamMember = NewCommand[TeamMemberIn, None]("RemoveTeamMember", "Remove a member from a team", Needs{Level: Write}, removeTeamMember, WithSpaceEffect(FreesSpace), Audits(auditTeam))

func removeTeamMember(tx *Tx, in *TeamMemberIn) (Reply, error) {
	team, err := tx.teamByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if team == nil {
		return Reply{}, NotFound("team")
	}
	if in.UserID == "" || !indexable(string(in.UserID)) {
		return Reply{}, NotFound("member")
	}
	there, err := tx.leaveTeam(team.Team, in.UserID)
	if err != nil {
		return Reply{}, err
	}
	if !there {
		return Reply{}, NotFound("member")
	}
	return Reply{Outcome: NoContent}, nil
}
