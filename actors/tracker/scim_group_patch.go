package tracker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// PatchSCIMGroupIn changes a group.
type PatchSCIMGroupIn struct {
	SCIMBase
	SCIMSelection
	ID      TeamID `path:"id"`
	IfMatch string `header:"If-Match" rules:"min=1"`
	SCIMOperations
}

// PatchSCIMGroup changes a group by the operations of RFC 7644; either all of them take
// effect or none. A group may have thousands of members, so the answer shows the group only
// if the request names attributes. RFC 7644 requires a body in that case (section 3.5.2).
var PatchSCIMGroup = NewCommand[PatchSCIMGroupIn, SCIMGroup]("PatchScimGroup", "Change a provisioned group", Needs{Level: Read}, patchSCIMGroup, SCIMScope(SCIMGroupsWrite), BodyUpTo(maxSCIMGroupBody), Answers(Done, NoContent), Audits(auditTeam))

func patchSCIMGroup(tx *Tx, in *PatchSCIMGroupIn) (Reply, error) {
	row, err := tx.matchedSCIMGroup(in.ID, in.IfMatch, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	edits, err := in.edits()
	if err != nil {
		return Reply{}, err
	}
	g, members := row.Value, scimMembership{}
	for i := range edits {
		if err := edits[i].keepsID(string(in.ID)); err != nil {
			return Reply{}, err
		}
		if err := edits[i].applyGroup(tx, &g, &members); err != nil {
			return Reply{}, err
		}
	}
	changed, err := tx.changeMembership(g.ID, &members)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.changeSCIMGroup(row, &g, changed); err != nil || in.Attributes == "" {
		return Reply{Outcome: NoContent}, err
	}
	shown, err := tx.scimGroupShown(&g, &in.SCIMBase, in.shows("members"))
	if err != nil {
		return Reply{}, err
	}
	return replySCIMGroup(Done, shown, &in.SCIMSelection)
}

// applyGroup applies an edit to a group, and notes one of its members.
func (e *scimEdit) applyGroup(tx *Tx, g *scimGroup, members *scimMembership) (err error) {
	p := &e.path
	if p.attribute == "members" {
		return e.applyMembers(tx, members)
	}
	if p.foreign || p.attribute == "schemas" || p.attribute == "id" || p.attribute == "meta" {
		return nil
	}
	if p.selects || p.sub != "" {
		return scimRefusal(scimInvalidPath, "A path names an attribute that groups do not have.")
	}
	if err := e.decode(); err != nil {
		return err
	}
	defer func() { e.value = nil }() // it is decoded for one edit at a time
	switch p.attribute {
	case "displayname":
		name, err := e.text(200)
		if err != nil {
			return err
		}
		if name == nil {
			return scimRefusal(scimMutability, "displayName can't be removed.")
		}
		g.DisplayName = *name
	case "externalid":
		g.ExternalID, err = e.text(255)
	default:
		err = scimRefusal(scimInvalidPath, "A path names an attribute that groups do not have.")
	}
	return err
}

// scimMembership is the effect that the operations of a PATCH have together on a group's
// members. It is known before the first member is changed. So the members are read once, and
// each user joins or leaves once, however many operations name them.
type scimMembership struct {
	replaced bool            // the users that join are all members
	joins    map[UserID]bool // false: the user leaves
	known    map[UserID]bool // users that are there
}

// replace removes all members.
func (m *scimMembership) replace() {
	m.replaced = true
	clear(m.joins)
}

func (m *scimMembership) set(who UserID, joins bool) {
	if m.joins == nil {
		m.joins = map[UserID]bool{}
	}
	m.joins[who] = joins
}

// addAll notes users that join, who must be there.
func (m *scimMembership) addAll(tx *Tx, who []UserID) error {
	if m.known == nil {
		m.known = map[UserID]bool{}
	}
	for _, one := range who {
		if !m.known[one] {
			there, err := tx.Has(scimUserTable, memberKey(nil, one))
			if err != nil {
				return fmt.Errorf("look for a provisioned user: %w", err)
			}
			if !there {
				return noSuchSCIMMember(one)
			}
			m.known[one] = true
		}
		m.set(one, true)
	}
	return nil
}

// changeMembership carries out a change of a group's members, and reports whether there is
// a difference.
func (tx *Tx) changeMembership(team TeamID, m *scimMembership) (changed bool, err error) {
	var join, leave []UserID
	for _, who := range slices.Sorted(maps.Keys(m.joins)) {
		if m.joins[who] {
			join = append(join, who)
		} else {
			leave = append(leave, who)
		}
	}
	if m.replaced {
		return tx.setSCIMMembers(team, join)
	}
	left, err := tx.leaveAll(team, leave)
	if err != nil {
		return false, err
	}
	joined, err := tx.joinAll(team, join)
	tx.limited = tx.limited && (joined || !left)
	return left || joined, err
}

// applyMembers applies an edit of the members: those selected by a filter, those in the
// value, or all.
func (e *scimEdit) applyMembers(tx *Tx, members *scimMembership) error {
	p := &e.path
	if p.sub != "" || p.selects && !e.remove {
		return scimRefusal(scimInvalidPath, "Members are added and replaced as a whole, and removed by value.")
	}
	if p.selects {
		same := true // no user has two ids
		for _, t := range p.terms {
			if t.attribute != "value" {
				return scimRefusal(scimInvalidPath, `A member is selected by value, as in members[value eq "id"].`)
			}
			same = same && t.value == p.terms[0].value
		}
		if same {
			members.set(UserID(p.terms[0].value), false)
		}
		return nil
	}
	if isNull(e.raw) {
		if e.add {
			return scimRefusal(scimInvalidValue, "There is no member to add.")
		}
		members.replace()
		return nil
	}
	who, err := e.memberIDs()
	if err != nil {
		return err
	}
	if e.remove {
		for _, one := range who {
			members.set(one, false)
		}
		return nil
	}
	if !e.add {
		members.replace()
	}
	return members.addAll(tx, who)
}

// memberIDs returns the ids of users in a value: an object, or an array of objects. They are decoded
// one after another, since there may be as many as fit into maxSCIMGroupBody.
func (e *scimEdit) memberIDs() (who []UserID, err error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(e.raw))
	many := dec.PeekKind() == '['
	if many {
		if _, err := dec.ReadToken(); err != nil {
			return nil, unreadableSCIM()
		}
	}
	for !many || dec.PeekKind() != ']' {
		if dec.PeekKind() != '{' {
			return nil, scimRefusal(scimInvalidValue, "members must be an array of objects.")
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, unreadableSCIM()
		}
		var one struct {
			Value string `json:"value"` // in any case, with encoding/json
		}
		if json.Unmarshal(value, &one) != nil || one.Value == "" || !indexable(one.Value) {
			return nil, scimRefusal(scimInvalidValue, "A member's value must be the id of a user.")
		}
		if who = append(who, UserID(one.Value)); !many {
			break
		}
	}
	return who, nil
}
