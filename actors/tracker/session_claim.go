package tracker

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ClaimSessionsIn asks for sessions to work on.
type ClaimSessionsIn struct {
	AgentID      Opt[string] `json:"agentId" rules:"min=1,max=255"`
	Provider     Opt[string] `json:"provider" rules:"min=1,max=200"`
	Limit        int         `json:"limit" rules:"min=1,max=50" default:"1"`
	LeaseSeconds int64       `json:"leaseSeconds" rules:"min=10,max=3600" default:"60"`
	// Wait is the number of seconds that the answer may wait for a session to claim.
	Wait int `json:"wait" rules:"min=0,max=30"`

	// rounds counts the runs of the claim that have parked all that they found.
	rounds int
}

// WaitFor returns the time that the answer may wait.
func (in *ClaimSessionsIn) WaitFor() time.Duration { return time.Duration(in.Wait) * time.Second }

// ClaimedSession is a session for its claimer, with everything needed to work on it.
type ClaimedSession struct {
	Session        ShownSession `json:"session"`
	Issue          Issue        `json:"issue"`
	Instructions   *string      `json:"instructions"`
	LaneToken      string       `json:"laneToken"`
	LogURL         string       `json:"logUrl"`
	ReportURL      string       `json:"reportUrl"`
	MCPURL         string       `json:"mcpUrl"`
	LeaseExpiresAt Timestamp    `json:"leaseExpiresAt"`
	claimedBefore
	// Budget is what the session may still use; null without a budget (Decision 67).
	Budget *LaneBudget `json:"budget"`
}

// ClaimedSessions is the answer to ClaimSessions; the list is empty if there is nothing
// to claim.
type ClaimedSessions struct {
	Sessions []ClaimedSession `json:"sessions"`
}

// ClaimSessions claims sessions for the caller. Each session has one claimer, for as
// long as its lease lasts (Decision 37).
var ClaimSessions = NewCommand[ClaimSessionsIn, ClaimedSessions]("ClaimSessions", "Claim sessions to work on", Needs{Write, "sessions"}, claimSessions, MayWait, WithSecret, BodyUpTo(maxClaimBody))

// maxClaimBody limits the body, in bytes, so that thousands of waiting claims need
// little memory.
const maxClaimBody = 16 << 10

func claimSessions(tx *Tx, in *ClaimSessionsIn) (Reply, error) {
	agent := in.AgentID.Value
	if agent == "" && tx.Caller.Type == ActorAgent {
		agent = tx.Caller.ID
	}
	q := claim{tx: tx, agent: agent, provider: in.Provider.Value, limit: cmp.Or(in.Limit, 1), most: maxPassedOver}
	if err := q.search(); err != nil {
		return Reply{}, err
	}
	if len(q.found) == 0 {
		return tx.nothingToClaim(in, agent, q.hidden), nil
	}
	body := []byte(`{"sessions":[`)
	limit, claimed := q.limit, 0
	var took []Topic
	for rounds := 0; len(q.found) > 0; rounds++ {
		parked, freed := false, false
		for _, pk := range q.found {
			if len(body) > maxClaimed {
				break // the others can be claimed with the next request
			}
			s, item, err := tx.claim(pk, cmp.Or(in.LeaseSeconds, 60), maxClaimed-len(body))
			if err != nil {
				return Reply{}, err
			}
			if parked = item == nil; parked && claimed > 0 {
				break
			}
			if parked {
				continue
			}
			if claimed++; claimed > 1 {
				body = append(body, ',')
			}
			body = append(body, item...)
			if agent == "" || in.Provider.Value == "" {
				took = append(took, claimTopic(s.AgentID, s.Provider))
			}
			if freed = len(tx.keys.freed) > 0 && rounds < maxClaimRounds; freed {
				break
			}
		}
		if !parked && !freed || claimed == 0 || claimed == limit || rounds == maxClaimRounds {
			break
		}
		// Another session of this claim has taken the place of a key. Search again: the
		// parked session may have stood before others of its issue. Or a place has become free,
		// and the session that gets it may come before those that were found.
		if err := tx.settleKeys(); err != nil {
			return Reply{}, err
		}
		q.limit = limit - claimed
		if err := q.find(); err != nil {
			return Reply{}, err
		}
	}
	if claimed == 0 {
		// All were parked now. The next run finds others, or nothing.
		if in.rounds++; in.rounds <= maxClaimRounds {
			return Reply{More: true}, nil
		}
		return tx.nothingToClaim(in, agent, q.hidden), nil
	}
	return Reply{Body: append(body, `]}`...), Took: took}, nil
}

