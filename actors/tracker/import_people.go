package tracker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"switchyard/storage"
)

func takeSettings(im *importing, data []byte) error {
	var s Settings
	if err := im.decode(data, &s); err != nil {
		return err
	}
	row, err := im.tx.settings()
	if err != nil {
		return err
	}
	if row == nil {
		_, err = settingsRows.Insert(im.tx, &s)
	} else {
		_, err = settingsRows.Update(im.tx, row, &s)
	}
	if err != nil {
		return fmt.Errorf("store the settings: %w", err)
	}
	return nil
}

// lookAtTeam makes the file's default team the workspace's. Issues wait no longer for the team.
func lookAtTeam(im *importing, t *Team) error {
	if upper, ok := upperKey(t.Key); !ok || upper != t.Key {
		return im.refuse("data.key must be 1 to 10 of A to Z and 0 to 9.")
	}
	id, _ := storage.ParseID(t.ID)
	im.record.Teams = slices.DeleteFunc(im.record.Teams, func(awaited TeamID) bool { return string(awaited) == id.String() })
	if err := im.tx.takeKey(id, t.Key); err != nil {
		return err
	}
	of := im.record.DefaultTeamID
	if t.IsDefault != (of != nil && *of == t.ID) {
		return im.refuse("data.isDefault contradicts the workspace's defaultTeamId.")
	}
	if !t.IsDefault {
		return nil
	}
	row, err := im.tx.workspace()
	if err != nil {
		return err
	}
	ws := row.Value
	ws.DefaultTeamID = &t.ID
	if _, err := workspaces.Update(im.tx, row, &ws); err != nil {
		return fmt.Errorf("set the default team: %w", err)
	}
	return nil
}

// takeMember adds a member. The workspace's owner is one already, and so may be others in
// a workspace that is filled. A member whom the file calls the owner of another workspace
// becomes an admin.
func takeMember(im *importing, data []byte) error {
	var m Member
	if err := im.decode(data, &m); err != nil {
		return err
	}
	if m.UserID == "" || isLonger(string(m.UserID), 255) {
		return im.refuse("data.userId must have 1 to 255 characters.")
	}
	ws, err := im.tx.workspace()
	if err != nil {
		return err
	}
	old, err := im.tx.member(m.UserID)
	if err != nil {
		return err
	}
	owner := m.UserID == ws.Value.OwnerID
	switch {
	case owner:
		m.Role = RoleOwner
	case m.Role == RoleOwner:
		m.Role = RoleAdmin
	}
	if old == nil {
		if err := restore(im, &members, &m); err != nil {
			return err
		}
		return im.tx.noteMember(m.UserID, true)
	}
	if !owner || !im.record.Operator {
		return nil
	}
	if _, err := members.Update(im.tx, old, &m); err != nil {
		return fmt.Errorf("store the owner: %w", err)
	}
	return nil
}

// takeIssuedUser notes that the workspace has created a user, whose credentials it may
// then make. Only the operator's word counts: an owner could name a user of others.
func takeIssuedUser(im *importing, data []byte) error {
	var u transferredUser
	if err := im.decode(data, &u); err != nil {
		return err
	}
	row, err := im.tx.member(u.UserID)
	if err != nil || row == nil || !im.record.Operator {
		return err
	}
	return im.tx.Writer().SetValue(issuedUserTable, memberKey(nil, u.UserID), []byte{1})
}

func lookAtTeamMember(im *importing, m *TeamMember) error {
	if m.UserID == "" || isLonger(string(m.UserID), 255) {
		return im.refuse("data.userId must have 1 to 255 characters.")
	}
	return im.needTeam(m.TeamID)
}

func lookAtSCIMUser(im *importing, u *scimUser) error {
	if u.ID == "" || isLonger(string(u.ID), 255) || u.UserName == "" {
		return im.refuse("data.id and data.userName must not be empty.")
	}
	err := im.tx.freeUserName(u.UserName, u.ID)
	if told := (*Error)(nil); errors.As(err, &told) {
		return im.refuse("data.userName: %s", told.Message)
	}
	return err
}

func lookAtSCIMGroup(im *importing, g *scimGroup) error {
	return im.needTeam(g.ID)
}

