package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// OperatorPrincipal returns the principal of the root token (Decision 12).
func OperatorPrincipal() Principal {
	return Principal{Type: ActorSystem, ID: "root", Token: "root", Permissions: permissionWords["admin"], Root: true}
}

// AuthenticateOp runs Authenticate on the credential's home workspace, at the node that
// serves it. Its answer is a Principal.
var AuthenticateOp = NewQuery[Credential, Principal]("Authenticate", "Identify the caller of a credential", Needs{}, func(v *View, c *Credential) (Reply, error) {
	p, err := Authenticate(&v.View, *c)
	if err != nil {
		return Reply{}, err
	}
	body, err := json.Marshal(p)
	if err != nil {
		return Reply{}, fmt.Errorf("encode a principal: %w", err)
	}
	return Reply{Body: body}, nil
})

// Authenticate returns the principal of a credential. v reads its home workspace. The
// error is UNAUTHORIZED if the credential is unknown or was deleted. Authenticate does
// not check expiry: see Principal.Expired.
func Authenticate(v *storage.View, c Credential) (Principal, error) {
	arriving, err := isArriving(v)
	if err != nil {
		return Principal{}, err
	}
	if arriving { // its credentials are still those of another cluster
		return Principal{}, Unauthorized()
	}
	switch c.Kind {
	case WorkspaceToken:
	case LaneToken:
		return authenticateLane(v, c)
	case OAuthAccessToken:
		return authenticateAccess(v, c)
	case SCIMToken:
		return authenticateSCIM(v, c)
	default:
		return Principal{}, Unauthorized()
	}
	grant, err := tokenGrants.Get(v, storage.Key(nil).DescID(c.ID))
	if err != nil {
		return Principal{}, fmt.Errorf("read a token: %w", err)
	}
	if grant == nil || !c.matches(grant.Value.Hash) {
		return Principal{}, Unauthorized()
	}
	return tokenPrincipal(v, c.ID, &grant.Value)
}

// tokenPrincipal returns the principal of a workspace token.
func tokenPrincipal(home *storage.View, id storage.ID, g *tokenGrant) (p Principal, err error) {
	p = Principal{
		Type: g.ActorType, ID: g.ActorID, Kind: WorkspaceToken, Token: id.String(), Home: home.Workspace(),
		Permissions: g.Permissions, Confined: g.Confined, Sponsor: g.Sponsor, Via: g.Via,
	}
	if g.ExpiresAt != nil {
		p.Expires = g.ExpiresAt.Time()
	}
	p.Used, err = tokenUsed(home, id)
	return p, err
}

// stillStored returns UNAUTHORIZED if the workspace that stored a credential has it no longer.
// It takes away the permissions that the credential's OAuth client has lost.
func (p *Principal) stillStored(home *storage.View) error {
	if p.SCIM != 0 {
		id, _ := storage.ParseID(p.Token)
		there, err := home.Has(scimConnectionTable, storage.Key(nil).DescID(id))
		if err != nil {
			return fmt.Errorf("look for a SCIM connection: %w", err)
		}
		if !there {
			return Unauthorized()
		}
		return nil
	}
	stored, err := AuthenticateMaker(home, &LaneMaker{Token: p.Token, Client: p.Kind == OAuthAccessToken})
	if err != nil {
		return err
	}
	p.Permissions &= stored.Permissions
	return nil
}

// ResolveCaller returns the rights of a principal in the workspace that v reads. The
// error is NOT_FOUND if the workspace does not exist or the principal is not a member,
// so that the two can't be told apart (Decision 11).
func ResolveCaller(v *storage.View, p Principal) (Caller, error) {
	there, err := workspaces.Record(v, nil, func(storage.Record) error { return nil })
	if err != nil {
		return Caller{}, fmt.Errorf("read the workspace: %w", err)
	}
	if !there {
		return Caller{}, NotFound("workspace")
	}
	if p.Root {
		return Caller{Principal: p, Role: RoleOwner, Level: Admin}, nil
	}
	if p.Confined && p.Home != v.Workspace() {
		return Caller{}, NotFound("workspace")
	}
	limits, err := readLimits(v)
	if err != nil {
		return Caller{}, err
	}
	if p.SCIM != 0 {
		// A SCIM principal has no permissions: its scopes alone decide.
		return Caller{Principal: p, Role: RoleAdmin, Level: Admin, RequestsPerSecond: limits.RequestsPerSecond}, nil
	}
	c := Caller{Principal: p, RequestsPerSecond: limits.RequestsPerSecond}
	if err := c.setRole(v); err != nil {
		return Caller{}, err
	}
	c.Level = min(c.roleLevel(), p.Permissions.level())
	if p.Lane != nil {
		return c, nil // a lane token gives access to its issue whatever the team
	}
	if c.Level >= Admin {
		return c, nil // admins see every team
	}
	imported, err := runningImport(v)
	if err != nil {
		return Caller{}, err
	}
	c.Importing = imported != nil
	if err := eachTeamOf(v, UserID(c.ID), func(team storage.ID) {
		if c.Teams == nil {
			c.Teams = map[storage.ID]struct{}{}
		}
		c.Teams[team] = struct{}{}
	}); err != nil {
		return Caller{}, err
	}
	c.Hidden, err = hiddenTeams(v, &c)
	return c, err
}

// setRole sets the caller's role, and for a user the time when it became a member.
func (c *Caller) setRole(v *storage.View) (err error) {
	switch c.Type {
	case ActorUser:
		m, err := members.Get(v, memberKey(nil, UserID(c.ID)))
		if err != nil {
			return fmt.Errorf("read a member: %w", err)
		}
		if m == nil {
			return NotFound("workspace")
		}
		c.Role, c.Joined = m.Value.Role, m.Value.CreatedAt
		if c.Home == v.Workspace() {
			c.Role, err = sponsoredRole(v, &c.Principal, c.Role)
		}
		return err
	case ActorAgent:
		role := RoleMember
		if c.Permissions.Includes(PermAdmin) {
			role = RoleAdmin
		}
		c.Role, err = sponsoredRole(v, &c.Principal, role)
		return err
	}
	return NotFound("workspace")
}

// hiddenTeams returns the private teams that a caller who is not an admin may not see:
// all for guests, and those that the caller is not a member of for others.
func hiddenTeams(v *storage.View, c *Caller) (hidden map[storage.ID]struct{}, err error) {
	err = teams.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		if rec.Flags()&teamPrivate == 0 {
			return true, nil
		}
		if _, member := c.Teams[rec.Team()]; member && c.Role != RoleGuest {
			return true, nil
		}
		if hidden == nil {
			hidden = map[storage.ID]struct{}{}
		}
		hidden[rec.Team()] = struct{}{}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the teams: %w", err)
	}
	return hidden, nil
}
