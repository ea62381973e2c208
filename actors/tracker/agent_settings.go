package tracker

import (
	"time"

	"switchyard/storage"
)

// AgentSettings are the operator's settings for agents' work and for users' workspaces.
// A zero field means the default.
type AgentSettings struct {
	// StallAfter is the time without activity after which a running session is stalled;
	// default 10 minutes.
	StallAfter time.Duration
	// LaneLife is the time that a lane token lasts unused if neither a lease nor a
	// budget ends its session; default 7 days.
	LaneLife time.Duration
	// MaxActiveChildren is the number of children of a session that may be unfinished;
	// default 10.
	MaxActiveChildren int
	// WorkspacesPerUser is the number of workspaces that a user may own; 0 for no
	// limit.
	WorkspacesPerUser int
	// AuditRetention is the time for which entries of the audit are kept; default 9600 hours.
	AuditRetention time.Duration
	// SweepInterval is the time between two sweeps of a workspace's retention; default 1 hour.
	SweepInterval time.Duration
	// PublicURL is the address at which clients reach the service, without a slash at
	// its end; if it is empty, the addresses in answers are paths.
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

// url returns the address of a path in a workspace.
func (s *AgentSettings) url(workspace storage.ID, path string) string {
	base := ""
	if s != nil {
		base = s.PublicURL
	}
	return base + "/workspaces/" + workspace.String() + path
}
