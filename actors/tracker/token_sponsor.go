package tracker

import (
	"fmt"

	"switchyard/storage"
)

// sponsor is the member who answers for what the caller makes: people for themselves,
// agents and OAuth clients through the maker of their credential, however many agents
// lie between. It is empty for the operator, who is no member.
func (c *Caller) sponsor() UserID {
	if c.Type == ActorUser {
		return UserID(c.ID)
	}
	return c.Sponsor
}

// endCredentialsOf ends what a member leaves behind: the tokens and OAuth clients that
// they made, themselves or through agents. Each secret was shown to them, so each would
// let them in again. A token that somebody else made for them acts for nobody here as
// long as they are no member, and may be their way into other workspaces.
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

// sponsoredRole caps the role of an agent or OAuth client by that of the member who
// answers for it: who is no admin any more has no admins working for them.
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
