package tracker

import "switchyard/storage"

// TeamMemberIn identifies a member of a team.
type TeamMemberIn struct {
	ID     TeamID `path:"id"`
	UserID UserID `path:"userId"`
}

// PutTeamMember makes a member of the workspace, or one of its agents, a member of a
// team.
var PutTeamMember = NewCommand[TeamMemberIn, TeamMember]("PutTeamMember", "Add a member to a team", Needs{Level: Write}, putTeamMember, Audits(auditTeam))

func putTeamMember(tx *Tx, in *TeamMemberIn) (Reply, error) {
	team, err := tx.teamByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if team == nil {
		return Reply{}, NotFound("team")
	}
	if err := tx.requireMemberOrAgent(in.UserID); err != nil {
		return Reply{}, err
	}
	body, err := tx.joinTeam(team.Value.ID, in.UserID)
	return Reply{Body: body}, err
}

// requireMemberOrAgent returns NOT_FOUND for an id that is neither a member of the workspace, nor one
// of its agents, registered or with a token of it, nor one of its OAuth clients.
func (tx *Tx) requireMemberOrAgent(who UserID) error {
	m, err := tx.member(who)
	if err != nil || m != nil {
		return err
	}
	if who != "" && indexable(string(who)) {
		agent, err := tx.agent(string(who))
		if err != nil || agent != nil {
			return err
		}
		known, err := tx.Has(grantByActor, actorKey(storage.Key(nil), ActorAgent, string(who)))
		if err != nil || known {
			return err
		}
		known, err = tx.hasOAuthClient(string(who))
		if err != nil || known {
			return err
		}
	}
	return NotFound("member")
}
