package tracker

import (
	"fmt"

	"switchyard/storage"
)

// Identifiers as clients see them. Each has its own type, so that they can't be mixed
// up. User ids are opaque; the others are lower-case UUIDs.
type (
	// WorkspaceID is the id of a workspace.
	WorkspaceID string
	// TeamID is the id of a team of a workspace.
	TeamID string
	// UserID is the id of a person, the same in every workspace.
	UserID string
	// TokenID is the id of a workspace token.
	TokenID string
)

// Workspace is the unit of isolation: it has one key range and one writer.
type Workspace struct {
	ID            WorkspaceID `json:"id"`
	Name          string      `json:"name"`
	Slug          string      `json:"slug"`
	Key           *string     `json:"key"`
	OwnerID       UserID      `json:"ownerId"`
	DefaultTeamID *TeamID     `json:"defaultTeamId"`
	CreatedAt     Timestamp   `json:"createdAt"`
	UpdatedAt     Timestamp   `json:"updatedAt"`
}

// Settings are the settings of a workspace that its answers don't show.
type Settings struct {
	SSOEnforced bool `json:"ssoEnforced"`
}

// workspaces holds one row per workspace.
var workspaces = storage.Table[Workspace]{
	Changed: audited(auditWorkspace, func(w *Workspace) string { return string(w.ID) }),
	ID:      workspaceTable,
	Name:    "workspace",
	Key:     func(k storage.Key, _ *Workspace) storage.Key { return k },
	// A caller's rights end with the workspace.
	Dirty: DirtyAccess,
}

var _ = declareTable(&workspaces)

var settingsRows = storage.Table[Settings]{
	Changed: auditedHere[Settings](auditWorkspace, true),
	ID:      settingsTable,
	Name:    "settings",
	Key:     func(k storage.Key, _ *Settings) storage.Key { return k },
}

var _ = declareTable(&settingsRows)

// workspace returns the row of the workspace, or NOT_FOUND if it does not exist or is
// being erased.
func (v *View) workspace() (*storage.Row[Workspace], error) {
	row, err := workspaces.Get(v, nil)
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	if row == nil {
		return nil, NotFound("workspace")
	}
	return row, nil
}

// settings returns the workspace's settings; nil stands for the defaults.
func (v *View) settings() (*storage.Row[Settings], error) {
	row, err := settingsRows.Get(v, nil)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	return row, nil
}
