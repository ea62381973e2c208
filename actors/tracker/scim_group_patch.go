package tracker

// PatchSCIMGroupIn changes a group.
type PatchSCIMGroupIn struct {
	SCIMBase
	ID      TeamID `path:"id"`
	IfMatch string `header:"If-Match"`
	SCIMOperations
}

// PatchSCIMGroup changes a group by the operations of RFC 7644; either all of them take
// effect or none. A group may have thousands of members, so the answer does not show
// it.
var PatchSCIMGroup = NewCommand[PatchSCIMGroupIn, None]("PatchScimGroup", "Change a provisioned group", Needs{Level: Read}, patchSCIMGroup, SCIMScope(SCIMGroupsWrite), BodyUpTo(maxSCIMGroupBody), Audits(auditTeam))

func patchSCIMGroup(tx *Tx, in *PatchSCIMGroupIn) (Reply, error) {
	row, err := tx.matchedSCIMGroup(in.ID, in.IfMatch, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	edits, err := in.edits()
	if err != nil {
		return Reply{}, err
	}
	g := row.Value
	members := false
	for i := range edits {
		if err := edits[i].keepsID(string(in.ID)); err != nil {
			return Reply{}, err
		}
		changed, err := edits[i].applyGroup(tx, &g)
		if err != nil {
			return Reply{}, err
		}
		members = members || changed
	}
	return Reply{Outcome: NoContent}, tx.changeSCIMGroup(row, &g, members)
}

// applyGroup applies an edit to a group; members reports whether it changed the
// members.
func (e *scimEdit) applyGroup(tx *Tx, g *scimGroup) (members bool, err error) {
	p := &e.path
	if p.attribute == "members" {
		return e.applyMembers(tx, g.ID)
	}
	if p.foreign || p.attribute == "schemas" || p.attribute == "id" || p.attribute == "meta" {
		return false, nil
	}
	if p.selects || p.sub != "" {
		return false, scimRefusal(scimInvalidPath, "A path names an attribute that groups do not have.")
	}
	switch p.attribute {
	case "displayname":
		name, err := e.text(200)
		if err != nil {
			return false, err
		}
		if name == nil {
			return false, scimRefusal(scimMutability, "displayName can't be removed.")
		}
		g.DisplayName = *name
	case "externalid":
		g.ExternalID, err = e.text(255)
	default:
		err = scimRefusal(scimInvalidPath, "A path names an attribute that groups do not have.")
	}
	return false, err
}

// applyMembers applies an edit of the members: those selected by a filter, those in the
// value, or all.
func (e *scimEdit) applyMembers(tx *Tx, team TeamID) (bool, error) {
	p := &e.path
	if p.sub != "" || p.selects && !e.remove {
		return false, scimRefusal(scimInvalidPath, "Members are added and replaced as a whole, and removed by value.")
	}
	if p.selects {
		var who []UserID
		for _, t := range p.terms {
			if t.attribute != "value" {
				return false, scimRefusal(scimInvalidPath, `A member is selected by value, as in members[value eq "id"].`)
			}
			who = append(who, UserID(t.value))
		}
		if len(who) > 1 && who[0] != who[1] {
			return false, nil // no user has two ids
		}
		return tx.leaveAll(team, who[:1])
	}
	if e.value == nil {
		if e.add {
			return false, scimRefusal(scimInvalidValue, "There is no member to add.")
		}
		return tx.setSCIMMembers(team, nil)
	}
	who, err := e.memberIDs()
	if err != nil {
		return false, err
	}
	switch {
	case e.add:
		return tx.joinAll(team, who)
	case e.remove:
		return tx.leaveAll(team, who)
	}
	return tx.setSCIMMembers(team, who)
}

// memberIDs returns the ids of users in a value.
func (e *scimEdit) memberIDs() ([]UserID, error) {
	values, ok := scimObjects(e.value)
	if !ok {
		return nil, scimRefusal(scimInvalidValue, "members must be an array of objects.")
	}
	who := make([]UserID, 0, len(values))
	for _, value := range values {
		id, ok := scimProperty(value, "value").(string)
		if !ok || id == "" || !indexable(id) {
			return nil, scimRefusal(scimInvalidValue, "A member's value must be the id of a user.")
		}
		who = append(who, UserID(id))
	}
	return who, nil
}
