package tracker

import (
	"fmt"

	"switchyard/storage"
)

// PutSCIMGroupIn replaces a group.
type PutSCIMGroupIn struct {
	SCIMBase
	SCIMSelection
	ID      TeamID `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
	SCIMGroupIn
}

// PutSCIMGroup replaces a group. Without members in the request the group keeps its
// members; an empty array removes all.
var PutSCIMGroup = NewCommand[PutSCIMGroupIn, SCIMGroup]("PutScimGroup", "Replace a provisioned group", Needs{Level: Read}, putSCIMGroup, SCIMScope(SCIMGroupsWrite), BodyUpTo(maxSCIMGroupBody), Audits(auditTeam))

func putSCIMGroup(tx *Tx, in *PutSCIMGroupIn) (Reply, error) {
	row, err := tx.matchedSCIMGroup(in.ID, in.IfMatch, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	g := row.Value
	g.DisplayName, g.ExternalID = in.DisplayName, scimText(in.ExternalID)
	changed := false
	if in.Members.Set {
		if changed, err = tx.setSCIMMembers(g.ID, in.members()); err != nil {
			return Reply{}, err
		}
	}
	if err := tx.changeSCIMGroup(row, &g, changed); err != nil {
		return Reply{}, err
	}
	shown, err := tx.scimGroupShown(&g, &in.SCIMBase, true)
	if err != nil {
		return Reply{}, err
	}
	return replySCIMGroup(Done, shown, &in.SCIMSelection)
}

// changeSCIMGroup stores a changed group; members is set if its members have changed. A
// new displayName is also the team's new name.
func (tx *Tx) changeSCIMGroup(row *storage.Row[scimGroup], g *scimGroup, members bool) error {
	renamed := g.DisplayName != row.Value.DisplayName
	if !renamed && !members && sameText(g.ExternalID, row.Value.ExternalID) {
		return nil
	}
	if renamed {
		if err := tx.freeDisplayName(g.DisplayName, g.ID); err != nil {
			return err
		}
		team, err := tx.teamByID(g.ID)
		if err != nil {
			return err
		}
		if team == nil {
			return fmt.Errorf("%w: the team of a provisioned group is not there", storage.ErrFormat)
		}
		t := team.Value
		t.Name, t.UpdatedAt = g.DisplayName, At(tx.now)
		if _, err := teams.Update(tx, team, &t); err != nil {
			return fmt.Errorf("rename a team: %w", err)
		}
	}
	g.UpdatedAt = At(tx.now)
	if _, err := scimGroups.Update(tx, row, g); err != nil {
		return fmt.Errorf("change a provisioned group: %w", err)
	}
	return nil
}

func sameText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
