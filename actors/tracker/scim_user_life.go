package tracker

import (
	"fmt"
	"reflect"

	"switchyard/storage"
)

// memberToAdopt returns an existing member with the address of a new user, if no other
// provisioned user has it. It is the same person, who must not be a member twice, and
// whom the provider must be able to remove.
func (v *View) memberToAdopt(u *SCIMUserAttributes) (*storage.Row[Member], error) {
	for _, address := range [...]*string{u.email(), u.address()} {
		if address == nil {
			continue
		}
		var found *storage.Row[Member]
		prefix := storage.Key(nil).Str(foldName(*address))
		err := v.Rows(memberByEmail, prefix, nil, func(fields, _ []byte) (bool, error) {
			pk := fields[len(prefix):]
			taken, err := v.Has(scimUserTable, pk)
			if err != nil || taken {
				return true, err
			}
			found, err = members.Get(v, pk)
			return false, err
		})
		if err != nil {
			return nil, fmt.Errorf("look for a member by e-mail: %w", err)
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, nil
}

// settleMember creates, removes or updates the member of a user: there is one while the
// user is active, with the user's name and address. made is set if the user's id is
// new. settleMember reports whether the removal has to go on in the next batch: see
// dropMember.
func (tx *Tx) settleMember(u *scimUser, active, made bool) (more bool, err error) {
	m, err := tx.member(u.ID)
	switch {
	case err != nil:
		return false, err
	case active && m == nil:
		return false, tx.activate(u, made)
	case !active && m != nil:
		return tx.deactivate(u, m)
	case m == nil:
		return false, nil
	}
	changed := m.Value
	changed.Name, changed.Email = u.memberName(), u.email()
	if reflect.DeepEqual(changed, m.Value) {
		return false, nil
	}
	changed.UpdatedAt = At(tx.now)
	if _, err := members.Update(tx, m, &changed); err != nil {
		return false, fmt.Errorf("change a member: %w", err)
	}
	return false, nil
}

// activate makes a user a member, with the stored role and teams. A user who returns no
// longer counts as issued, so this workspace can't make credentials for the user that
// are valid elsewhere: the user may have joined other workspaces since.
func (tx *Tx) activate(u *scimUser, made bool) error {
	role := u.Role
	if role == "" {
		role = RoleMember
	}
	if _, err := tx.insertMember(&Member{UserID: u.ID, Name: u.memberName(), Email: u.email(), Role: role}, made); err != nil {
		return err
	}
	for _, team := range u.Teams {
		id, _ := storage.ParseID(team)
		there, err := tx.Has(teamTable, storage.Key(nil).DescID(id))
		if err != nil {
			return fmt.Errorf("look for a team: %w", err)
		}
		if !there {
			continue
		}
		if _, err := tx.joinTeam(team, u.ID); err != nil {
			return err
		}
	}
	u.Role, u.Teams = "", nil
	return tx.noteMember(u.ID, true)
}

// deactivate removes a user's membership and stores its role and teams. It reports whether
// the removal has to go on in the next batch.
func (tx *Tx) deactivate(u *scimUser, m *storage.Row[Member]) (more bool, err error) {
	if m.Value.Role == RoleOwner {
		return false, Conflict("The owner of the workspace can't be deactivated or removed.", "Leave the owner out of the provisioned users.")
	}
	tx.limited = false
	joined, more, err := tx.dropMember(m)
	if err != nil || more {
		return more, err
	}
	u.Role, u.Teams = m.Value.Role, nil
	for _, team := range joined {
		u.Teams = append(u.Teams, TeamID(team.String()))
	}
	return false, nil
}

// changeSCIMUser stores a changed user, and answers with it.
func (tx *Tx) changeSCIMUser(row *storage.Row[scimUser], u *scimUser, active Opt[bool], base *SCIMBase, selection *SCIMSelection) (Reply, error) {
	if foldName(u.UserName) != foldName(row.Value.UserName) {
		if err := tx.freeUserName(u.UserName, u.ID); err != nil {
			return Reply{}, err
		}
	}
	was, err := tx.Has(memberTable, memberKey(nil, u.ID))
	if err != nil {
		return Reply{}, fmt.Errorf("look for a member: %w", err)
	}
	if more, err := tx.settleMember(u, active.Or(was), false); err != nil || more {
		return Reply{More: more}, err
	}
	if active.Or(was) != was || !reflect.DeepEqual(*u, row.Value) {
		u.UpdatedAt = At(tx.now)
		if _, err := scimUsers.Update(tx, row, u); err != nil {
			return Reply{}, fmt.Errorf("change a provisioned user: %w", err)
		}
	}
	shown, err := tx.scimUserShown(u, base)
	if err != nil {
		return Reply{}, err
	}
	return replySCIMUser(Done, shown, selection)
}

// matchedSCIMUser returns the user that a path names, if If-Match has its version.
func (tx *Tx) matchedSCIMUser(id UserID, ifMatch string, base *SCIMBase) (*storage.Row[scimUser], error) {
	row, err := tx.scimUserRow(id)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, NotFound("user")
	}
	if ifMatch != "" {
		shown, err := tx.scimUserShown(&row.Value, base)
		if err != nil {
			return nil, err
		}
		if err := scimMatch(ifMatch, shown.Meta.Version); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// replySCIMUser answers with a user.
func replySCIMUser(outcome Outcome, shown *SCIMUser, selection *SCIMSelection) (Reply, error) {
	body, err := selection.encode(shown)
	reply := Reply{Outcome: outcome, Body: body, ETag: shown.Meta.Version}
	if outcome == Created {
		reply.Location = shown.Meta.Location
	}
	return reply, err
}
