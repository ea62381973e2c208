package tracker

import "fmt"

// maxSCIMGroupBody limits the body of a group, in bytes: it fits as many members as a
// workspace can have, with the attributes that providers send for each.
const maxSCIMGroupBody = 4 << 20

// SCIMGroupMemberIn identifies a user of a group.
type SCIMGroupMemberIn struct {
	Value string      `json:"value" rules:"required,min=1,max=255"`
	Type  Opt[string] `json:"type" rules:"nullable,max=255"`
}

// SCIMGroupIn is a complete group.
type SCIMGroupIn struct {
	DisplayName string                   `json:"displayName" rules:"required,min=1,max=200"`
	ExternalID  Opt[string]              `json:"externalId" rules:"nullable,max=255"`
	Members     Opt[[]SCIMGroupMemberIn] `json:"members" rules:"nullable,max=10000"`
}

// Validate checks what the tags can't express.
func (in *SCIMGroupIn) Validate(faults *Faults) {
	for i, m := range in.Members.Value {
		if kind := m.Type.Or(""); kind != "" && kind != "User" && kind != "user" {
			faults.Add(fmt.Sprintf("members[%d].type", i), "Must be User: a group can not contain groups.")
		}
	}
}

func (in *SCIMGroupIn) members() []UserID {
	var ids []UserID
	for _, m := range in.Members.Or(nil) {
		ids = append(ids, UserID(m.Value))
	}
	return ids
}

// CreateSCIMGroupIn is a new group.
type CreateSCIMGroupIn struct {
	SCIMBase
	SCIMSelection
	SCIMGroupIn
}

// CreateSCIMGroup makes a public team for a group. The workspace's owner owns the team.
var CreateSCIMGroup = NewCommand[CreateSCIMGroupIn, SCIMGroup]("CreateScimGroup", "Provision a group", Needs{Level: Read}, createSCIMGroup, SCIMScope(SCIMGroupsWrite), BodyUpTo(maxSCIMGroupBody), Answers(Created), Audits(auditTeam))

func createSCIMGroup(tx *Tx, in *CreateSCIMGroupIn) (Reply, error) {
	if err := tx.freeDisplayName(in.DisplayName, ""); err != nil {
		return Reply{}, err
	}
	if err := tx.countRecord(scimGroupTable, 1); err != nil {
		return Reply{}, err
	}
	ws, err := tx.workspace()
	if err != nil {
		return Reply{}, err
	}
	key, err := tx.scimTeamKey(in.DisplayName)
	if err != nil {
		return Reply{}, err
	}
	t, _, err := tx.addTeam(Team{Key: key, Name: in.DisplayName, OwnerID: ws.Value.OwnerID, IsPublic: true})
	if err != nil {
		return Reply{}, err
	}
	g := scimGroup{ID: t.ID, DisplayName: in.DisplayName, ExternalID: scimText(in.ExternalID), CreatedAt: At(tx.order), UpdatedAt: At(tx.order)}
	if _, err := scimGroups.Insert(tx, &g); err != nil {
		return Reply{}, fmt.Errorf("add a provisioned group: %w", err)
	}
	if _, err := tx.joinAll(t.ID, in.members()); err != nil {
		return Reply{}, err
	}
	shown, err := tx.scimGroupShown(&g, &in.SCIMBase, true)
	if err != nil {
		return Reply{}, err
	}
	return replySCIMGroup(Created, shown, &in.SCIMSelection)
}
