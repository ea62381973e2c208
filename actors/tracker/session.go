package tracker

import (
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// SessionID is the id of a session of an agent's work.
type SessionID string

// SessionStatus is the status of a session.
type SessionStatus string

// The statuses of a session.
const (
	SessionCreated   SessionStatus = "created"
	SessionRunning   SessionStatus = "running"
	SessionWaiting   SessionStatus = "waiting"
	SessionCompleted SessionStatus = "completed"
	SessionFailed    SessionStatus = "failed"
	SessionCanceled  SessionStatus = "canceled"
)

// sessionStatuses lists every status. The position of a status is its byte in the
// index, so the order is part of the format on disk.
var sessionStatuses = [...]SessionStatus{SessionCreated, SessionRunning, SessionWaiting, SessionCompleted, SessionFailed, SessionCanceled}

func (s SessionStatus) rank() byte { return rankOf(sessionStatuses[:], s) }

// EnumValues implements Enumerated.
func (SessionStatus) EnumValues() []string { return enumTexts(sessionStatuses[:]) }

// Ended reports whether the status is final.
func (s SessionStatus) Ended() bool {
	return s == SessionCompleted || s == SessionFailed || s == SessionCanceled
}

// AgentSession is one run of an agent on an issue. Clients get its JSON, and the fields up
// to LastStateHash are stored: the names, order and types of the fields are part of the
// API.
type AgentSession struct {
	ID                SessionID     `json:"id"`
	OrganizationID    WorkspaceID   `json:"organizationId"`
	IssueID           IssueID       `json:"issueId"`
	AgentID           string        `json:"agentId"`
	Provider          string        `json:"provider"`
	ActorID           string        `json:"actorId"`
	ActorType         ActorType     `json:"actorType" enum:"user,agent"`
	Status            SessionStatus `json:"status"`
	Result            *string       `json:"result"`
	URL               *string       `json:"url"`
	ProviderSessionID *string       `json:"providerSessionId"`
	PRURL             *string       `json:"prUrl"`
	PRState           *string       `json:"prState"`
	Branch            *string       `json:"branch"`
	Purpose           *string       `json:"purpose"`
	// SecondaryRepos is the array as JSON text (Decision 16).
	SecondaryRepos     *string         `json:"secondaryRepos"`
	Label              *string         `json:"label"`
	MaxDurationMinutes *int64          `json:"maxDurationMinutes"`
	Effort             *string         `json:"effort" enum:"low,medium,high,max"`
	ResultSchema       json.RawMessage `json:"resultSchema" form:"objectOrNull"`
	StructuredResult   json.RawMessage `json:"structuredResult"`
	ResultSchemaErrors *[]string       `json:"resultSchemaErrors"`
	CreatedAt          Timestamp       `json:"createdAt"`
	UpdatedAt          Timestamp       `json:"updatedAt"`
	LastProgressAt     *Timestamp      `json:"lastProgressAt"`
	LastStateHash      *string         `json:"lastStateHash"`
}

// sessionRecord is the stored form of a session: the public part, and then the fields
// that clients don't get (see publicPart).
type sessionRecord struct {
	AgentSession
	SessionDetails
	Inner sessionInner `json:"inner"`
}

// sessionInner holds the fields of a session that clients don't get.
type sessionInner struct {
	// Rank is the issue's priority in the claim queue, kept up to date while the
	// session has not ended (see placeSessions).
	Rank byte `json:"rank"`
	// Orphan is set if the session's issue was deleted. Team, and Veiled for a
	// restricted issue, then decide who may see it, as the issue's record last did.
	Orphan     bool   `json:"orphan,omitempty"`
	Restricted bool   `json:"veiled,omitempty"`
	Team       TeamID `json:"team,omitempty"`

	Repo   *string   `json:"repo,omitempty"`
	Model  *string   `json:"model,omitempty"`
	Mode   *string   `json:"mode,omitempty"`
	Parent SessionID `json:"parent,omitempty"`
	// Depth is the number of sessions above this one.
	Depth int `json:"depth,omitempty"`
	// Predecessors are the sessions that this one is queued after; those that it still
	// waits for are Pending (Decision 33). An earlier version stored the only pending one
	// as Predecessor: see pending.
	Predecessors []SessionID `json:"predecessors,omitempty"`
	Pending      []SessionID `json:"pending,omitempty"`
	Predecessor  SessionID   `json:"predecessor,omitempty"`
	// Missing is what the preflight check missed, while the session waits for it.
	Missing []string `json:"missing,omitempty"`
	// Park is the reason why the session can't be claimed; nil if nothing but the want of
	// a claimer keeps it from running, or if an agent is working on it.
	Park *parking `json:"park,omitempty"`
	// External is set for registered sessions, which an agent works on from the start.
	External bool `json:"external,omitempty"`

	// StartedAt is the time when the session first ran since it was queued.
	StartedAt Timestamp `json:"startedAt,omitempty"`
	// Lease is the present lease; nil if no claimer holds the session.
	Lease *sessionLease `json:"lease,omitempty"`
	// Attempts is the number of attempts that count, with the running one. Claims is the
	// number of claims, and Attempt the attempt that the last one began.
	Attempts int            `json:"attempts,omitempty"`
	Claims   int            `json:"claims,omitempty"`
	Attempt  *attemptRecord `json:"attempt,omitempty"`
	// EndedAt is the time when the session ended; empty before.
	EndedAt Timestamp `json:"endedAt,omitempty"`
	// QueuedAt is the time when an attempt last put the session back into the queue.
	QueuedAt Timestamp `json:"queuedAt,omitempty"`
	// Lanes are the lane tokens that are valid while the session lasts. Stale are those
	// of claimers whose lease expired, the newest last.
	Lanes []laneToken `json:"laneTokens,omitempty"`
	Stale []laneToken `json:"staleTokens,omitempty"`
	// Final is the hash of the report that ended the session.
	Final []byte `json:"final,omitempty"`
	// Wait is what the session waits for after a report; nil for nothing. WokenBy is what
	// ended its wait, until the next claim.
	Wait    *sessionWait `json:"wait,omitempty"`
	WokenBy []WokenBy    `json:"wokenBy,omitempty"`
	// Answered is set by a reply, until an agent asks again or a wait for a reply takes it.
	Answered bool `json:"answered,omitempty"`
	// Usage is the sum of what its agents have used; nil for nothing.
	Usage *Usage `json:"usage,omitempty"`
	// Plan is set if the session has a plan.
	Plan bool `json:"plan,omitempty"`
	// Retried is the hash of the last report of a failure after which the session was queued
	// again, and RetriedBy the id of the actor that sent it.
	Retried   []byte `json:"retried,omitempty"`
	RetriedBy string `json:"retriedBy,omitempty"`

	// First and Last are the sequence numbers of the stored activities; Last is 0 if
	// there are none. LastActivity and LastType are the id and type of the last one.
	First        uint64       `json:"first,omitempty"`
	Last         uint64       `json:"last,omitempty"`
	LastActivity string       `json:"lastActivity,omitempty"`
	LastType     ActivityType `json:"lastType,omitempty"`
}

// sessionLease is a claimer's lease of a session.
type sessionLease struct {
	HolderID   string    `json:"holderId"`
	HolderType ActorType `json:"holderType"`
	Seconds    int64     `json:"seconds"`
	ExpiresAt  Timestamp `json:"expiresAt"`
	// CheckAt is the time of the next check of the lease. It may be long before
	// ExpiresAt, so that a renewal does not have to move index entries.
	CheckAt Timestamp `json:"checkAt"`
}

// Flags of a session's record, which can be read without decoding it.
const (
	sessionOrphan storage.Flags = 1 << iota
	sessionVeiled
	sessionHasEnded
	sessionIsRunning
	sessionIsWaiting
	sessionAsks // the last activity is a question
)

func sessionKey(id storage.ID) storage.Key {
	return storage.Key(make([]byte, 0, storage.ListedKeyLen)).DescID(id)
}

// id returns the session's id in binary form. Stored sessions have a valid one.
func (s *AgentSession) id() storage.ID {
	id, _ := storage.ParseID(s.ID)
	return id
}

func (s *AgentSession) issue() storage.ID {
	id, _ := storage.ParseID(s.IssueID)
	return id
}

// queued reports whether the session can be claimed. Registered sessions can't: an
// agent works on them already.
func (s *sessionRecord) queued() bool {
	return s.Status == SessionCreated && !s.Inner.External && s.Inner.Park == nil
}

// pending returns the sessions whose completion this one waits for.
func (s *sessionRecord) pending() []SessionID {
	if s.Inner.Predecessor != "" {
		return []SessionID{s.Inner.Predecessor}
	}
	return s.Inner.Pending
}

// engaged reports whether an agent works on the session, and so holds a place of the agent
// and of the concurrency keys: it runs, or it ran and waits, but not for the conditions of
// a report's waitFor.
func (s *sessionRecord) engaged() bool {
	return s.Status == SessionRunning || s.Status == SessionWaiting && s.Inner.StartedAt != "" && s.Inner.Park == nil
}

func (s *sessionRecord) flags() (f storage.Flags) {
	if s.Inner.Orphan {
		f |= sessionOrphan
	}
	if s.Inner.Restricted {
		f |= sessionVeiled
	}
	switch {
	case s.Status.Ended():
		return f | sessionHasEnded
	case s.Status == SessionRunning:
		f |= sessionIsRunning
	case s.Status == SessionWaiting:
		f |= sessionIsWaiting
	}
	if s.Inner.LastType == ActivityElicitation {
		f |= sessionAsks
	}
	return f
}

// urgency returns the first byte of an entry in the claim queue, in which the most
// urgent sessions come first.
func urgency(rank byte) byte { return 0xff - rank }

// sessions holds the sessions of a workspace.
var sessions = storage.Table[sessionRecord]{
	ID:   sessionTable,
	Name: "session",
	Key:  func(k storage.Key, s *sessionRecord) storage.Key { return k.DescID(s.id()) },
	Head: func(s *sessionRecord) (flags storage.Flags, team storage.ID) {
		if s.Inner.Orphan {
			team, _ = storage.ParseID(s.Inner.Team)
		}
		return s.flags(), team
	},
	Indexes: []storage.Index[sessionRecord]{
		{ID: sessionByIssue, Name: "issue", Entries: func(e *storage.Entries, s *sessionRecord) {
			if !s.Inner.Orphan {
				e.Add(e.Key().ID(s.issue()))
			}
		}},
		{ID: sessionByStatus, Name: "status", Entries: func(e *storage.Entries, s *sessionRecord) {
			e.Add(e.Key().Byte(s.Status.rank()))
		}},
		{ID: sessionByAgent, Name: "agent", Entries: func(e *storage.Entries, s *sessionRecord) {
			e.Add(e.Key().Str(s.AgentID))
		}},
		// The claim queue, in its order. An entry has everything that decides whether a
		// claim skips it.
		{ID: sessionQueue, Name: "queue", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.queued() {
				e.Add(e.Key().Byte(urgency(s.Inner.Rank)).ID(s.id()).ID(s.issue()).Str(s.AgentID).Str(s.Provider))
			}
		}},
		{ID: sessionQueueByAgent, Name: "agent's queue", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.queued() {
				e.Add(e.Key().Str(s.AgentID).Byte(urgency(s.Inner.Rank)).ID(s.id()).ID(s.issue()).Str(s.Provider))
			}
		}},
		{ID: sessionByProvider, Name: "providerSessionId", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.ProviderSessionID != nil {
				e.Add(e.Key().Str(*s.ProviderSessionID))
			}
		}},
		{ID: sessionWaits, Name: "wait", Entries: addWaits},
		{ID: sessionByEnd, Name: "end", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.Status.Ended() {
				e.Add(e.Key().U64(uint64(s.Inner.EndedAt.Time().UnixMilli())))
			}
		}},
		{ID: sessionByDeadLetter, Name: "dead letter", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.DeadLetteredAt != nil {
				e.Add(e.Key().Byte(0))
				if s.FailureReason != nil {
					e.Add(e.Key().Byte(1).Str(*s.FailureReason))
				}
			}
		}},
		{ID: sessionByParent, Name: "parent", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.Inner.Parent != "" {
				parent, _ := storage.ParseID(s.Inner.Parent)
				var ended byte
				if s.Status.Ended() {
					ended = 1
				}
				e.Add(e.Key().ID(parent).Byte(ended))
			}
		}},
		{ID: sessionActive, Name: "active", Entries: func(e *storage.Entries, s *sessionRecord) {
			switch s.occupation() {
			case occupiesIssue:
				e.Add(e.Key().ID(s.issue()).Str(s.AgentID))
			case awaitsIssue:
				e.Add(e.Key().ID(s.issue()).Str(s.AgentID).Byte(byte(awaitsIssue)))
			}
		}},
		{ID: sessionEngaged, Name: "engaged", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.engaged() {
				e.Add(e.Key().Str(s.AgentID).ID(s.issue()))
			}
		}},
		{ID: sessionLeases, Name: "lease", Entries: func(e *storage.Entries, s *sessionRecord) {
			if l := s.Inner.Lease; l != nil {
				e.Add(e.Key().U64(uint64(l.CheckAt.Time().UnixMilli())))
			}
		}},
		{ID: sessionByPredecessor, Name: "predecessor", Entries: func(e *storage.Entries, s *sessionRecord) {
			for _, id := range s.pending() {
				predecessor, _ := storage.ParseID(id)
				e.Add(e.Key().ID(predecessor))
			}
		}},
		{ID: sessionParked, Name: "parked", Entries: addParked},
		{ID: sessionByKey, Name: "concurrency key", Entries: addKeyEntries},
		{ID: sessionWhenReady, Name: "when ready", Entries: addWhenReady},
		{ID: sessionUnqueued, Name: "unqueued", Entries: func(e *storage.Entries, s *sessionRecord) {
			if s.Status == SessionCreated && s.Inner.Park != nil {
				e.Add(e.Key().Str(s.AgentID))
			}
		}},
	},
}

var _ = declareTable(&sessions)
