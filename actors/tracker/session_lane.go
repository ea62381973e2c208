package tracker

import (
	"bytes"
	"crypto/subtle"
	"encoding/hex"
	"fmt"

	"switchyard/storage"
)

const (
	// maxLanes is how many lane tokens of a session are good at a time: each
	// registration of the same session makes one.
	maxLanes = 4
	// maxStaleLanes is how many of the past are told apart from texts that never were
	// a token.
	maxStaleLanes = 8
)

// laneAccess is what a holder of a session's lane token is told.
type laneAccess struct {
	LaneToken *string `json:"laneToken"`
	LogURL    *string `json:"logUrl"`
	ReportURL *string `json:"reportUrl"`
	MCPURL    *string `json:"mcpUrl"`
}

// openLane makes a lane token for a session: only its hash is kept, with the
// session.
func (c *sessionChange) openLane() (laneAccess, error) {
	text, credential, err := c.tx.newLane(c.s.id())
	if err != nil {
		return laneAccess{}, err
	}
	in := &c.s.Inner
	in.Lanes = append(append([][]byte(nil), in.Lanes...), credential.Hash[:])
	if n := len(in.Lanes); n > maxLanes {
		in.Lanes = in.Lanes[n-maxLanes:]
	}
	return c.tx.laneAccess(c.s.ID, text), nil
}

func (tx *Tx) newLane(session storage.ID) (string, Credential, error) {
	var secret [secretLen]byte
	if err := tx.Secret(secret[:]); err != nil {
		return "", Credential{}, fmt.Errorf("make a lane token's secret: %w", err)
	}
	text, credential := newCredential(LaneToken, tx.Workspace(), session, secret)
	return text, credential, nil
}

// laneAccess gives the addresses of a session's lane paths with a token for them.
func (v *View) laneAccess(session SessionID, token string) laneAccess {
	base := v.operator.url(v.Workspace(), "/agent/sessions/"+string(session))
	log, report, mcp := base+"/log", base+"/report", base+"/mcp"
	return laneAccess{LaneToken: &token, LogURL: &log, ReportURL: &report, MCPURL: &mcp}
}

// authenticateLane tells who a lane token stands for: the session's agent, in that
// session alone. Whether the token still opens it is looked up by each operation,
// since that changes with the session (see admitLane).
func authenticateLane(v *storage.View, c Credential) (Principal, error) {
	row, err := sessions.Get(v, sessionKey(c.ID))
	if err != nil {
		return Principal{}, fmt.Errorf("read a session: %w", err)
	}
	if row == nil || !c.among(row.Value.Inner.Lanes) && !c.among(row.Value.Inner.Stale) {
		return Principal{}, Unauthorized()
	}
	return Principal{
		Type: ActorAgent, ID: row.Value.AgentID, Token: c.ID.String() + "/" + hex.EncodeToString(c.Hash[:8]), Home: c.Home,
		Permissions: PermSessionsRead | PermSessionsWrite | PermIssuesRead, Confined: true,
		Lane: &Lane{Session: c.ID, Issue: row.Value.issue(), Hash: c.Hash},
	}, nil
}

// among tells whether the credential is one of those whose hashes are kept.
func (c *Credential) among(hashes [][]byte) bool {
	found := 0
	for _, h := range hashes {
		found |= subtle.ConstantTimeCompare(c.Hash[:], h)
	}
	return found == 1
}

// admitLane refuses an operation that is asked for with a lane token which is not,
// or no longer, good for it: CONFLICT to a claimer whose lease ran out,
// UNAUTHORIZED when the session is over (Decision 36).
func (v *View) admitLane(op *Op) error {
	if v.Caller == nil || v.Caller.Lane == nil {
		return nil
	}
	lane := v.Caller.Lane
	if !op.Lane {
		return ForeignLane()
	}
	row, err := sessions.Get(v, sessionKey(lane.Session))
	if err != nil {
		return fmt.Errorf("read a session: %w", err)
	}
	if row == nil {
		return Unauthorized()
	}
	s := &row.Value
	listed := func(hashes [][]byte) bool {
		for _, h := range hashes {
			if bytes.Equal(h, lane.Hash[:]) {
				return true
			}
		}
		return false
	}
	switch {
	case listed(s.Inner.Lanes):
		// One operation answers for sessions that are over: it knows a report that it
		// has heard before. The tools lead to it.
		if s.Status.Ended() && op != ReportSession && op != OpenTools {
			return Unauthorized()
		}
	case listed(s.Inner.Stale):
		return s.conflict(fmt.Sprintf("The lease ran out, and this lane token with it: the session is %s.", s.Status),
			"Stop working on it: somebody else has it, or may claim it. Claim again for other work.")
	default:
		return Unauthorized()
	}
	v.lane = row
	return nil
}

// ForeignLane is the answer to whoever asks for anything but their own session.
func ForeignLane() error {
	return Forbidden("A lane token opens its own session and that session's issue, nothing else.", "Use the addresses that came with the token, or another credential.")
}