// maxClaimRounds is the number of times that a claim looks again after it has parked
// sessions that it found.
const maxClaimRounds = 16

// nothingToClaim is the answer of a claim that has found nothing, or its wish to wait. With an
// idempotency key the claim looks again at the end: it may be the repeat of one that waited at
// the same time and has an answer.
func (tx *Tx) nothingToClaim(in *ClaimSessionsIn, agent string, hidden bool) Reply {
	reply := Reply{Body: []byte(`{"sessions":[]}`), unkept: in.Wait > 0}
	if in.Wait > 0 && !tx.final {
		in.rounds = 0 // of the next look, when there is something new
		reply.Wait = &Wait{Topic: claimTopic(agent, in.Provider.Value), Until: tx.wall.Add(in.WaitFor()), Pass: hidden}
		if tx.buffer.keyed {
			reply.Body = nil
		}
	}
	return reply
}

// claim is a search through the queue.
type claim struct {
	tx              *Tx
	agent, provider string // empty for any
	limit           int
	most            int      // the number of sessions that a search looks at
	found           [][]byte // primary keys
	// hidden is set if the search skipped a session that this caller may not see. unseen are
	// the primary keys of such sessions, at most maxUnseen, and passed those whose places were
	// offered to others.
	hidden bool
	unseen [][]byte
	passed map[string]bool

	looked  int            // number of sessions
	wanted  []byte         // provider as in keys
	room    map[string]int // by agent: number of further sessions that it may have
	engaged map[string]bool
	over    map[storage.ID]bool // by issue: whether claims pass over its sessions
	seen    map[storage.ID]bool // by issue: whether the caller sees it
}

// maxPassedOver limits the sessions that one claim looks at.
const maxPassedOver = 50_000

// maxUnseen is the number of sessions that the caller may not see from which on a claim offers no
// places of theirs to others. Otherwise claims could put any number of them into the queue, and
// each claim looks at all of those.
const maxUnseen = 64

// search sets found, in the order of the queue. While there are fewer than the limit, it offers
// the places of sessions that the caller may not see to others, and looks again.
func (q *claim) search() error {
	if err := q.find(); err != nil {
		return err
	}
	for range maxClaimRounds {
		if len(q.found) == q.limit {
			break
		}
		if offered, err := q.offerPast(); err != nil || !offered {
			return err
		}
		if err := q.find(); err != nil {
			return err
		}
	}
	return nil
}

// find sets found and unseen, in the order of the queue. It writes nothing.
func (q *claim) find() error {
	crowded, err := q.findInOrder(maxFullPassed)
	if err != nil || !crowded {
		return err
	}
	agents, all, err := q.queuesWithRoom()
	if err != nil {
		return err
	}
	if all {
		return q.findByAgent(agents)
	}
	_, err = q.findInOrder(q.most)
	return err
}

// begin forgets the outcome of a search before the next one.
func (q *claim) begin() {
	q.found, q.unseen = nil, nil
	q.room, q.engaged, q.over, q.seen = map[string]int{}, map[string]bool{}, map[storage.ID]bool{}, map[storage.ID]bool{}
	q.looked, q.wanted = 0, storage.Key(nil).Str(q.provider)
}

// findInOrder is find by one walk through the queue. crowded is set if it has met more than a number of
// sessions whose agents are full.
func (q *claim) findInOrder(mostFull int) (crowded bool, err error) {
	q.begin()
	passed := 0
	err = q.tx.walkQueue(q.agent, func(e *queuedEntry, pk []byte) (bool, error) {
		takes, full, err := q.look(e, pk)
		if err != nil || full && q.agent != "" {
			return false, err // the agent is full, and the claim is for no other
		}
		if full {
			passed++
		}
		if takes {
			q.found = append(q.found, append([]byte(nil), pk...))
		}
		crowded = passed > mostFull || passed > 0 && q.looked == q.most
		return !crowded && len(q.found) < q.limit && q.looked < q.most, nil
	})
	return crowded, err
}

// look counts a session of the queue and reports whether it can be given to the caller and, if not,
// whether its agent has reached its limit.
func (q *claim) look(e *queuedEntry, pk []byte) (takes, full bool, err error) {
	q.looked++
	room, err := q.roomOf(e.agent)
	if err != nil || room <= 0 {
		return false, err == nil, err
	}
	if q.provider != "" && !bytes.Equal(e.provider, q.wanted) {
		return false, false, nil
	}
	if over, err := q.tx.passesOver(e.agent, e.provider); err != nil || over {
		return false, false, err
	}
	takes, err = q.canClaim(e, pk)
	return takes, false, err
}

