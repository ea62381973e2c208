package tracker

import (
	"cmp"

	"github.com/cespare/xxhash/v2"
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ListSessionsIn asks for a page of sessions, newest first.
type ListSessionsIn struct {
	IssueID Opt[string]        `query:"issueId"`
	AgentID Opt[string]        `query:"agentId"`
	Status  Opt[SessionStatus] `query:"status" enum:"created,running,waiting,completed,failed,canceled"`
	Limit   int                `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor  Opt[string]        `query:"cursor"`
	Summary string             `query:"summary" enum:"0,1"`
}

// SessionSummary is what a lane's row shows of a session.
type SessionSummary struct {
	ID             SessionID     `json:"id"`
	OrganizationID WorkspaceID   `json:"organizationId"`
	IssueID        IssueID       `json:"issueId"`
	AgentID        string        `json:"agentId"`
	Provider       string        `json:"provider"`
	Status         SessionStatus `json:"status" enum:"created,running,waiting,completed,failed,canceled"`
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
}

// listedSession describes an entry of the list, in either form.
type listedSession struct {
	SessionSummary
	ActorID            string          `json:"actorId,omitempty"`
	ActorType          ActorType       `json:"actorType,omitempty" enum:"user,agent"`
	Result             *string         `json:"result,omitempty"`
	URL                *string         `json:"url,omitempty"`
	ProviderSessionID  *string         `json:"providerSessionId,omitempty"`
	SecondaryRepos     *string         `json:"secondaryRepos,omitempty"`
	MaxDurationMinutes *int64          `json:"maxDurationMinutes,omitempty"`
	ResultSchema       json.RawMessage `json:"resultSchema,omitempty"`
	StructuredResult   json.RawMessage `json:"structuredResult,omitempty"`
	ResultSchemaErrors *[]string       `json:"resultSchemaErrors,omitempty"`
	LastStateHash      *string         `json:"lastStateHash,omitempty"`
}

// SessionPage is a page of sessions. NextCursor is absent on the last one.
type SessionPage struct {
	Sessions   []listedSession `json:"sessions"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

// ListSessions lists the sessions of the issues the caller may see (Decision 39).
var ListSessions = NewQuery[ListSessionsIn, SessionPage]("ListSessions", "List sessions", Needs{Read, "sessions"}, listSessions, OneMoment)

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
	p := sessionPage{v: v, limit: cmp.Or(in.Limit, 50), summary: in.Summary == "1", seen: map[storage.ID]bool{}}
	fingerprint := in.fingerprint(v.Workspace())
	var after []byte
	if in.Cursor.Set {
		var err error
		if after, err = parseCursor(in.Cursor.Value, fingerprint); err != nil {
			return Reply{}, err
		}
	}
	body, err := p.build(matches, after, fingerprint)
	return Reply{Body: body}, err
}

// fingerprint binds a cursor to its query.
func (in *ListSessionsIn) fingerprint(workspace storage.ID) uint64 {
	h := xxhash.New()
	_, _ = h.Write(workspace[:])
	_, _ = h.WriteString("sessions")
	for _, filter := range []Opt[string]{in.IssueID, in.AgentID, {Set: in.Status.Set, Value: string(in.Status.Value)}} {
		if filter.Set {
			_, _ = h.Write([]byte{1})
		}
		_, _ = h.WriteString(filter.Value)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// sessionPage builds a page of sessions from their stored JSON.
type sessionPage struct {
	v       *View
	limit   int
	summary bool
	seen    map[storage.ID]bool // issues, by whether the caller sees them
	own     bool                // all are the caller's own to see
	buf     []byte
	count   int
	looked  int
}

func (p *sessionPage) build(matches []storage.Match, after []byte, fingerprint uint64) ([]byte, error) {
	p.buf = p.v.Buf[:0]
	p.buf = append(p.buf, `{"sessions":[`...)
	var last [storage.ListedKeyLen]byte
	more := false
	resume, err := sessions.ListWithin(p.v, matches, after, maxLeaps, func(pk []byte, rec storage.Record) (bool, error) {
		if p.looked == maxExamined || len(p.buf) > maxPageBytes {
			more = true
			return false, nil
		}
		seen, err := p.sees(rec)
		if err != nil {
			return false, err
		}
		if seen && p.count == p.limit {
			more = true
			return false, nil
		}
		p.looked++
		copy(last[:], pk)
		if seen {
			return true, p.add(rec)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if resume != nil {
		more = true
		copy(last[:], resume)
	}
	return (&issuePage{fingerprint: fingerprint}).end(p.buf, more, last[:]), nil
}

func (p *sessionPage) sees(rec storage.Record) (bool, error) {
	if p.own {
		return true, nil
	}
	if rec.Flags()&sessionOrphan != 0 {
		return p.v.seesSession(rec)
	}
	issue := issueIn(rec)
	seen, known := p.seen[issue]
	if known {
		return seen, nil
	}
	seen, err := p.v.seesSession(rec)
	p.seen[issue] = seen
	return seen, err
}

func (p *sessionPage) add(rec storage.Record) error {
	if p.count > 0 {
		p.buf = append(p.buf, ',')
	}
	p.count++
	if !p.summary {
		p.buf = p.v.appendShown(p.buf, rec)
		return nil
	}
	row, err := sessions.Decode(rec)
	if err != nil {
		return err
	}
	s := &row.Value
	body, err := json.MarshalWithOption(&SessionSummary{
		ID: s.ID, OrganizationID: s.OrganizationID, IssueID: s.IssueID, AgentID: s.AgentID, Provider: s.Provider, Status: s.Status,
		DerivedStatus: textOrNil(p.v.derived(rec)), Purpose: s.Purpose, Label: s.Label, Branch: s.Branch, PRURL: s.PRURL, PRState: s.PRState,
		Effort: s.Effort, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, LastProgressAt: s.LastProgressAt,
	}, json.DisableHTMLEscape())
	p.buf = append(p.buf, body...)
	return err
}
