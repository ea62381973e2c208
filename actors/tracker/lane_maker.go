package tracker

import (
	"crypto/sha256"
	"fmt"

	"switchyard/storage"
)

// laneToken is the stored part of a lane token, in its session's record.
type laneToken struct {
	Hash  []byte    `json:"hash"`
	Maker LaneMaker `json:"maker"`
	// UsedAt is the time when the token was made or last changed its session; see
	// useLane.
	UsedAt Timestamp `json:"usedAt"`
}

// LaneMaker identifies the credential that a lane token was made with. The token is
// valid as long as that credential is, and as long as its user has not left the
// workspace since.
type LaneMaker struct {
	// Home is the workspace that stores the credential; empty for the session's own.
	Home WorkspaceID `json:"home,omitempty"`
	// Token is the id of a workspace token, of an OAuth client if Client is set, or of
	// the operator's token.
	Token  string `json:"token"`
	Client bool   `json:"client,omitempty"`
	// Joined is the time when the token's user became a member; empty for agents.
	Joined Timestamp `json:"joined,omitempty"`
	// Claimed is set for sessions that were claimed. The claim has shown the issue to
	// the maker, so the lane may read it even if its maker's permissions do not include
	// issues.
	Claimed bool `json:"claimed,omitempty"`
}

// laneMaker returns the caller as the maker of a lane.
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

// KeptIn returns the workspace that stores the credential of a lane's maker.
func (m *LaneMaker) KeptIn(workspace storage.ID) storage.ID {
	if home, ok := storage.ParseID(m.Home); ok {
		return home
	}
	return workspace
}

// Name returns a cache key for the maker of a lane, where callers are cached by the
// hash of their credential.
func (m *LaneMaker) Name(workspace storage.ID) [sha256.Size]byte {
	home := m.KeptIn(workspace)
	return sha256.Sum256(append(append([]byte("lane maker "), home[:]...), m.Token...))
}

// MakerIn is the input of AuthenticateMakerOp.
type MakerIn struct {
	LaneMaker
	// Hash is the hash of an OAuth client's secret, for a client that authenticates itself;
	// empty: there is none to be checked. Earlier versions ignore it.
	Hash []byte `json:"hash,omitempty"`
}

// AuthenticateMakerOp runs AuthenticateMaker on the credential's home workspace. Its
// answer is a Principal.
var AuthenticateMakerOp = NewQuery[MakerIn, Principal]("AuthenticateMaker", "Tell who made a lane", Needs{}, func(v *View, in *MakerIn) (Reply, error) {
	if len(in.Hash) > 0 {
		id, _ := storage.ParseID(in.Token)
		if _, err := v.oauthClient(id, in.Hash); err != nil {
			return Reply{}, err
		}
	}
	p, err := AuthenticateMaker(&v.View, &in.LaneMaker)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &p)
})

// AuthenticateMaker returns the principal that made a lane; home reads the workspace
// that stores the credential. The error is UNAUTHORIZED if the credential was deleted.
func AuthenticateMaker(home *storage.View, m *LaneMaker) (Principal, error) {
	id, ok := storage.ParseID(m.Token)
	if !ok {
		return Principal{}, Unauthorized()
	}
	if m.Client {
		client, err := oauthSecrets.Get(home, storage.Key(nil).DescID(id))
		if err != nil {
			return Principal{}, fmt.Errorf("read a lane's OAuth client: %w", err)
		}
		if client == nil {
			return Principal{}, Unauthorized()
		}
		return clientPrincipal(home.Workspace(), &client.Value), nil
	}
	grant, err := tokenGrants.Get(home, storage.Key(nil).DescID(id))
	if err != nil {
		return Principal{}, fmt.Errorf("read a lane's token: %w", err)
	}
	if grant == nil {
		return Principal{}, Unauthorized()
	}
	return tokenPrincipal(home, id, &grant.Value)
}

// MadeBy completes a caller with a lane token, given the lane's maker as a caller of
// the same workspace: the lane may do no more than its maker, and sees its issue as
// long as the maker does. The error is UNAUTHORIZED if the maker has left the workspace
// since.
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
