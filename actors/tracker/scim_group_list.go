package tracker

import (
	"slices"

	"switchyard/storage"
)

// SCIMGroupList is the answer to ListSCIMGroups.
type SCIMGroupList struct {
	Schemas      []string    `json:"schemas"`
	TotalResults int         `json:"totalResults"`
	StartIndex   int         `json:"startIndex"`
	ItemsPerPage int         `json:"itemsPerPage"`
	Resources    []SCIMGroup `json:"Resources"`
}

// ListSCIMGroups lists the provisioned groups that satisfy a filter, oldest first.
var ListSCIMGroups = NewQuery[SCIMListIn, SCIMGroupList]("ListScimGroups", "List provisioned groups", Needs{Level: Read}, listSCIMGroups, FromSnapshot, SCIMScope(SCIMGroupsRead))

func listSCIMGroups(v *View, in *SCIMListIn) (Reply, error) {
	terms, err := scimFilter(in.Filter, "id", "displayname", "externalid", "members", "members.value")
	if err != nil {
		return Reply{}, err
	}
	byID := func(id string) (*storage.Row[scimGroup], error) { return v.scimGroupRow(TeamID(id)) }
	rows, narrowed, err := narrowSCIM(terms, "displayname", byID, v.scimGroupsBy)
	if err != nil {
		return Reply{}, err
	}
	p := newSCIMPage(in)
	members := in.shows("members")
	holds := func(g *scimGroup, t *scimTerm) (bool, error) { return v.scimGroupIs(g, t) }
	return listSCIM(v, p, &scimGroups, terms, rows, narrowed, holds, func(g *scimGroup) error {
		shown, err := v.scimGroupShown(g, &in.SCIMBase, members)
		if err != nil {
			return err
		}
		return p.add(shown)
	})
}

// scimGroupIs reports whether a group satisfies a condition.
func (v *View) scimGroupIs(g *scimGroup, t *scimTerm) (bool, error) {
	switch t.attribute {
	case "id":
		return string(g.ID) == t.value, nil
	case "displayname":
		return foldName(g.DisplayName) == foldName(t.value), nil
	case "externalid":
		return g.ExternalID != nil && *g.ExternalID == t.value, nil
	}
	user, err := v.scimUserRow(UserID(t.value))
	if err != nil || user == nil {
		return false, err
	}
	id, _ := storage.ParseID(g.ID)
	there, err := v.Has(teamMemberTable, teamMemberKey(nil, id, user.Value.ID))
	if err != nil || there {
		return there, err
	}
	active, err := v.Has(memberTable, memberKey(nil, user.Value.ID))
	return !active && slices.Contains(user.Value.Teams, g.ID), err
}
