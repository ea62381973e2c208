package tracker

import "fmt"

// CreateTeamIn is a new team.
type CreateTeamIn struct {
	Name              string      `json:"name" rules:"required,min=1,max=200"`
	Key               string      `json:"key" rules:"required,min=1,max=10" form:"key"`
	IsPublic          Opt[bool]   `json:"isPublic" absent:"true"`
	ParentAutoClose   bool        `json:"parentAutoClose"`
	SubIssueAutoClose bool        `json:"subIssueAutoClose"`
	TriageAssigneeID  Opt[string] `json:"triageAssigneeId" rules:"nullable,min=1,max=255"`
	DefaultTemplateID Opt[string] `json:"defaultTemplateId" rules:"nullable,min=1,max=255"`
}

// CreateTeam adds a team. The creator of a private team becomes its first member, and
// so can see it.
var CreateTeam = NewCommand[CreateTeamIn, Team]("CreateTeam", "Create a team", Needs{Level: Write}, createTeam, Answers(Created), Audits(auditTeam))

func createTeam(tx *Tx, in *CreateTeamIn) (Reply, error) {
	key, _ := upperKey(in.Key)
	if err := tx.freeTeamKey(key); err != nil {
		return Reply{}, err
	}
	if tx.Caller.Role == RoleGuest && !in.IsPublic.Or(true) {
		return Reply{}, errGuestsTeam()
	}
	owner := UserID(tx.Caller.ID)
	if tx.Caller.Root {
		ws, err := tx.workspace()
		if err != nil {
			return Reply{}, err
		}
		owner = ws.Value.OwnerID
	}
	t, body, err := tx.addTeam(Team{
		Key: key, Name: in.Name, OwnerID: owner, IsPublic: in.IsPublic.Or(true),
		ParentAutoClose: in.ParentAutoClose, SubIssueAutoClose: in.SubIssueAutoClose,
		TriageAssigneeID: in.TriageAssigneeID.Ptr(), DefaultTemplateID: in.DefaultTemplateID.Ptr(),
	})
	if err != nil {
		return Reply{}, err
	}
	if !t.IsPublic {
		if _, err := tx.joinTeam(t.ID, owner); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: Created, Body: body}, nil
}

// errGuestsTeam is the error for a guest who would make a private team, or make a team private.
func errGuestsTeam() *Error {
	return Forbidden("A guest sees public teams only and can't make a private one.", "Ask a member or an admin of the workspace.")
}

// addTeam inserts a team and sets its id, workspace and times.
func (tx *Tx) addTeam(t Team) (*Team, []byte, error) {
	if err := tx.countRecord(teamTable, 1); err != nil {
		return nil, nil, err
	}
	id, err := tx.NewID()
	if err != nil {
		return nil, nil, err
	}
	t.ID, t.OrganizationID = TeamID(id.String()), WorkspaceID(tx.Workspace().String())
	t.CreatedAt, t.UpdatedAt = At(tx.now), At(tx.now)
	if err := tx.takeKey(id, t.Key); err != nil {
		return nil, nil, err
	}
	body, err := teams.Insert(tx, &t)
	if err != nil {
		return nil, nil, fmt.Errorf("add a team: %w", err)
	}
	return &t, body, nil
}
