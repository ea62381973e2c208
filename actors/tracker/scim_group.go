package tracker

import (
	"fmt"
	"slices"
	"strings"

	"switchyard/storage"
)

// scimGroup is a team that an identity provider created. Its displayName is the
// provider's: the provider finds a team under its own name even if the team was renamed
// here.
type scimGroup struct {
	ID          TeamID    `json:"id"`
	DisplayName string    `json:"displayName"`
	ExternalID  *string   `json:"externalId,omitempty"`
	CreatedAt   Timestamp `json:"createdAt"`
	UpdatedAt   Timestamp `json:"updatedAt"`
}

var scimGroups = storage.Table[scimGroup]{
	ID:   scimGroupTable,
	Name: "scimGroup",
	Key:  func(k storage.Key, g *scimGroup) storage.Key { return scimGroupKey(k, g.ID) },
	Indexes: []storage.Index[scimGroup]{{
		ID:   scimGroupBy,
		Name: "by",
		Entries: func(e *storage.Entries, g *scimGroup) {
			e.Add(e.Key().Str(scimByName).Str(foldName(g.DisplayName)))
			if g.ExternalID != nil {
				e.Add(e.Key().Str(scimByExternal).Str(*g.ExternalID))
			}
		},
	}},
}

var _ = declareTable(&scimGroups, atMost(1_000, "provisioned groups"))

// scimGroupKey sorts the oldest first: lists with numbered positions must not move
// while groups are added.
func scimGroupKey(k storage.Key, id TeamID) storage.Key {
	team, _ := storage.ParseID(id)
	return k.ID(team)
}

// scimGroupRow returns a provisioned group, or nil.
func (v *View) scimGroupRow(id TeamID) (*storage.Row[scimGroup], error) {
	if _, ok := storage.ParseID(id); !ok {
		return nil, nil
	}
	row, err := scimGroups.Get(v, scimGroupKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("read a provisioned group: %w", err)
	}
	return row, nil
}

// scimGroupsBy returns the provisioned groups with an entry in the index.
func (v *View) scimGroupsBy(kind, value string) ([]*storage.Row[scimGroup], error) {
	return scimRowsBy(v, &scimGroups, scimGroupBy, "group", kind, value)
}

// freeDisplayName returns CONFLICT if another group has the displayName, by which
// providers look up their groups.
func (v *View) freeDisplayName(name string, self TeamID) error {
	rows, err := v.scimGroupsBy(scimByName, foldName(name))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Value.ID != self {
			return Conflict("Another group has this displayName.", "Look the group up by displayName, and change that one.").withReason(scimUniqueness)
		}
	}
	return nil
}

// forgetSCIMGroup removes the record of the group that a team was, if any.
func (tx *Tx) forgetSCIMGroup(team TeamID) error {
	row, err := tx.scimGroupRow(team)
	if err != nil || row == nil {
		return err
	}
	if err := scimGroups.Delete(tx, row); err != nil {
		return fmt.Errorf("forget a provisioned group: %w", err)
	}
	return tx.countRecord(scimGroupTable, -1)
}

// scimMembers returns the users in a group: the provisioned members of its team, and
// the deactivated users who would return to it. Other members of the team are not shown
// to the provider.
func (v *View) scimMembers(team TeamID) ([]UserID, error) {
	var all []UserID
	id, _ := storage.ParseID(team)
	err := teamMembers.Scan(v, id[:], nil, func(pk []byte, rec storage.Record) (bool, error) {
		known, err := v.Has(scimUserTable, pk[len(id):])
		if err != nil || !known {
			return true, err
		}
		m, err := teamMembers.Decode(rec)
		if err == nil {
			all = append(all, m.Value.UserID)
		}
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("read a group's members: %w", err)
	}
	absent, err := v.scimUsersBy(scimByTeam, string(team))
	if err != nil {
		return nil, err
	}
	for _, row := range absent {
		active, err := v.Has(memberTable, memberKey(nil, row.Value.ID))
		if err != nil {
			return nil, fmt.Errorf("look for a member: %w", err)
		}
		if !active {
			all = append(all, row.Value.ID)
		}
	}
	slices.Sort(all)
	return all, nil
}

// SCIMGroup is a provisioned group in the form that answers show.
type SCIMGroup struct {
	Schemas     []string        `json:"schemas"`
	ID          TeamID          `json:"id"`
	ExternalID  *string         `json:"externalId,omitempty"`
	DisplayName string          `json:"displayName,omitempty"`
	Members     []SCIMReference `json:"members,omitempty"`
	Meta        *SCIMMeta       `json:"meta,omitempty"`
}

// scimGroupShown returns a group in the form that answers show. The version covers the
// members, so it is left out without them.
func (v *View) scimGroupShown(g *scimGroup, base *SCIMBase, members bool) (*SCIMGroup, error) {
	url := base.url(v)
	shown := &SCIMGroup{Schemas: []string{scimGroupURN}, ID: g.ID, ExternalID: g.ExternalID, DisplayName: g.DisplayName}
	meta := &SCIMMeta{ResourceType: "Group", Created: g.CreatedAt, LastModified: g.UpdatedAt, Location: url + "/Groups/" + string(g.ID)}
	if members {
		all, err := v.scimMembers(g.ID)
		if err != nil {
			return nil, err
		}
		for _, id := range all {
			shown.Members = append(shown.Members, SCIMReference{Value: string(id), Ref: url + "/Users/" + scimEscape(string(id)), Type: "User"})
		}
		if meta.Version, err = scimTag(shown); err != nil {
			return nil, err
		}
	}
	shown.Meta = meta
	return shown, nil
}

// matchedSCIMGroup returns the group that a path names, if If-Match has its version.
func (tx *Tx) matchedSCIMGroup(id TeamID, ifMatch string, base *SCIMBase) (*storage.Row[scimGroup], error) {
	row, err := tx.scimGroupRow(id)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, NotFound("group")
	}
	if ifMatch != "" {
		shown, err := tx.scimGroupShown(&row.Value, base, true)
		if err != nil {
			return nil, err
		}
		if err := scimMatch(ifMatch, shown.Meta.Version); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// replySCIMGroup answers with a group.
func replySCIMGroup(outcome Outcome, shown *SCIMGroup, selection *SCIMSelection) (Reply, error) {
	body, err := selection.encode(shown)
	reply := Reply{Outcome: outcome, Body: body, ETag: shown.Meta.Version}
	if outcome == Created {
		reply.Location = shown.Meta.Location
	}
	return reply, err
}

// scimTeamKey returns an unused team key for a group's name: the initials of several
// words, or the beginning of one, with a number at the end if the key is taken.
func (v *View) scimTeamKey(name string) (string, error) {
	words := strings.FieldsFunc(branchName("", name), func(r rune) bool { return r == '-' })
	stem := ""
	switch {
	case len(words) == 0: // the name has no letters that a key can have
		stem = "TEAM"
	case len(words) == 1:
		stem = words[0][:min(4, len(words[0]))]
	default:
		for _, word := range words[:min(5, len(words))] {
			stem += word[:1]
		}
	}
	stem = strings.ToUpper(stem)
	for n := 1; ; n++ {
		key := stem
		if n > 1 {
			key = fmt.Sprint(stem, n)
		}
		taken, err := v.Has(teamKeyIndex, storage.Key(nil).Str(key))
		if err != nil {
			return "", fmt.Errorf("look up a team's key: %w", err)
		}
		if !taken { // the number of teams is limited, so a free key is found soon
			return key, nil
		}
	}
}
