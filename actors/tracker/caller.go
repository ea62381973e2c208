package tracker

import (
	"time"

	"switchyard/storage"
)

// ActorType says what kind of being acts.
type ActorType string

// The kinds of actors.
const (
	ActorUser   ActorType = "user"
	ActorAgent  ActorType = "agent"
	ActorSystem ActorType = "system"
)

// Role of a member in a workspace (Decision 11).
type Role string

// The roles, from the most to the least.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
	RoleGuest  Role = "guest"
)

// Principal is who a credential stands for, wherever it is used.
type Principal struct {
	Type        ActorType
	ID          string         // user or agent id
	Kind        CredentialKind // of the credential; empty for the operator's
	Token       string         // id of the credential; scopes idempotency keys
	Home        storage.ID     // the workspace that keeps the credential
	Permissions Permissions
	Root        bool // the operator's token
	// Confined principals are nobody outside their home: agents, and users whose
	// token somebody else made for them.
	Confined bool
	// Expires is when the credential ends; zero: never. Whoever remembers a principal
	// has to look at it each time.
	Expires time.Time
	// Used is when the use of a workspace token was noted last; zero: never.
	Used time.Time
	// Sponsor is the member who answers for an agent's token or an OAuth client: the
	// user who made it, or who answers for the agent that made it. The credential ends
	// when the sponsor leaves the workspace, and its role is no higher than theirs.
	Sponsor UserID
	// SCIM are the scopes of a SCIM connection, which opens nothing but its own
	// workspace's SCIM base; 0 for other credentials.
	SCIM SCIMScopes
	// Lane is what a lane token opens, and all it opens; nil for other credentials.
	Lane *Lane
}

// Expired tells whether the credential has ended.
func (p *Principal) Expired(now time.Time) bool {
	return !p.Expires.IsZero() && !now.Before(p.Expires)
}

// Lane is a session as the bearer of one of its lane tokens has it.
type Lane struct {
	Session, Issue storage.ID
	// Hash is that of the token's secret: whether it is still good is looked up with
	// each operation.
	Hash  [32]byte
	Maker LaneMaker
}

// Caller is a principal in one workspace: what it may do and see there.
type Caller struct {
	Principal
	Role Role
	// Level is the right its role gives, capped by its permissions.
	Level Level
	// Hidden are the private teams it can't see; nil for most.
	Hidden map[storage.ID]struct{}
	// Teams are those it is a member of, for grants to teams; nil for admins, who
	// need none.
	Teams map[storage.ID]struct{}
	// Joined is since when a user is a member.
	Joined Timestamp
	// Maker is who made the lane of a caller with a lane token; see MadeBy.
	Maker *Caller
}

// System is the service itself, for timers and the steps of workflows.
var System = Caller{Principal: Principal{Type: ActorSystem, ID: "system"}, Role: RoleOwner, Level: Admin}

// Sees tells whether the caller may see what belongs to a team; the zero team is
// everyone's.
func (c *Caller) Sees(team storage.ID) bool {
	if len(c.Hidden) == 0 {
		return true
	}
	_, hidden := c.Hidden[team]
	return !hidden
}

// Allows tells whether the caller holds what an operation needs in the workspace.
func (c *Caller) Allows(n Needs) bool {
	switch n.Level {
	case Public, Identified:
		return true
	case Operator:
		return c.Root
	}
	if c.Root {
		return true
	}
	return c.roleLevel() >= n.Level && c.Permissions.Allow(n)
}

func (c *Caller) roleLevel() Level {
	switch c.Role {
	case RoleOwner, RoleAdmin:
		return Admin
	case RoleMember, RoleGuest:
		return Write
	}
	return Public
}
