package tracker

import (
	"bytes"
	"fmt"
	"slices"

	"switchyard/storage"
)

// maxVia bounds Principal.Via. Each entry is a member to read for a request.
const maxVia = 8

// sponsor returns the member who is responsible for what the caller makes: a user for
// itself, an agent or OAuth client through the maker of its credential, across any
// number of agents. It is empty for the operator, who is not a member.
func (c *Caller) sponsor() UserID {
	if c.Type == ActorUser {
		return UserID(c.ID)
	}
	return c.Sponsor
}

// sponsors returns the members responsible for the credential, apart from the user that
// it stands for.
func (p *Principal) sponsors() []UserID {
	all := make([]UserID, 0, 1+len(p.Via))
	for _, m := range append([]UserID{p.Sponsor}, p.Via...) {
		if m != "" && (p.Type != ActorUser || string(m) != p.ID) {
			all = append(all, m)
		}
	}
	return all
}

// responsible returns the sponsor of a credential that the caller makes, and the other
// members that it depends on: those whom the caller's own credential depends on, who may
// have its secret, too. A credential that another workspace stores has none of these,
// because its sponsors need not be members here; see confines.
func (tx *Tx) responsible() (sponsor UserID, via []UserID, err error) {
	c := tx.Caller
	sponsor = c.sponsor()
	if c.Home != tx.Workspace() {
		return sponsor, nil, nil
	}
	for _, m := range c.sponsors() {
		if m != sponsor && !slices.Contains(via, m) {
			via = append(via, m)
		}
	}
	if len(via) > maxVia {
		return "", nil, Forbidden(fmt.Sprintf("The new credential would depend on more than %d members besides its maker.", maxVia),
			"Use a token that its user made, or that the owner or the operator made for the user.")
	}
	return sponsor, via, nil
}

// confines reports whether the tokens that the caller makes for users are good in this
// workspace alone. Those of a confined caller are. If another workspace stores the caller's
// credential, they can't depend on its sponsors, who may have their secrets, too: they must
// not give access to that workspace after a sponsor has left it.
func (tx *Tx) confines() bool {
	c := tx.Caller
	return c.Confined || c.Home != tx.Workspace() && len(c.sponsors()) > 0
}

// endCredentialsOf ends the tokens and OAuth clients that a member made, directly or
// through other credentials, or as many as fit into the batch: it reports whether some are
// left. The member has seen their secrets, and could use them to get in again. Tokens that
// others made for the member stay: they have no access here without the membership, but may
// have it in other workspaces.
//
// The caller's own credential may be among them. It ends last, because each batch looks at the
// caller's rights again, and because the caller has to repeat a request that fails between two
// batches.
func (tx *Tx) endCredentialsOf(user UserID, work *workBudget) (more bool, err error) {
	own, err := tx.ownTokens()
	if err != nil {
		return false, err
	}
	var last [][]byte
	for _, list := range []func(UserID, int) ([][]byte, error){tx.sponsoredTokens, tx.tokensVia} {
		keys, err := list(user, work.left+1+len(own))
		if err != nil {
			return false, fmt.Errorf("list a member's tokens: %w", err)
		}
		for _, key := range keys {
			if slices.ContainsFunc(own, func(k []byte) bool { return bytes.Equal(k, key) }) {
				last = append(last, key)
				continue
			}
			if work.spent() {
				return true, nil
			}
			if _, err := tx.endToken(key); err != nil {
				return false, err
			}
		}
	}
	clients, err := tx.sponsoredClients(user)
	if err != nil {
		return false, fmt.Errorf("list a member's OAuth clients: %w", err)
	}
	if i := slices.Index(clients, tx.Caller.Token); i >= 0 { // such a caller has no own tokens
		clients = append(slices.Delete(clients, i, i+1), tx.Caller.Token)
	}
	for _, id := range clients {
		if work.spent() {
			return true, nil
		}
		if _, err := deleteOAuthClient(tx, &RecordIn{ID: id}); err != nil {
			return false, err
		}
	}
	for range last { // a console session ends in the batch of the token that opened it
		if work.spent() {
			return true, nil
		}
	}
	for _, key := range last {
		if _, err := tx.endToken(key); err != nil {
			return false, err
		}
	}
	return false, nil
}

// ownTokens returns the keys of the caller's token and, if that is a console session, of the
// token that opened it, with which the session ends.
func (tx *Tx) ownTokens() (keys [][]byte, err error) {
	if tx.Caller.Kind != WorkspaceToken {
		return nil, nil
	}
	key := tokenKey(nil, TokenID(tx.Caller.Token))
	grant, err := tokenGrants.Get(tx, key)
	if err != nil {
		return nil, fmt.Errorf("read the caller's token: %w", err)
	}
	keys = append(keys, key)
	if grant != nil && grant.Value.OpenedWith != "" {
		keys = append(keys, tokenKey(nil, grant.Value.OpenedWith))
	}
	return keys, nil
}

// sponsoredTokens returns the keys of at most limit tokens that have a member as their
// sponsor.
func (tx *Tx) sponsoredTokens(user UserID, limit int) ([][]byte, error) {
	return tx.rowKeys(grantByActor, actorKey(nil, sponsored, string(user)), limit)
}

// tokensVia returns the keys of at most limit tokens that depend on a member besides their
// sponsor.
func (tx *Tx) tokensVia(user UserID, limit int) (keys [][]byte, err error) {
	err = tokenGrants.Scan(tx, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		if !bytes.Contains(rec.JSON(), []byte(`"via":`)) {
			return true, nil
		}
		g, err := tokenGrants.Decode(rec)
		if err == nil && slices.Contains(g.Value.Via, user) {
			keys = append(keys, bytes.Clone(pk))
		}
		return len(keys) < limit, err
	})
	return keys, err
}

// sponsoredClients returns the OAuth clients that depend on a member.
func (tx *Tx) sponsoredClients(user UserID) (ids []string, err error) {
	err = oauthSecrets.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		s, err := oauthSecrets.Decode(rec)
		if err == nil && (s.Value.Sponsor == user || slices.Contains(s.Value.Via, user)) {
			ids = append(ids, string(s.Value.ID))
		}
		return true, err
	})
	return ids, err
}

// sponsoredRole limits the role of a credential to those of its sponsors, so that a former
// admin has no admins working for them, and acts as nobody else.
func sponsoredRole(v *storage.View, p *Principal, role Role) (Role, error) {
	for _, sponsor := range p.sponsors() {
		m, err := members.Get(v, memberKey(nil, sponsor))
		if err != nil {
			return "", fmt.Errorf("read a member: %w", err)
		}
		if m == nil { // the credential ended with the membership
			return "", NotFound("workspace")
		}
		role = role.atMost(m.Value.Role)
	}
	return role, nil
}
