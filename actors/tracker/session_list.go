package tracker

import (
	"cmp"
	"strconv"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ListSessionsIn asks for a page of sessions, newest first.
type ListSessionsIn struct {
	IssueID Opt[string]        `query:"issueId"`
	AgentID Opt[string]        `query:"agentId"`
	Status  Opt[SessionStatus] `query:"status"`
	Limit   int                `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor  Opt[string]        `query:"cursor"`
	Summary string             `query:"summary" enum:"0,1"`
	// DeadLettered is for sessions whose attempts are used up, or for the others.
	DeadLettered Opt[bool] `query:"deadLettered"`
}

// SessionSummary is the short form of a session in lists.
type SessionSummary struct {
	ID             SessionID     `json:"id"`
	OrganizationID WorkspaceID   `json:"organizationId"`
	IssueID        IssueID       `json:"issueId"`
	AgentID        string        `json:"agentId"`
	Provider       string        `json:"provider"`
	Status         SessionStatus `json:"status"`
	DerivedStatus  *string       `json:"derivedStatus" enum:"stalled,needs_input"`
	Purpose        *string       `json:"purpose"`
	Label          *string       `json:"label"`
	Branch         *string       `json:"branch"`
	PRURL          *string       `json:"prUrl"`
	PRState        *string       `json:"prState"`
	Effort         *string       `json:"effort" enum:"low,medium,high,max"`
	CreatedAt      Timestamp     `json:"createdAt"`
	UpdatedAt      Timestamp     `json:"updatedAt"`
	LastProgressAt *Timestamp    `json:"lastProgressAt"`
	WaitingFor     *WaitingFor   `json:"waitingFor"`
}

// listedSession is an entry of the list, in either form.
type listedSession struct {
	SessionSummary
	ActorID            string          `json:"actorId,omitempty"`
	ActorType          ActorType       `json:"actorType,omitempty" enum:"user,agent"`
	Result             *string         `json:"result,omitempty"`
	URL                *string         `json:"url,omitempty"`
	ProviderSessionID  *string         `json:"providerSessionId,omitempty"`
	SecondaryRepos     *string         `json:"secondaryRepos,omitempty"`
	MaxDurationMinutes *int64          `json:"maxDurationMinutes,omitempty"`
	ResultSchema       json.RawMessage `json:"resultSchema,omitempty" form:"objectOrNull"`
	StructuredResult   json.RawMessage `json:"structuredResult,omitempty"`
	ResultSchemaErrors *[]string       `json:"resultSchemaErrors,omitempty"`
	WhenReady          *bool           `json:"whenReady,omitempty"`
	ConcurrencyKeys    *[]string       `json:"concurrencyKeys,omitempty"`
	NotBefore          *Timestamp      `json:"notBefore,omitempty"`
	LastStateHash      *string         `json:"lastStateHash,omitempty"`
	Retry              *RetryPolicy    `json:"retry,omitempty"`
	FailureReason      *string         `json:"failureReason,omitempty"`
	DeadLetteredAt     *Timestamp      `json:"deadLetteredAt,omitempty"`
	Usage              *Usage          `json:"usage,omitempty"`
}

// SessionPage is a page of sessions. NextCursor is absent on the last page.
type SessionPage struct {
	Sessions   []listedSession `json:"sessions"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

// ListSessions lists the sessions of the issues that the caller may see (Decision 39).
var ListSessions = NewQuery[ListSessionsIn, SessionPage]("ListSessions", "List sessions", Needs{Read, "sessions"}, listSessions, FromSnapshot)

func listSessions(v *View, in *ListSessionsIn) (Reply, error) {
	var matches []storage.Match
	if in.IssueID.Set {
		issue, ok := storage.ParseID(in.IssueID.Value)
		if !ok {
			matches = append(matches, storage.Nothing())
		}
		matches = append(matches, storage.Equal(sessionByIssue, storage.Key(nil).ID(issue)))
	}
	if in.AgentID.Set {
		matches = append(matches, storage.Equal(sessionByAgent, storage.Key(nil).Str(in.AgentID.Value)))
	}
	if in.Status.Set {
		matches = append(matches, storage.Equal(sessionByStatus, storage.Key(nil).Byte(in.Status.Value.rank())))
	}
	if in.DeadLettered.Value {
		matches = append(matches, storage.Equal(sessionByDeadLetter, storage.Key(nil).Byte(0)))
	}
	query := listQuery(v.Workspace(), "sessions", in.IssueID, in.AgentID, Opt[string]{Set: in.Status.Set, Value: string(in.Status.Value)},
		Opt[string]{Set: in.DeadLettered.Set, Value: strconv.FormatBool(in.DeadLettered.Value)})
	p := sessionPage{limit: in.Limit, cursor: in.Cursor, query: query, summary: in.Summary == "1"}
	p.living = in.DeadLettered.Set && !in.DeadLettered.Value
	return p.build(v, matches)
}

// sessionPage is the specification of a page of sessions.
type sessionPage struct {
	limit   int
	cursor  Opt[string]
	query   uint64
	summary bool
	own     bool // the caller may see all of them
	living  bool // without dead letters
}

func (s *sessionPage) build(v *View, matches []storage.Match) (Reply, error) {
	p, err := newPage(v.Buf, pageSpec{name: "sessions", limit: cmp.Or(s.limit, 50), cursor: s.cursor, query: s.query, keyLen: storage.ListedKeyLen})
	if err != nil {
		return Reply{}, err
	}
	x, seen := explainer{v: v}, accessCache{}
	err = p.fill(
		func(fn eachRecord) ([]byte, error) {
			leaps := maxLeaps
			return sessions.ListWithin(v, matches, p.after, &leaps, fn)
		},
		func(_ []byte, rec storage.Record) (bool, error) {
			switch {
			case s.living && isDeadLetter(rec):
				return false, nil
			case s.own:
				return true, nil
			case rec.Flags()&sessionOrphan != 0:
				return v.canViewSession(rec)
			}
			return seen.byIssue(rec, v.canViewSession)
		},
		func(b []byte, rec storage.Record) ([]byte, error) {
			if s.summary {
				return x.appendSummary(b, rec)
			}
			return x.appendExplained(b, rec)
		})
	if err != nil {
		return Reply{}, err
	}
	return p.reply(), nil
}

// appendSummary appends the short form of a session.
func (x *explainer) appendSummary(b []byte, rec storage.Record) ([]byte, error) {
	row, err := sessions.Decode(rec)
	if err != nil {
		return b, err
	}
	s := &row.Value
	waiting, err := x.explain(s)
	if err != nil {
		return b, err
	}
	body, err := json.MarshalWithOption(&SessionSummary{
		ID: s.ID, OrganizationID: s.OrganizationID, IssueID: s.IssueID, AgentID: s.AgentID, Provider: s.Provider, Status: s.Status,
		DerivedStatus: textOrNil(x.v.derived(rec)), Purpose: s.Purpose, Label: s.Label, Branch: s.Branch, PRURL: s.PRURL, PRState: s.PRState,
		Effort: s.Effort, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, LastProgressAt: s.LastProgressAt,
		WaitingFor: waiting,
	}, json.DisableHTMLEscape())
	return append(b, body...), err
}
