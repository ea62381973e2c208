package tracker

import (
	"fmt"

	"switchyard/storage"
)

// sponsor returns the member who is responsible for what the caller makes: a user for
// itself, an agent or OAuth client through the maker of its credential, across any
// number of agents. It is empty for the operator, who is not a member.
func (c *Caller) sponsor() UserID {
	if c.Type == ActorUser {
		return UserID(c.ID)
	}
	return c.Sponsor
}

// endCredentialsOf ends the tokens and OAuth clients that a member made, directly or
// through agents: the member has seen their secrets, and could use them to get in
// again. Tokens that others made for the member stay: they have no access here without
// the membership, but may have it in other workspaces.
func (tx *Tx) endCredentialsOf(user UserID) error {
	prefix := actorKey(nil, sponsored, string(user))
	var keys [][]byte
	if err := tx.Rows(grantByActor, prefix, nil, func(fields, _ []byte) (bool, error) {
		keys = append(keys, append([]byte(nil), fields[len(prefix):]...))
		return true, nil
	}); err != nil {
		return fmt.Errorf("list a member's tokens: %w", err)
	}
	for _, key := range keys {
		if _, err := tx.endToken(key); err != nil {
			return err
		}
	}
	var clients []string
	if err := oauthSecrets.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		s, err := oauthSecrets.Decode(rec)
		if err == nil && s.Value.Sponsor == user {
			clients = append(clients, string(s.Value.ID))
		}
		return true, err
	}); err != nil {
		return fmt.Errorf("list a member's OAuth clients: %w", err)
	}
	for _, id := range clients {
		if _, err := deleteOAuthClient(tx, &RecordIn{ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// sponsoredRole limits the role of an agent or OAuth client to that of its sponsor, so
// that a former admin has no admins working for them.
func sponsoredRole(v *storage.View, p *Principal, role Role) (Role, error) {
	if p.Sponsor == "" {
		return role, nil
	}
	m, err := members.Get(v, memberKey(nil, p.Sponsor))
	if err != nil {
		return "", fmt.Errorf("read a member: %w", err)
	}
	switch {
	case m == nil: // its credentials ended with the membership
		return "", NotFound("workspace")
	case m.Value.Role == RoleGuest:
		return RoleGuest, nil
	case m.Value.Role == RoleMember:
		return RoleMember, nil
	}
	return role, nil
}
