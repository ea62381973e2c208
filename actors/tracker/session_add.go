package tracker

import (
	"cmp"
	"fmt"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// SecondaryRepo is another repository that a session works with.
type SecondaryRepo struct {
	Repo   string `json:"repo" rules:"required,max=255" form:"repository"`
	Access string `json:"access" enum:"read,write" default:"read"`
}

// SessionOptions are the options of every operation that dispatches.
type SessionOptions struct {
	SecondaryRepos Opt[[]SecondaryRepo] `json:"secondaryRepos" rules:"max=5"`
	Effort         Opt[string]          `json:"effort" enum:"low,medium,high,max"`
	MaxDuration    Opt[int64]           `json:"maxDuration" rules:"min=1,max=1440"`
	// ResultSchema is "lane" or a JSON Schema.
	ResultSchema json.RawMessage `json:"resultSchema" form:"resultSchema"`
	// NotBefore is the time before which the session is not claimed (Decision 59).
	NotBefore Opt[string] `json:"notBefore" rules:"nullable,datetime"`
	// WhenReady makes the session wait until its issue is not blocked.
	WhenReady bool `json:"whenReady"`
	// QueuedAfter is the id of an issue or a session, or a list of ids, that must be
	// completed first (Decision 33).
	QueuedAfter json.RawMessage `json:"queuedAfter" form:"queuedAfter"`
	// ConcurrencyKeys are keys of which the session takes a place while it runs (Decision
	// 63).
	ConcurrencyKeys Opt[[]string] `json:"concurrencyKeys" rules:"max=4" form:"concurrencyKey"`
	// Retry says how often the session is tried. Without it the agent's policy is used.
	Retry Opt[RetryIn] `json:"retry"`
}

// validateAt checks what the tags can't express. at is the path of the options in the
// body, such as "items[2].".
func (o *SessionOptions) validateAt(at string, faults *Faults) {
	o.validateShape(at, faults)
	if place := at + "resultSchema"; !faults.Has(place) {
		if fault := schemaFault(o.ResultSchema); fault != "" {
			faults.Add(place, fault)
		}
	}
}

// validateShape is like validateAt, but does not compile the schema.
func (o *SessionOptions) validateShape(at string, faults *Faults) {
	if text, place := o.NotBefore.Ptr(), at+"notBefore"; text != nil && !faults.Has(place) && snooze(text) == nil {
		faults.Add(place, "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
	}
	queuedAfterIDs(o.QueuedAfter, at, faults)
	if fault := schemaShape(o.ResultSchema); fault != "" {
		faults.Add(at+"resultSchema", fault)
	}
}

// validateTimes adds a fault if the session is put off too far.
func (o *SessionOptions) validateTimes(now time.Time, at string, faults *Faults) {
	if tooFar(snooze(o.NotBefore.Ptr()), now) {
		faults.Add(at+"notBefore", faultTooFar)
	}
}

// isRepo reports whether a text has the form owner/name.
func isRepo(text string) bool {
	slash := -1
	for i, c := range []byte(text) {
		switch {
		case c == '/' && slash < 0 && i > 0:
			slash = i
		case c == '_', c == '.', c == '-', '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		default:
			return false
		}
	}
	return slash > 0 && slash < len(text)-1
}

// newSession is the input of addSession.
type newSession struct {
	Issue        *storage.Row[Issue]
	AgentID      string // "": the service picks one
	Provider     string
	Model        string
	Repo, Branch Opt[string]
	Instructions Opt[string]
	Mode         string
	Label        *string
	Options      SessionOptions
	Parent       *sessionRecord
	// Strict makes the session wait if the preflight check found something missing.
	Strict bool
	// After are the sessions that this one is queued after (Decision 33).
	After predecessors
}

// Preflight is the result of the check whether a dispatched session has all it needs.
type Preflight struct {
	Ready   bool     `json:"ready"`
	Missing []string `json:"missing"`
}

// addSession dispatches an issue to an agent. Except for RegisterSession every
// operation that makes sessions uses it. It returns the session and its public JSON.
func (tx *Tx) addSession(n *newSession) (*sessionRecord, []byte, Preflight, error) {
	issue := &n.Issue.Value
	preflight := Preflight{Missing: []string{}}
	agentID, agent, err := tx.pickAgent(n.AgentID, issue)
	if err != nil {
		return nil, nil, preflight, err
	}
	s, err := tx.blankSession(issue)
	if err != nil {
		return nil, nil, preflight, err
	}
	s.AgentID, s.Provider, s.Label = agentID, n.Provider, n.Label
	s.Inner.Repo, s.Branch = firstOf(n.Repo, issue.Repo), firstOf(n.Branch, issue.Branch)
	s.Inner.Model, s.Inner.Mode, s.Purpose = textOrNil(n.Model), textOrNil(n.Mode), textOrNil(n.Mode)
	if agent != nil {
		if s.Provider == "" && agent.Provider != nil {
			s.Provider = *agent.Provider
		}
		if s.Inner.Model == nil {
			s.Inner.Model = agent.Model
		}
		s.Retry = agent.Retry
	} else {
		preflight.Missing = append(preflight.Missing, "agent")
	}
	if s.Inner.Repo == nil {
		preflight.Missing = append(preflight.Missing, "repo")
	}
	if s.Provider == "" {
		s.Provider = "external"
		preflight.Missing = append(preflight.Missing, "provider")
	}
	preflight.Ready = len(preflight.Missing) == 0
	if n.Parent != nil {
		s.Inner.Parent, s.Inner.Depth = n.Parent.ID, n.Parent.Inner.Depth+1
	}
	if n.Strict {
		s.Inner.Missing = preflight.Missing
	}
	s.Inner.Predecessors, s.Inner.Pending = n.After.all, n.After.pending
	if err := n.Options.apply(s); err != nil {
		return nil, nil, preflight, err
	}
	if s.NotBefore, err = tx.notBefore(n.Options.NotBefore.Ptr()); err != nil {
		return nil, nil, preflight, err
	}
	s.WhenReady = n.Options.WhenReady
	s.ConcurrencyKeys = concurrencyKeys(n.Options.ConcurrencyKeys.Value, agent, issue)
	if err := tx.startPlace(s); err != nil {
		return nil, nil, preflight, err
	}
	body, err := tx.insertSession(s, n.Issue)
	if err != nil {
		return nil, nil, preflight, err
	}
	if err := tx.setBrief(s.id(), n.Instructions.Ptr()); err != nil || n.After.failed == nil {
		return s, body, preflight, err
	}
	s, body, err = tx.cancelFollower(s.id(), n.After.failed)
	return s, body, preflight, err
}

// checkOptions adds the faults of a dispatch's options that depend on the time and on the
// sessions that are there. at is the path of the options in the body. It returns the
// sessions that the new one is queued after.
func (tx *Tx) checkOptions(o *SessionOptions, at string, faults *Faults) (predecessors, error) {
	after, err := tx.predecessors(o.QueuedAfter, at, faults)
	if err != nil {
		return after, err
	}
	o.validateTimes(tx.now, at, faults)
	return after, nil
}

const faultTooFar = "Must be at most one year ahead."

// tooFar reports whether a time is later than a notBefore may be.
func tooFar(at *Timestamp, now time.Time) bool {
	return at != nil && at.Time().After(now.AddDate(1, 0, 0))
}

// notBefore returns the time before which a session must not be claimed. A time that has
// passed means now.
func (tx *Tx) notBefore(text *string) (*Timestamp, error) {
	at := snooze(text)
	switch {
	case at == nil:
		return nil, nil
	case tooFar(at, tx.now):
		return nil, BadRequest(Fault{Path: "notBefore", Message: faultTooFar})
	case at.Time().Before(tx.now):
		now := At(tx.now)
		return &now, nil
	}
	return at, nil
}

// firstOf returns the value of a request, or the issue's; an empty text counts as none.
func firstOf(given Opt[string], issues *string) *string {
	if text := given.Ptr(); text != nil && *text != "" {
		return text
	}
	if issues != nil && *issues == "" {
		return nil
	}
	return issues
}

func textOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (o *SessionOptions) apply(s *sessionRecord) error {
	if len(o.SecondaryRepos.Value) > 0 {
		for i := range o.SecondaryRepos.Value {
			if r := &o.SecondaryRepos.Value[i]; r.Access == "" {
				r.Access = "read"
			}
		}
		b, err := json.MarshalWithOption(o.SecondaryRepos.Value, json.DisableHTMLEscape())
		if err != nil {
			return fmt.Errorf("encode repositories: %w", err)
		}
		text := string(b)
		s.SecondaryRepos = &text
	}
	s.Effort, s.MaxDurationMinutes = o.Effort.Ptr(), o.MaxDuration.Ptr()
	if policy := retryPolicy(&o.Retry); policy != nil {
		s.Retry = policy
	}
	s.ResultSchema = expandSchema(o.ResultSchema)
	return nil
}

// blankSession returns a new session of an issue, with its id and the caller as its
// actor.
func (tx *Tx) blankSession(issue *Issue) (*sessionRecord, error) {
	id, err := tx.NewID()
	if err != nil {
		return nil, fmt.Errorf("make a session's id: %w", err)
	}
	now := At(tx.now)
	s := &sessionRecord{AgentSession: AgentSession{
		ID: SessionID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()), IssueID: issue.ID,
		ActorID: tx.Caller.ID, ActorType: ActorUser, Status: SessionCreated, CreatedAt: now, UpdatedAt: now,
	}, SessionDetails: SessionDetails{ConcurrencyKeys: []string{}}}
	if tx.Caller.Type == ActorAgent {
		s.ActorType = ActorAgent
	}
	s.Inner.Rank = issue.Priority.rank()
	return s, nil
}

// insertSession stores a new session, sets its timer and emits its events.
func (tx *Tx) insertSession(s *sessionRecord, issue *storage.Row[Issue]) ([]byte, error) {
	if !s.Status.Ended() {
		if err := tx.roomForSession(s.issue()); err != nil {
			return nil, err
		}
	}
	switch {
	case s.Status == SessionRunning:
		s.Inner.StartedAt = s.CreatedAt
	case s.Status.Ended():
		s.Inner.EndedAt = s.CreatedAt
	}
	if err := s.stamp(); err != nil {
		return nil, err
	}
	body, err := sessions.Insert(tx, s)
	if err != nil {
		return nil, fmt.Errorf("store a session: %w", err)
	}
	body = publicCopy(body)
	if s.MaxDurationMinutes != nil && !s.Status.Ended() {
		if err := tx.SetTimer(timerSessionBudget, string(s.ID), s.budgetEnds()); err != nil {
			return nil, err
		}
	}
	if err := tx.Emit(eventSessionCreated, issue.Header, s.told(body), nil); err != nil {
		return nil, err
	}
	if err := tx.sessionMoved(nil, s); err != nil {
		return nil, err
	}
	switch {
	case s.Status == SessionRunning:
		return body, tx.issueInProgress(s.issue())
	case s.Status.Ended():
		return body, tx.Emit(eventSessionEnded, issue.Header, s.told(body), nil)
	}
	return body, nil
}

// roomForSession returns CONFLICT if an issue has as many unfinished sessions as it may
// have.
func (tx *Tx) roomForSession(issue storage.ID) error {
	full, err := tx.isFull(issue)
	if err == nil && full {
		err = Conflict(fmt.Sprintf("The issue has %d sessions that have not ended, the most there can be.", maxActiveSessions), "Cancel some of them first.")
	}
	return err
}

// isFull reports whether an issue has as many unfinished sessions as it may have.
func (tx *Tx) isFull(issue storage.ID) (bool, error) {
	active, err := tx.activeSessions(issue)
	return len(active) >= maxActiveSessions, err
}

// budgetEnds returns the time when a session with a maxDuration has used it up: counted from
// its creation before the first attempt (Decision 32), and anew with each further one
// (Decision 62).
func (s *sessionRecord) budgetEnds() time.Time {
	from := cmp.Or(s.Inner.StartedAt, s.Inner.QueuedAt, s.CreatedAt)
	if s.Inner.StartedAt == "" && s.Inner.QueuedAt != "" && s.NotBefore != nil {
		from = max(from, *s.NotBefore) // the next attempt can't begin earlier
	}
	return from.Time().Add(time.Duration(*s.MaxDurationMinutes) * time.Minute)
}
