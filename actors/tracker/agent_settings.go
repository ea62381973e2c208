package tracker

import (
	"time"

	"switchyard/storage"
)

// AgentSettings are what the operator decides about agents' work, and about users'
// workspaces. Zero fields have their defaults.
type AgentSettings struct {
	// StallAfter is how long a running session may be silent before it counts as
	// stalled: 10 minutes.
	StallAfter time.Duration
	// LaneLife is how long a lane token lasts unused, where no lease or budget ends its
	// session: 7 days.
	LaneLife time.Duration
	// MaxActiveChildren is how many children of a session may be unfinished: 10.
	MaxActiveChildren int
	// WorkspacesPerUser is how many workspaces a user may make and keep; 0 sets no bound.
	WorkspacesPerUser int
	// PublicURL is where clients reach the service, without a slash at its end; with
	// none the addresses in answers are paths.
	PublicURL string
}

func (s *AgentSettings) stallAfter() time.Duration {
	if s == nil || s.StallAfter <= 0 {
		return 10 * time.Minute
	}
	return s.StallAfter
}

func (s *AgentSettings) laneLife() time.Duration {
	if s == nil || s.LaneLife <= 0 {
		return 7 * 24 * time.Hour
	}
	return s.LaneLife
}

func (s *AgentSettings) maxActiveChildren() int {
	if s == nil || s.MaxActiveChildren <= 0 {
		return 10
	}
	return s.MaxActiveChildren
}

func (s *AgentSettings) workspacesPerUser() int {
	if s == nil {
		return 0
	}
	return s.WorkspacesPerUser
}

// url gives the address of a path in a workspace.
func (s *AgentSettings) url(workspace storage.ID, path string) string {
	base := ""
	if s != nil {
		base = s.PublicURL
	}
	return base + "/workspaces/" + workspace.String() + path
}
