package tracker

import (
	"fmt"

	"switchyard/storage"
)

// PatchWorkspaceIn changes a workspace. Absent fields stay as they are.
type PatchWorkspaceIn struct {
	SSOEnforced   Opt[bool]   `json:"ssoEnforced"`
	DefaultTeamID Opt[TeamID] `json:"defaultTeamId" rules:"min=1,max=255"`
}

// PatchWorkspace changes a workspace's settings.
var PatchWorkspace = NewCommand[PatchWorkspaceIn, Workspace]("PatchWorkspace", "Change a workspace", Needs{Level: Admin}, patchWorkspace, Audits(auditWorkspace))

func patchWorkspace(tx *Tx, in *PatchWorkspaceIn) (Reply, error) {
	if in.DefaultTeamID.Set {
		team, err := tx.teamByID(in.DefaultTeamID.Value)
		if err != nil {
			return Reply{}, err
		}
		if team == nil {
			return Reply{}, NotFound("team")
		}
		if err := tx.setDefaultTeam(team.Value.ID); err != nil {
			return Reply{}, err
		}
	}
	if in.SSOEnforced.Set {
		if err := tx.setSSOEnforced(in.SSOEnforced.Value); err != nil {
			return Reply{}, err
		}
	}
	ws, err := tx.workspace()
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &ws.Value)
}

// setDefaultTeam makes a team the default one. It updates the workspace, the team, and
// the previous default team.
func (tx *Tx) setDefaultTeam(id TeamID) error {
	ws, err := tx.workspace()
	if err != nil {
		return err
	}
	before := ws.Value.DefaultTeamID
	if before != nil && *before == id {
		return nil
	}
	if before != nil {
		if err := tx.markDefault(*before, false); err != nil {
			return err
		}
	}
	if err := tx.markDefault(id, true); err != nil {
		return err
	}
	w := ws.Value
	w.DefaultTeamID = &id
	return tx.updateWorkspace(ws, &w)
}

func (tx *Tx) markDefault(id TeamID, is bool) error {
	raw, _ := storage.ParseID(id)
	row, err := tx.readTeam(storage.Key(nil).DescID(raw))
	if err != nil {
		return err
	}
	if row == nil {
		return NotFound("team")
	}
	t := row.Value
	t.IsDefault, t.UpdatedAt = is, At(tx.now)
	if _, err := teams.Update(tx, row, &t); err != nil {
		return fmt.Errorf("change a team: %w", err)
	}
	return nil
}

func (tx *Tx) setSSOEnforced(on bool) error {
	old, err := tx.settings()
	if err != nil {
		return err
	}
	s := Settings{SSOEnforced: on}
	switch {
	case old == nil && !on || old != nil && old.Value == s:
		return nil
	case old == nil:
		_, err = settingsRows.Insert(tx, &s)
	default:
		_, err = settingsRows.Update(tx, old, &s)
	}
	if err != nil {
		return fmt.Errorf("change the settings: %w", err)
	}
	ws, err := tx.workspace()
	if err != nil {
		return err
	}
	return tx.updateWorkspace(ws, &ws.Value)
}

func (tx *Tx) updateWorkspace(old *storage.Row[Workspace], w *Workspace) error {
	changed := *w
	changed.UpdatedAt = At(tx.now)
	if _, err := workspaces.Update(tx, old, &changed); err != nil {
		return fmt.Errorf("change the workspace: %w", err)
	}
	return nil
}
