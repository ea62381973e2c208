package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteTeam removes a team that has no issues and is not the default one.
var DeleteTeam = NewCommand[TeamByIDIn, None]("DeleteTeam", "Delete a team", Needs{Level: Write}, deleteTeam, WithSpaceEffect(FreesSpace), Refuses(CodeConflict), Audits(auditTeam))

func deleteTeam(tx *Tx, in *TeamByIDIn) (Reply, error) {
	row, err := tx.teamByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("team")
	}
	if row.Value.IsDefault {
		return Reply{}, Conflict("This team is the workspace's default one.", "Make another team the default first.")
	}
	used, err := tx.Has(issueByTeam, storage.Key(nil).ID(row.Team))
	if err != nil {
		return Reply{}, fmt.Errorf("look for a team's issues: %w", err)
	}
	if used {
		return Reply{}, Conflict("The team has issues.", "Move or delete its issues first.")
	}
	if err := tx.retireKey(row.Team, row.Value.Key); err != nil {
		return Reply{}, err
	}
	if err := tx.emptyTeam(row.Team); err != nil {
		return Reply{}, err
	}
	if err := tx.forgetSCIMGroup(row.Value.ID); err != nil {
		return Reply{}, err
	}
	if err := teams.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("delete a team: %w", err)
	}
	return Reply{Outcome: NoContent}, tx.countRecord(teamTable, -1)
}
