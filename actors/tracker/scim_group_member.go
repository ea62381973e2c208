package tracker

import (
	"fmt"
	"slices"

	"switchyard/storage"
)

// maxSCIMTeams limits the teams that are stored for a deactivated user.
const maxSCIMTeams = 1000

func noSuchSCIMMember(who UserID) error {
	return scimRefusal(scimInvalidValue, fmt.Sprintf("There is no user %.60q to be a member of the group.", who))
}

// joinSCIMGroup adds a user to a group; false if the user was in it.
func (tx *Tx) joinSCIMGroup(team TeamID, who UserID) (bool, error) {
	user, err := tx.scimUserRow(who)
	if err != nil {
		return false, err
	}
	if user == nil {
		return false, noSuchSCIMMember(who)
	}
	active, err := tx.Has(memberTable, memberKey(nil, who))
	if err != nil {
		return false, fmt.Errorf("look for a member: %w", err)
	}
	if active {
		id, _ := storage.ParseID(team)
		there, err := tx.Has(teamMemberTable, teamMemberKey(nil, id, who))
		if err != nil || there {
			return false, err
		}
		_, err = tx.joinTeam(team, who)
		return true, err
	}
	if slices.Contains(user.Value.Teams, team) {
		return false, nil
	}
	if len(user.Value.Teams) >= maxSCIMTeams {
		return false, Conflict("The deactivated user is in too many groups.", "Remove the user from groups first.")
	}
	u := user.Value
	u.Teams = append(slices.Clone(u.Teams), team)
	return true, tx.updateSCIMUser(user, &u)
}

// leaveSCIMGroup removes a user from a group; false if there was no such provisioned
// user in it.
func (tx *Tx) leaveSCIMGroup(team TeamID, who UserID) (bool, error) {
	user, err := tx.scimUserRow(who)
	if err != nil || user == nil {
		return false, err
	}
	at := slices.Index(user.Value.Teams, team)
	if at >= 0 {
		u := user.Value
		u.Teams = slices.Delete(slices.Clone(u.Teams), at, at+1)
		if err := tx.updateSCIMUser(user, &u); err != nil {
			return false, err
		}
	}
	id, _ := storage.ParseID(team)
	left, err := tx.leaveTeam(id, who)
	return left || at >= 0, err
}

func (tx *Tx) updateSCIMUser(row *storage.Row[scimUser], u *scimUser) error {
	u.UpdatedAt = At(tx.now)
	if _, err := scimUsers.Update(tx, row, u); err != nil {
		return fmt.Errorf("change a provisioned user: %w", err)
	}
	return nil
}

// setSCIMMembers replaces the users of a group.
func (tx *Tx) setSCIMMembers(team TeamID, wanted []UserID) (changed bool, err error) {
	there, err := tx.scimMembers(team)
	if err != nil {
		return false, err
	}
	keep := map[UserID]bool{}
	for _, who := range wanted {
		keep[who] = true
	}
	for _, who := range there {
		if keep[who] {
			continue
		}
		if _, err := tx.leaveSCIMGroup(team, who); err != nil {
			return false, err
		}
		changed = true
	}
	joined, err := tx.joinAll(team, wanted)
	tx.limited = tx.limited && (joined || !changed)
	return changed || joined, err
}

func (tx *Tx) joinAll(team TeamID, who []UserID) (changed bool, err error) {
	for _, one := range who {
		joined, err := tx.joinSCIMGroup(team, one)
		if err != nil {
			return false, err
		}
		changed = changed || joined
	}
	return changed, nil
}

func (tx *Tx) leaveAll(team TeamID, who []UserID) (changed bool, err error) {
	for _, one := range who {
		left, err := tx.leaveSCIMGroup(team, one)
		if err != nil {
			return false, err
		}
		changed = changed || left
	}
	return changed, nil
}
