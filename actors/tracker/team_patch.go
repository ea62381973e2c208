package tracker

import "fmt"

// PatchTeamIn changes a team. Absent fields stay as they are.
type PatchTeamIn struct {
	ID                TeamID      `path:"id"`
	Name              Opt[string] `json:"name" rules:"min=1,max=200"`
	Key               Opt[string] `json:"key" rules:"min=1,max=10" form:"key"`
	OwnerID           Opt[UserID] `json:"ownerId" rules:"min=1,max=255"`
	IsDefault         Opt[bool]   `json:"isDefault"`
	IsPublic          Opt[bool]   `json:"isPublic"`
	ParentAutoClose   Opt[bool]   `json:"parentAutoClose"`
	SubIssueAutoClose Opt[bool]   `json:"subIssueAutoClose"`
	TriageAssigneeID  Opt[string] `json:"triageAssigneeId" rules:"nullable,min=1,max=255"`
	DefaultTemplateID Opt[string] `json:"defaultTemplateId" rules:"nullable,min=1,max=255"`
}

// PatchTeam changes a team. If its key changes, issues keep their identifiers.
var PatchTeam = NewCommand[PatchTeamIn, Team]("PatchTeam", "Change a team", Needs{Level: Write}, patchTeam, Audits(auditTeam))

func patchTeam(tx *Tx, in *PatchTeamIn) (Reply, error) {
	row, err := tx.teamByID(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("team")
	}
	if err := tx.patchDefault(in, &row.Value); err != nil {
		return Reply{}, err
	}
	// Becoming the default has changed the team's row.
	if row, err = tx.teamByID(in.ID); err != nil {
		return Reply{}, err
	}
	t := row.Value
	if err := tx.applyTeamPatch(in, &t); err != nil {
		return Reply{}, err
	}
	if t == row.Value {
		return jsonReply(Done, &t)
	}
	t.UpdatedAt = At(tx.now)
	if t.Key != row.Value.Key {
		if err := tx.retireKey(row.Team, row.Value.Key); err != nil {
			return Reply{}, err
		}
		if err := tx.takeKey(row.Team, t.Key); err != nil {
			return Reply{}, err
		}
	}
	if row.Value.IsPublic && !t.IsPublic {
		if tx.Caller.Role == RoleGuest {
			return Reply{}, errGuestsTeam()
		}
		if !tx.Caller.Root {
			// Without membership the caller could not see the team any more.
			if _, err := tx.joinTeam(t.ID, UserID(tx.Caller.ID)); err != nil {
				return Reply{}, err
			}
		}
	}
	body, err := teams.Update(tx, row, &t)
	if err != nil {
		return Reply{}, fmt.Errorf("change a team: %w", err)
	}
	if t.IsPublic && !row.Value.IsPublic {
		tx.wakeClaimers()
	}
	return Reply{Body: body}, nil
}

// patchDefault makes the team the workspace's default. That changes the workspace, so
// it takes the same right.
func (tx *Tx) patchDefault(in *PatchTeamIn, t *Team) error {
	if !in.IsDefault.Set || in.IsDefault.Value == t.IsDefault {
		return nil
	}
	if !tx.Caller.Allows(Needs{Level: Admin}) {
		return Forbidden("Only an owner or admin sets the default team.", "Use the token of an owner or admin of the workspace.")
	}
	if !in.IsDefault.Value {
		return Conflict("This team is the workspace's default one.", "Make another team the default instead.")
	}
	return tx.setDefaultTeam(t.ID)
}

func (tx *Tx) applyTeamPatch(in *PatchTeamIn, t *Team) error {
	t.Name = in.Name.Or(t.Name)
	t.IsPublic = in.IsPublic.Or(t.IsPublic)
	t.ParentAutoClose = in.ParentAutoClose.Or(t.ParentAutoClose)
	t.SubIssueAutoClose = in.SubIssueAutoClose.Or(t.SubIssueAutoClose)
	assign(&t.TriageAssigneeID, &in.TriageAssigneeID)
	assign(&t.DefaultTemplateID, &in.DefaultTemplateID)
	if in.OwnerID.Set && in.OwnerID.Value != t.OwnerID {
		m, err := tx.member(in.OwnerID.Value)
		if err != nil {
			return err
		}
		if m == nil {
			return BadRequest(Fault{Path: "ownerId", Message: "There is no such member."})
		}
		t.OwnerID = in.OwnerID.Value
	}
	if key, ok := upperKey(in.Key.Value); in.Key.Set && ok && key != t.Key {
		if err := tx.freeTeamKey(key); err != nil {
			return err
		}
		t.Key = key
	}
	return nil
}
