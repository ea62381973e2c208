package tracker

import (
	"slices"

	json "github.com/goccy/go-json"

	"fmt"

	"switchyard/storage"
)

// TeamMember is the membership of a person or agent in a team.
type TeamMember struct {
	OrganizationID WorkspaceID `json:"organizationId"`
	TeamID         TeamID      `json:"teamId"`
	UserID         UserID      `json:"userId"`
	CreatedAt      Timestamp   `json:"createdAt"`
}

var teamMembers = storage.Table[TeamMember]{
	Changed: auditTeamMember,
	ID:      teamMemberTable,
	Name:    "teamMember",
	Key: func(k storage.Key, m *TeamMember) storage.Key {
		id, _ := storage.ParseID(m.TeamID)
		return teamMemberKey(k, id, m.UserID)
	},
	Indexes: []storage.Index[TeamMember]{{
		ID:   teamMemberByWho,
		Name: "who",
		Entries: func(e *storage.Entries, m *TeamMember) {
			e.Add(memberKey(e.Key(), m.UserID))
		},
	}},
	Dirty: DirtyAccess,
}

var _ = declareTable(&teamMembers)

func teamMemberKey(k storage.Key, team storage.ID, user UserID) storage.Key {
	return memberKey(k.ID(team), user)
}

// eachTeamOf calls fn for every team that a person or agent is a member of.
func eachTeamOf(v *storage.View, who UserID, fn func(team storage.ID)) error {
	if !indexable(string(who)) {
		return nil
	}
	prefix := memberKey(nil, who)
	err := v.Rows(teamMemberByWho, prefix, nil, func(fields, _ []byte) (bool, error) {
		rest := fields[len(prefix):] // the primary key
		if len(rest) < len(storage.ID{}) {
			return false, fmt.Errorf("%w: team member entry of %d bytes", storage.ErrFormat, len(fields))
		}
		fn(storage.ID(rest[:16]))
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read the teams of a member: %w", err)
	}
	return nil
}

// joinTeam adds a member to a team, unless it is one already.
func (tx *Tx) joinTeam(team TeamID, who UserID) ([]byte, error) {
	id, _ := storage.ParseID(team)
	old, err := teamMembers.Get(tx, teamMemberKey(nil, id, who))
	if err != nil {
		return nil, fmt.Errorf("read a team's member: %w", err)
	}
	m := TeamMember{OrganizationID: WorkspaceID(tx.Workspace().String()), TeamID: team, UserID: who, CreatedAt: At(tx.order)}
	if old != nil {
		m = old.Value
		reply, err := jsonReply(Done, m)
		return reply.Body, err
	}
	body, err := teamMembers.Insert(tx, &m)
	if err != nil {
		return nil, fmt.Errorf("add a team's member: %w", err)
	}
	tx.wakeClaimers()
	return body, nil
}

// leaveTeam removes a member from a team; false if there was none.
func (tx *Tx) leaveTeam(team storage.ID, who UserID) (bool, error) {
	row, err := teamMembers.Get(tx, teamMemberKey(nil, team, who))
	if err != nil {
		return false, fmt.Errorf("read a team's member: %w", err)
	}
	if row == nil {
		return false, nil
	}
	if err := teamMembers.Delete(tx, row); err != nil {
		return false, fmt.Errorf("remove a team's member: %w", err)
	}
	return true, nil
}

// emptyTeam removes every member of a team.
func (tx *Tx) emptyTeam(team storage.ID) error {
	var all []UserID
	err := teamMembers.Scan(tx, team[:], nil, func(pk []byte, _ storage.Record) (bool, error) {
		who, _, ok := storage.CutStr(pk[len(team):])
		if !ok {
			return false, fmt.Errorf("%w: team member of %d bytes", storage.ErrFormat, len(pk))
		}
		all = append(all, UserID(who))
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read a team's members: %w", err)
	}
	for _, who := range all {
		if _, err := tx.leaveTeam(team, who); err != nil {
			return err
		}
	}
	return nil
}

// auditTeamMember makes a change of a team's members an act on the team.
func auditTeamMember(w storage.Writer, old, new *TeamMember) error {
	tx, ok := w.(*Tx)
	if !ok || !slices.Contains(tx.audits, auditTeam) || (old == nil) == (new == nil) {
		return nil
	}
	m, change := new, FromTo{json.RawMessage("false"), json.RawMessage("true")}
	if new == nil {
		m, change = old, FromTo{change.To, change.From}
	}
	tx.audit(auditTeam, actUpdated, string(m.TeamID), map[string]FromTo{"members." + string(m.UserID): change})
	return nil
}
