package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteSCIMGroupIn identifies a group.
type DeleteSCIMGroupIn struct {
	SCIMBase
	ID      TeamID `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
}

// DeleteSCIMGroup removes a group, and its users from the team. It also deletes the
// team, unless that has issues or is the default one: the provider doesn't know these
// reasons, and would repeat a refused deletion forever.
var DeleteSCIMGroup = NewCommand[DeleteSCIMGroupIn, None]("DeleteScimGroup", "Remove a provisioned group", Needs{Level: Read}, deleteSCIMGroup, SCIMScope(SCIMGroupsWrite), WithSpaceEffect(FreesSpace), Audits(auditTeam))

func deleteSCIMGroup(tx *Tx, in *DeleteSCIMGroupIn) (Reply, error) {
	row, err := tx.matchedSCIMGroup(in.ID, in.IfMatch, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	id := row.Value.ID
	if _, err := tx.setSCIMMembers(id, nil); err != nil {
		return Reply{}, err
	}
	team, err := tx.teamByID(id)
	if err != nil {
		return Reply{}, err
	}
	if team == nil {
		return Reply{}, fmt.Errorf("%w: the team of a provisioned group is not there", storage.ErrFormat)
	}
	used, err := tx.Has(issueByTeam, storage.Key(nil).ID(team.Team))
	if err != nil {
		return Reply{}, fmt.Errorf("look for a team's issues: %w", err)
	}
	if used || team.Value.IsDefault {
		return Reply{Outcome: NoContent}, tx.forgetSCIMGroup(id)
	}
	return deleteTeam(tx, &TeamByIDIn{ID: id})
}