// noSecret returns a hash that no secret has: that of random bytes which nobody gets.
func (im *importing) noSecret() ([]byte, error) {
	hash := make([]byte, 32)
	if err := im.tx.Secret(hash); err != nil {
		return nil, fmt.Errorf("make a hash: %w", err)
	}
	return hash, nil
}

// takeToken adds a token that nobody can use: its secret stayed where it was made.
func takeToken(im *importing, data []byte) error {
	var t Token
	if err := im.decode(data, &t); err != nil {
		return err
	}
	permissions, _, unknown := ParsePermissions(t.Permissions)
	if len(unknown) > 0 || t.ActorID == "" || isLonger(t.ActorID, 255) || t.ActorType == ActorSystem {
		return im.refuse("data must have known permissions, and an actor of type user or agent.")
	}
	hash, err := im.noSecret()
	if err != nil {
		return err
	}
	g := tokenGrant{ID: t.ID, Hash: hash, ActorType: t.ActorType, ActorID: t.ActorID, Permissions: permissions, Confined: true, ExpiresAt: t.ExpiresAt}
	if t.CreatedByID != nil {
		g.CreatedByID = *t.CreatedByID
	}
	if err := restore(im, &tokens, &storedToken{ID: t.ID, OrganizationID: t.OrganizationID, Name: t.Name, Permissions: t.Permissions, CreatedAt: t.CreatedAt}); err != nil {
		return err
	}
	return restore(im, &tokenGrants, &g)
}

// takeOAuthClient adds a client whose secret nobody has.
func takeOAuthClient(im *importing, data []byte) error {
	var c OAuthClient
	if err := im.decode(data, &c); err != nil {
		return err
	}
	permissions, _, unknown := ParsePermissions(c.Permissions)
	if len(unknown) > 0 {
		return im.refuse("data.permissions has unknown words.")
	}
	hash, err := im.noSecret()
	if err != nil {
		return err
	}
	if c.RedirectURIs == nil {
		c.RedirectURIs = []string{}
	}
	if c.Scopes == nil {
		c.Scopes = []string{}
	}
	if err := restore(im, &oauthClients, &c); err != nil {
		return err
	}
	return restore(im, &oauthSecrets, &oauthSecret{ID: c.ID, Hash: hash, Permissions: permissions, Scopes: c.Scopes})
}

// takeSCIMConnection adds a connection whose token nobody has.
func takeSCIMConnection(im *importing, data []byte) error {
	var c SCIMConnection
	if err := im.decode(data, &c); err != nil {
		return err
	}
	hash, err := im.noSecret()
	if err != nil {
		return err
	}
	return restore(im, &scimConnections, &scimConnection{ID: c.ConnectionID, Scopes: c.Scopes, Hash: hash, CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt})
}

// takeAgent registers an agent, unless the workspace that is filled has it.
func takeAgent(im *importing, data []byte) error {
	var a Agent
	if err := im.decode(data, &a); err != nil {
		return err
	}
	if a.ID == "" || isLonger(string(a.ID), 255) {
		return im.refuse("data.id must have 1 to 255 characters.")
	}
	if err := im.checkAgent(&a); err != nil {
		return err
	}
	known, err := im.tx.agent(string(a.ID))
	if err != nil || known != nil {
		return err
	}
	return restore(im, &agents, &a)
}

// maxImportFields is the number of fields that an agent's sessions can have concurrency keys of.
const maxImportFields = 3

// checkAgent checks what the types of an agent's fields don't say.
func (im *importing) checkAgent(a *Agent) error {
	if most := a.MaxConcurrentSessions; most != nil && (*most < 1 || *most > maxConcurrent) {
		return im.refuse("data.maxConcurrentSessions must be 1 to %d, or null.", maxConcurrent)
	}
	words := ConcurrencyField("").EnumValues()
	unknown := func(f ConcurrencyField) bool { return !slices.Contains(words, string(f)) }
	if len(a.ConcurrencyBy) > maxImportFields || slices.ContainsFunc(a.ConcurrencyBy, unknown) {
		return im.refuse("data.concurrencyBy must be at most %d of %s.", maxImportFields, strings.Join(words, ", "))
	}
	return im.checkRetry(a.Retry)
}