// canClaim reports whether a session of an agent that has room can be given to the caller.
func (q *claim) canClaim(e *queuedEntry, pk []byte) (takes bool, err error) {
	agent := string(e.agent)
	at := agent + string(e.issue[:])
	engaged, known := q.engaged[at]
	if !known {
		if engaged, err = q.tx.Has(sessionEngaged, append(storage.Key(nil), at...)); err != nil {
			return false, err
		}
		q.engaged[at] = engaged
	}
	if engaged {
		return false, nil
	}
	seen, known := q.seen[e.issue]
	if !known {
		if seen, err = q.tx.hasIssue(e.issue); err != nil {
			return false, err
		}
		q.seen[e.issue] = seen
	}
	if !seen {
		q.hidden = true
		if len(q.unseen) < maxUnseen {
			q.unseen = append(q.unseen, bytes.Clone(pk))
		}
		return false, nil
	}
	over, known := q.over[e.issue]
	if !known {
		if over, err = q.tx.passesOverIssue(e.issue); err != nil {
			return false, err
		}
		q.over[e.issue] = over
	}
	if over {
		return false, nil
	}
	q.room[agent]--
	q.engaged[at] = true
	return true, nil
}

// roomOf returns the number of further sessions that an agent may have beside those found.
func (q *claim) roomOf(encoded []byte) (room int, err error) {
	room, known := q.room[string(encoded)]
	if !known {
		if room, err = q.tx.roomOf(encoded); err == nil {
			q.room[string(encoded)] = room
		}
	}
	return room, err
}

// roomOf returns the number of further sessions that an agent may have; encoded is its
// id as in keys.
func (tx *Tx) roomOf(encoded []byte) (int, error) {
	if n, err := tx.agentCount(); err != nil || n == 0 {
		return maxActiveSessions, err
	}
	row, err := tx.agent(unStr(encoded))
	if err != nil || row == nil || row.Value.MaxConcurrentSessions == nil {
		return maxActiveSessions, err
	}
	engaged, err := tx.Counter(engagedTable, agentKey(string(row.Value.ID)))
	return int(*row.Value.MaxConcurrentSessions) - int(engaged), err
}

// claim claims a session of the queue for the caller and returns it with the JSON for the
// claimer, or nil if the session had to be parked.
// room is the number of bytes that results of other sessions may take.
func (tx *Tx) claim(pk []byte, leaseSeconds int64, room int) (*sessionRecord, []byte, error) {
	row, err := sessions.Get(tx, pk)
	if err == nil && row == nil {
		err = fmt.Errorf("the claim queue names a session that is not there")
	}
	if err != nil {
		return nil, nil, err
	}
	if now, err := tx.repark(row); err != nil || !now.queued() {
		if err == nil && parkedKey(now) != "" {
			tx.keys.full = append(tx.keys.full, parkedKey(now)) // the others of the key are parked, too
		}
		return nil, nil, err
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return nil, nil, err
	}
	s := &c.s
	before, err := c.before(room)
	if err != nil {
		return nil, nil, err
	}
	if err := c.move(SessionRunning, byClaim); err != nil {
		return nil, nil, err
	}
	if err := c.beginAttempt(); err != nil {
		return nil, nil, err
	}
	s.FailureReason, s.Inner.WokenBy = nil, nil
	s.Inner.Lease = &sessionLease{HolderID: tx.Caller.ID, HolderType: tx.Caller.Type, Seconds: leaseSeconds}
	c.renew()
	c.retireLanes()
	lane, err := c.openLane(true)
	if err != nil {
		return nil, nil, err
	}
	body, err := c.save()
	if err != nil {
		return nil, nil, err
	}
	issue, err := tx.storedIssue(s.issue())
	if err != nil {
		return nil, nil, err
	}
	if issue, err = tx.shownIssue(issue); err != nil {
		return nil, nil, err
	}
	instructions, err := tx.brief(s.id())
	if err != nil {
		return nil, nil, err
	}
	left, err := tx.laneBudget(s)
	if err != nil {
		return nil, nil, err
	}
	rest, err := json.MarshalWithOption(struct {
		Instructions *string `json:"instructions"`
		laneAccess
		LeaseExpiresAt Timestamp `json:"leaseExpiresAt"`
		*claimedBefore
		Budget *LaneBudget `json:"budget"`
	}{instructions, lane, s.Inner.Lease.ExpiresAt, before, left}, json.DisableHTMLEscape())
	if err != nil {
		return nil, nil, fmt.Errorf("encode a claim: %w", err)
	}
	out := append(append([]byte(`{"session":`), appendDerived(body, s)...), `},"issue":`...)
	out = append(append(out, issue...), ',')
	return s, append(out, rest[1:]...), nil
}
