package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// Team is a group of people in a workspace that issues belong to.
type Team struct {
	ID                TeamID      `json:"id"`
	OrganizationID    WorkspaceID `json:"organizationId"`
	Key               string      `json:"key"`
	Name              string      `json:"name"`
	OwnerID           UserID      `json:"ownerId"`
	IsDefault         bool        `json:"isDefault"`
	IsPublic          bool        `json:"isPublic"`
	ParentAutoClose   bool        `json:"parentAutoClose"`
	SubIssueAutoClose bool        `json:"subIssueAutoClose"`
	TriageAssigneeID  *string     `json:"triageAssigneeId"`
	DefaultTemplateID *string     `json:"defaultTemplateId"`
	CreatedAt         Timestamp   `json:"createdAt"`
	UpdatedAt         Timestamp   `json:"updatedAt"`
}

// Flags of a team's record.
const (
	teamPrivate storage.Flags = 1 << iota
	teamDefault
)

var teams = storage.Table[Team]{
	Changed: audited(auditTeam, func(t *Team) string { return string(t.ID) }),
	ID:      teamTable,
	Name:    "team",
	Key: func(k storage.Key, t *Team) storage.Key {
		id, _ := storage.ParseID(t.ID)
		return k.DescID(id)
	},
	Head: func(t *Team) (flags storage.Flags, team storage.ID) {
		if !t.IsPublic {
			flags |= teamPrivate
		}
		if t.IsDefault {
			flags |= teamDefault
		}
		team, _ = storage.ParseID(t.ID)
		return flags, team
	},
	Indexes: []storage.Index[Team]{{
		ID:      teamKeyIndex,
		Name:    "key",
		Unique:  true,
		Entries: func(e *storage.Entries, t *Team) { e.Add(e.Key().Str(t.Key)) },
	}},
	Dirty: DirtyAccess,
}

var _ = declareTable(&teams, newestFirst, atMost(1_000, "teams"))

// teamByID returns a team, or nil if there is none or the caller may not see it.
func (v *View) teamByID(id TeamID) (*storage.Row[Team], error) {
	key, ok := storage.ParseID(id)
	if !ok || !v.Caller.CanViewTeam(key) {
		return nil, nil
	}
	return v.readTeam(storage.Key(nil).DescID(key))
}

// teamByKey returns a team by its key, case-insensitively, or nil if there is none or
// the caller may not see it.
func (v *View) teamByKey(key string) (*storage.Row[Team], error) {
	if strings.ContainsRune(key, 0) {
		return nil, nil
	}
	pk, err := teams.Lookup(v, teamKeyIndex, storage.Key(nil).Str(strings.ToUpper(key)))
	if err != nil || pk == nil {
		return nil, err
	}
	row, err := v.readTeam(pk)
	if err != nil || row == nil || !v.Caller.CanViewTeam(row.Team) {
		return nil, err
	}
	return row, nil
}

func (v *View) readTeam(pk []byte) (*storage.Row[Team], error) {
	row, err := teams.Get(v, pk)
	if err != nil {
		return nil, fmt.Errorf("read a team: %w", err)
	}
	return row, nil
}
