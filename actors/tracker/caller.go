package tracker

import (
	"slices"
	"time"

	"switchyard/storage"
)

// ActorType is the kind of an actor.
type ActorType string

// The kinds of actors.
const (
	ActorUser   ActorType = "user"
	ActorAgent  ActorType = "agent"
	ActorSystem ActorType = "system"
)

// EnumValues implements Enumerated.
func (ActorType) EnumValues() []string {
	return enumTexts([]ActorType{ActorUser, ActorAgent, ActorSystem})
}

// Role is a member's role in a workspace (Decision 11).
type Role string

// The roles, from the most to the least.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
	RoleGuest  Role = "guest"
)

var rolesDown = []Role{RoleOwner, RoleAdmin, RoleMember, RoleGuest}

// EnumValues implements Enumerated.
func (Role) EnumValues() []string { return enumTexts(rolesDown) }

// atMost returns the lower of two roles.
func (r Role) atMost(most Role) Role {
	if slices.Index(rolesDown, most) > slices.Index(rolesDown, r) {
		return most
	}
	return r
}

// Principal is the user or agent that a credential stands for, in any workspace.
type Principal struct {
	Type        ActorType
	ID          string         // user or agent id
	Kind        CredentialKind // of the credential; empty for the operator's
	Token       string         // id of the credential; scopes idempotency keys
	Home        storage.ID     // the workspace that stores the credential
	Permissions Permissions
	Root        bool // the operator's token
	// Confined principals have no access outside their home workspace: agents, and
	// users whose token was made by another user, or by such a token elsewhere.
	Confined bool
	// Expires is the time when the credential ends; zero: never. A cached principal
	// must be checked against it at each use.
	Expires time.Time
	// Used is the time of the last recorded use of a workspace token; zero: never.
	Used time.Time
	// Sponsor is the member responsible for a token or an OAuth client: the user who made
	// it, or the sponsor of the agent that made it. The credential ends when the sponsor
	// leaves the workspace that stores it, and its role there is no higher than the
	// sponsor's.
	Sponsor UserID
	// Via are further members with the effect of a sponsor: those whom the credential
	// depended on that made this one.
	Via []UserID `json:",omitempty"`
	// SCIM holds the scopes of a SCIM connection, which gives access to its own
	// workspace's SCIM base only; 0 for other credentials.
	SCIM SCIMScopes
	// Lane is the session that a lane token gives access to, and nothing else; nil for
	// other credentials.
	Lane *Lane
}

// Expired reports whether the credential has ended.
func (p *Principal) Expired(now time.Time) bool {
	return !p.Expires.IsZero() && !now.Before(p.Expires)
}

// Lane is the session and issue that a lane token gives access to.
type Lane struct {
	Session, Issue storage.ID
	// Hash is the hash of the token's secret. Each operation looks up whether it is
	// still valid.
	Hash  [32]byte
	Maker LaneMaker
}

// Caller is a principal in one workspace, with its rights there.
type Caller struct {
	Principal
	Role Role
	// Level is the right of the role, limited by the permissions.
	Level Level
	// Hidden are the private teams that the caller can't see; nil for most callers.
	Hidden map[storage.ID]struct{}
	// Teams are the teams that the caller is a member of, for grants to teams; nil for
	// admins, who need no grants.
	Teams map[storage.ID]struct{}
	// Joined is the time when a user became a member.
	Joined Timestamp
	// Importing is set for a caller who is not an admin, in a workspace whose import has not
	// ended: what hides issues from the caller may be in lines that are still to come.
	Importing bool
	// Maker is the caller that created the session of a lane token; see MadeBy.
	Maker *Caller
	// RequestsPerSecond is the workspace's own limit on requests; nil: the operator's.
	RequestsPerSecond *int64
}

// System is the service itself, for timers and the steps of workflows.
var System = Caller{Principal: Principal{Type: ActorSystem, ID: "system"}, Role: RoleOwner, Level: Admin}

// CanViewTeam reports whether the caller may see records of a team; everybody may see those of
// the zero team.
func (c *Caller) CanViewTeam(team storage.ID) bool {
	if len(c.Hidden) == 0 {
		return true
	}
	_, hidden := c.Hidden[team]
	return !hidden
}

// Allows reports whether the caller has the right that an operation needs in the
// workspace.
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
