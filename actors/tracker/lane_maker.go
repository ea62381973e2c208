package tracker

import (
	"crypto/sha256"
	"fmt"

	"switchyard/storage"
)

// laneToken is what is kept of a lane token, with its session.
type laneToken struct {
	Hash  []byte    `json:"hash"`
	Maker LaneMaker `json:"maker"`
	// UsedAt is when the token was made or changed its session last; see useLane.
	UsedAt Timestamp `json:"usedAt"`
}

// LaneMaker is the credential that a lane token came from. The lane is good as long as
// the credential is, and its actor has the place in the workspace that it had then.
type LaneMaker struct {
	// Home is the workspace that keeps the credential; empty for the session's own.
	Home WorkspaceID `json:"home,omitempty"`
	// Token is the id of a workspace token, of the OAuth client where Client is set, or
	// the operator's.
	Token  string `json:"token"`
	Client bool   `json:"client,omitempty"`
	// Joined is since when the token's user was a member; empty for agents.
	Joined Timestamp `json:"joined,omitempty"`
	// Claimed lanes read their issue whatever else their maker may read: the claim
	// itself showed it.
	Claimed bool `json:"claimed,omitempty"`
}

// laneMaker is the caller as the maker of a lane.
func (tx *Tx) laneMaker(claimed bool) LaneMaker {
	c := tx.Caller
	m := LaneMaker{Token: c.Token, Client: c.Kind == OAuthAccessToken, Joined: c.Joined, Claimed: claimed}
	if c.Home != tx.Workspace() && c.Home != (storage.ID{}) {
		m.Home = WorkspaceID(c.Home.String())
	}
	return m
}

// Operator reports whether the operator's token made the lane.
func (m *LaneMaker) Operator() bool { return m.Token == OperatorPrincipal().Token }

// KeptIn is the workspace that keeps the credential of a lane in a workspace.
func (m *LaneMaker) KeptIn(workspace storage.ID) storage.ID {
	if home, ok := storage.ParseID(m.Home); ok {
		return home
	}
	return workspace
}

// Name stands for the maker of a lane in a workspace where callers are remembered by
// the hash of their credential.
func (m *LaneMaker) Name(workspace storage.ID) [sha256.Size]byte {
	home := m.KeptIn(workspace)
	return sha256.Sum256(append(append([]byte("lane maker "), home[:]...), m.Token...))
}

// AuthenticateMakerOp is AuthenticateMaker as an operation on the credential's home
// workspace. Its answer is a Principal.
var AuthenticateMakerOp = NewQuery[LaneMaker, Principal]("AuthenticateMaker", "Tell who made a lane", Needs{}, func(v *View, m *LaneMaker) (Reply, error) {
	p, err := AuthenticateMaker(&v.View, m)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &p)
})

// AuthenticateMaker tells who the maker of a lane is, from the workspace that keeps the
// credential. The error is UNAUTHORIZED when the credential is gone.
func AuthenticateMaker(home *storage.View, m *LaneMaker) (Principal, error) {
	id, ok := storage.ParseID(m.Token)
	if !ok {
		return Principal{}, Unauthorized()
	}
	if m.Client {
		client, err := oauthSecrets.Get(home, storage.Key(nil).Newest(id))
		if err != nil {
			return Principal{}, fmt.Errorf("read a lane's OAuth client: %w", err)
		}
		if client == nil {
			return Principal{}, Unauthorized()
		}
		return clientPrincipal(home.Workspace(), &client.Value), nil
	}
	grant, err := tokenGrants.Get(home, storage.Key(nil).Newest(id))
	if err != nil {
		return Principal{}, fmt.Errorf("read a lane's token: %w", err)
	}
	if grant == nil {
		return Principal{}, Unauthorized()
	}
	return tokenPrincipal(home, id, &grant.Value)
}

// MadeBy completes a caller with a lane token: it may do no more than the lane's maker,
// given as a caller in the same workspace, and sees its issue as long as they do. The
// error is UNAUTHORIZED when the maker left the workspace in between.
func (c *Caller) MadeBy(maker *Caller) error {
	m := &c.Lane.Maker
	if m.Joined != "" && m.Joined != maker.Joined {
		return Unauthorized()
	}
	may := maker.Permissions
	if m.Claimed {
		may |= PermIssuesRead
	}
	c.Permissions &= may
	c.Maker = maker
	return nil
}
