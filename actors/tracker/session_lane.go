package tracker

import (
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"

	"switchyard/storage"
)

const (
	// maxLanes is the number of valid lane tokens of a session; each registration of
	// the same session makes another.
	maxLanes = 4
	// maxStaleLanes is the number of stale tokens that get an error of their own
	// instead of UNAUTHORIZED: as many as a session can have attempts (Decision 62).
	maxStaleLanes = 20
)

// laneAccess is a lane token with the addresses it is for.
type laneAccess struct {
	LaneToken *string `json:"laneToken"`
	LogURL    *string `json:"logUrl"`
	ReportURL *string `json:"reportUrl"`
	MCPURL    *string `json:"mcpUrl"`
}

// openLane makes a lane token for a session. Only its hash is stored, with the session.
func (c *sessionChange) openLane(claimed bool) (laneAccess, error) {
	text, lane, err := c.tx.newLane(c.s.id(), claimed)
	if err != nil {
		return laneAccess{}, err
	}
	in := &c.s.Inner
	in.Lanes = append(slices.Clone(in.Lanes), lane)
	if n := len(in.Lanes); n > maxLanes {
		in.Lanes = in.Lanes[n-maxLanes:]
	}
	return c.tx.laneAccess(c.s.ID, text), nil
}

func (tx *Tx) newLane(session storage.ID, claimed bool) (string, laneToken, error) {
	var secret [secretLen]byte
	if err := tx.Secret(secret[:]); err != nil {
		return "", laneToken{}, fmt.Errorf("make a lane token's secret: %w", err)
	}
	text, credential := newCredential(LaneToken, tx.Workspace(), session, secret)
	return text, laneToken{Hash: credential.Hash[:], Maker: tx.laneMaker(claimed), UsedAt: At(tx.now)}, nil
}

// hasNoEnd reports whether neither a lease nor a budget will end the session. Its lane
// tokens then expire on their own.
func (s *sessionRecord) hasNoEnd() bool { return s.Inner.Lease == nil && s.MaxDurationMinutes == nil }

// laneUseNoted is the fraction of a lane's life after which its use is recorded by a
// request that changes nothing else.
const laneUseNoted = 24

// useLane records the use of the caller's lane token, if its life depends on that. It
// reports whether the record is worth a write of its own.
func (c *sessionChange) useLane() bool {
	lane := c.tx.Caller.Lane
	if lane == nil || !c.s.hasNoEnd() || c.s.Status.Ended() {
		return false
	}
	i := laneIn(c.s.Inner.Lanes, lane.Hash[:])
	if i < 0 {
		return false
	}
	last := c.s.Inner.Lanes[i].UsedAt.Time()
	c.s.Inner.Lanes = slices.Clone(c.s.Inner.Lanes)
	c.s.Inner.Lanes[i].UsedAt = At(c.tx.now)
	return c.tx.now.Sub(last) >= c.tx.operator.laneLife()/laneUseNoted
}

// laneIn returns the index of a lane token by its hash, or -1, in constant time for
// each.
func laneIn(lanes []laneToken, hash []byte) int {
	found := -1
	for i := range lanes {
		if subtle.ConstantTimeCompare(lanes[i].Hash, hash) == 1 {
			found = i
		}
	}
	return found
}

// laneAccess returns a lane token with the addresses it is for.
func (v *View) laneAccess(session SessionID, token string) laneAccess {
	base := v.operator.url(v.Workspace(), "/agent/sessions/"+string(session))
	log, report, mcp := base+"/log", base+"/report", base+"/mcp"
	return laneAccess{LaneToken: &token, LogURL: &log, ReportURL: &report, MCPURL: &mcp}
}

// authenticateLane returns the principal of a lane token: the session's agent, in that
// session alone. Each operation checks whether the token is still valid, since that
// changes with the session (see admitLane).
func authenticateLane(v *storage.View, c Credential) (Principal, error) {
	row, err := sessions.Get(v, sessionKey(c.ID))
	if err != nil {
		return Principal{}, fmt.Errorf("read a session: %w", err)
	}
	if row == nil {
		return Principal{}, Unauthorized()
	}
	in := &row.Value.Inner
	var lane *laneToken
	if i := laneIn(in.Lanes, c.Hash[:]); i >= 0 {
		lane = &in.Lanes[i]
	} else if i := laneIn(in.Stale, c.Hash[:]); i >= 0 {
		lane = &in.Stale[i]
	} else {
		return Principal{}, Unauthorized()
	}
	return Principal{
		Type: ActorAgent, ID: row.Value.AgentID, Kind: LaneToken, Token: c.ID.String() + "/" + hex.EncodeToString(c.Hash[:8]), Home: c.Home,
		Permissions: PermSessionsRead | PermSessionsWrite | PermIssuesRead, Confined: true,
		Lane: &Lane{Session: c.ID, Issue: row.Value.issue(), Hash: c.Hash, Maker: lane.Maker},
	}, nil
}

// admitLane refuses an operation if the caller's lane token is not valid for it (any
// more): CONFLICT for a claimer whose lease expired, UNAUTHORIZED if the session has
// ended (Decision 36).
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
	current := laneIn(s.Inner.Lanes, lane.Hash[:])
	switch {
	case current >= 0:
		if life := v.operator.laneLife(); s.hasNoEnd() && v.now.Sub(s.Inner.Lanes[current].UsedAt.Time()) >= life {
			return &Error{
				Code: CodeUnauthorized, Message: fmt.Sprintf("The lane token has expired: it was not used for %s (--lane-life).", life),
				Hint: "Register the session again under its providerSessionId for another lane token.",
			}
		}
		// ReportSession answers also for an ended session, since it recognizes a
		// repeated report. OpenTools leads to it.
		if s.Status.Ended() && op != ReportSession && op != OpenTools {
			return Unauthorized()
		}
	case laneIn(s.Inner.Stale, lane.Hash[:]) >= 0:
		return s.conflict(fmt.Sprintf("The claim that this lane token came with is over: the session is %s.", s.Status),
			"Stop working on it: somebody else has it, or may claim it. Claim again for other work.")
	default:
		return Unauthorized()
	}
	v.lane = row
	return nil
}

// ForeignLane returns the error for a lane token that is used for anything but its own
// session.
func ForeignLane() error {
	return Forbidden("A lane token is valid for its own session and that session's issue only.", "Use the addresses that came with the token, or another credential.")
}
