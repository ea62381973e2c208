package tracker

import (
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// SessionID names a session of an agent's work.
type SessionID string

// SessionStatus says where a session stands in its life.
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

// sessionStatuses lists every status; a status's place in it is its byte in the
// index, so the order is part of what is on disk.
var sessionStatuses = [...]SessionStatus{SessionCreated, SessionRunning, SessionWaiting, SessionCompleted, SessionFailed, SessionCanceled}

func (s SessionStatus) rank() byte {
	for i, known := range sessionStatuses {
		if s == known {
			return byte(i)
		}
	}
	return 0xff
}

// Ended tells whether the session is over for good.
func (s SessionStatus) Ended() bool {
	return s == SessionCompleted || s == SessionFailed || s == SessionCanceled
}

// AgentSession is one run of an agent on an issue. Its JSON is what clients get and
// what is stored, up to LastStateHash: the fields, their order and their types are
// the service's contract.
type AgentSession struct {
	ID                SessionID     `json:"id"`
	OrganizationID    WorkspaceID   `json:"organizationId"`
	IssueID           IssueID       `json:"issueId"`
	AgentID           string        `json:"agentId"`
	Provider          string        `json:"provider"`
	ActorID           string        `json:"actorId"`
	ActorType         ActorType     `json:"actorType" enum:"user,agent"`
	Status            SessionStatus `json:"status" enum:"created,running,waiting,completed,failed,canceled"`
	Result            *string       `json:"result"`
	URL               *string       `json:"url"`
	ProviderSessionID *string       `json:"providerSessionId"`
	PRURL             *string       `json:"prUrl"`
	PRState           *string       `json:"prState"`
	Branch            *string       `json:"branch"`
	Purpose           *string       `json:"purpose"`
	// SecondaryRepos is the JSON text of the array (Decision 16).
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

// sessionRecord is a session as it is stored. What clients don't get stands behind
// what they get, so that the stored form can be cut there (see publicPart).
type sessionRecord struct {
	AgentSession
	Inner sessionInner `json:"inner"`
}

// sessionInner is what the service itself keeps of a session.
type sessionInner struct {
	// Rank is the issue's priority, for the claim queue, while the session can be
	// claimed (see requeueSessions).
	Rank byte `json:"rank"`
	// Team and Veiled say who may see a session whose issue was deleted: what the
	// issue's record said last.
	Orphan bool   `json:"orphan,omitempty"`
	Veiled bool   `json:"veiled,omitempty"`
	Team   TeamID `json:"team,omitempty"`

	Repo   *string   `json:"repo,omitempty"`
	Model  *string   `json:"model,omitempty"`
	Mode   *string   `json:"mode,omitempty"`
	Parent SessionID `json:"parent,omitempty"`
	// Depth counts the sessions above this one.
	Depth int `json:"depth,omitempty"`
	// Predecessor is the session whose end lets this one into the queue, while it waits
	// for that; "" for none (Decision 33).
	Predecessor SessionID `json:"predecessor,omitempty"`
	// External sessions were registered: somebody is at them from the start.
	External bool `json:"external,omitempty"`

	// StartedAt is when the session ran first.
	StartedAt Timestamp `json:"startedAt,omitempty"`
	// Lease is who holds the session until when; nil while nobody does.
	Lease *sessionLease `json:"lease,omitempty"`
	// Attempts counts the claims.
	Attempts int `json:"attempts,omitempty"`
	// Lanes are the lane tokens that are good while the session lasts, and Stale those
	// of claimers whose lease ran out, the newest last.
	Lanes []laneToken `json:"laneTokens,omitempty"`
	Stale []laneToken `json:"staleTokens,omitempty"`
	// Final is the hash of the report that ended the session.
	Final []byte `json:"final,omitempty"`

	// First and Last are the sequence numbers of the activities kept; none are when
	// Last is 0. LastActivity is the id of the last and LastType its type.
	First        uint64       `json:"first,omitempty"`
	Last         uint64       `json:"last,omitempty"`
	LastActivity string       `json:"lastActivity,omitempty"`
	LastType     ActivityType `json:"lastType,omitempty"`
}

// sessionLease says who holds a session.
type sessionLease struct {
	HolderID   string    `json:"holderId"`
	HolderType ActorType `json:"holderType"`
	Seconds    int64     `json:"seconds"`
	ExpiresAt  Timestamp `json:"expiresAt"`
	// CheckAt is when the lease is looked at next: not after its end, but maybe long
	// before, so that renewing it moves nothing.
	CheckAt Timestamp `json:"checkAt"`
}

// Flags of a session's record: what is decided without decoding it.
const (
	sessionOrphan storage.Flags = 1 << iota
	sessionVeiled
	sessionHasEnded
	sessionIsRunning
	sessionIsWaiting
	sessionAsks // its last activity is a question
)

func sessionKey(id storage.ID) storage.Key {
	return storage.Key(make([]byte, 0, storage.ListedKeyLen)).Newest(id)
}

// id is the session's identifier in binary form. Stored sessions have a valid one.
func (s *AgentSession) id() storage.ID {
	id, _ := storage.ParseID(s.ID)
	return id
}

func (s *AgentSession) issue() storage.ID {
	id, _ := storage.ParseID(s.IssueID)
	return id
}

// queued tells whether the session can be claimed. Those that were registered are
// somebody's already.
func (s *sessionRecord) queued() bool { return s.Status == SessionCreated && !s.Inner.External }

// engaged tells whether somebody is at the session: it runs, or it ran and waits.
func (s *sessionRecord) engaged() bool {
	return s.Status == SessionRunning || s.Status == SessionWaiting && s.Inner.StartedAt != ""
}

func (s *sessionRecord) flags() (f storage.Flags) {
	if s.Inner.Orphan {
		f |= sessionOrphan
	}
	if s.Inner.Veiled {
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

// urgency is the first byte of an entry in the claim queue: the most urgent comes
// first.
func urgency(rank byte) byte { return 0xff - rank }

// sessions keeps the sessions of a workspace.
var sessions = storage.Table[sessionRecord]{
	ID:   sessionTable,
	Name: "session",
	Key:  func(k storage.Key, s *sessionRecord) storage.Key { return k.Newest(s.id()) },
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
		// The claim queue, in its order: what an entry holds is enough to pass it over.
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
			if !s.Status.Ended() {
				e.Add(e.Key().ID(s.issue()).Str(s.AgentID))
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
			if s.Inner.Predecessor != "" {
				predecessor, _ := storage.ParseID(s.Inner.Predecessor)
				e.Add(e.Key().ID(predecessor))
			}
		}},
	},
}
