package tracker

import (
	"time"

	json "github.com/goccy/go-json"
)

// DispatchIssueIn is an issue to dispatch.
type DispatchIssueIn struct {
	ID           string      `path:"id"`
	AgentID      Opt[string] `json:"agentId" rules:"min=1,max=255"`
	Provider     Opt[string] `json:"provider" rules:"min=1,max=200"`
	Model        Opt[string] `json:"model" rules:"max=200"`
	Repo         Opt[string] `json:"repo" rules:"nullable,max=255"`
	Branch       Opt[string] `json:"branch" rules:"nullable,max=255"`
	Instructions Opt[string] `json:"instructions" rules:"max=131072"`
	Preflight    bool        `json:"preflight"`
	Mode         Opt[string] `json:"mode" enum:"build,plan,implement_plan"`
	SessionOptions
}

// Validate checks what the tags can't express.
func (in *DispatchIssueIn) Validate(faults *Faults) { in.validateAt("", faults) }

// ValidateFor checks the time of the first claim.
func (in *DispatchIssueIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	in.validateTimes(now, "", faults)
}

// DispatchedSession is the answer to a dispatch.
type DispatchedSession struct {
	ShownSession
	Preflight Preflight `json:"preflight"`
}

// DispatchIssue makes a session for an agent to claim (Decisions 29 and 31).
var DispatchIssue = NewCommand[DispatchIssueIn, DispatchedSession]("DispatchIssue", "Dispatch an issue to an agent", Needs{Write, "sessions"}, dispatchIssue, StrictBody, Answers(Created))

func dispatchIssue(tx *Tx, in *DispatchIssueIn) (Reply, error) {
	row, err := tx.issue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("issue")
	}
	var faults Faults
	after, err := tx.checkOptions(&in.SessionOptions, "", &faults)
	if err != nil {
		return Reply{}, err
	}
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	if err := row.Value.refuseArchived(); err != nil {
		return Reply{}, err
	}
	s, body, preflight, err := tx.addSession(&newSession{
		Issue: row, AgentID: in.AgentID.Value, Provider: in.Provider.Value, Model: in.Model.Value,
		Repo: in.Repo, Branch: in.Branch, Instructions: in.Instructions, Mode: in.Mode.Value,
		Options: in.SessionOptions, Strict: in.Preflight, After: after,
	})
	if err != nil {
		return Reply{}, err
	}
	found, err := json.Marshal(preflight)
	if err != nil {
		return Reply{}, err
	}
	body = append(appendDerived(body, s), `,"preflight":`...)
	version := uint64(1)
	if after.failed != nil { // the session was canceled at once
		version++
	}
	tag, err := tx.changedTag(version, s)
	return Reply{Outcome: Created, Body: append(append(body, found...), '}'), ETag: tag}, err
}

// derivedNow returns the derivedStatus of a session that has just changed, and so can't
// be stalled.
func (s *sessionRecord) derivedNow() string {
	if f := s.flags(); f&(sessionIsWaiting|sessionAsks) != 0 && f&sessionHasEnded == 0 {
		return derivedNeedsInput
	}
	return ""
}

// told returns the JSON of a changed session for its events: the public part of its record, with
// derivedStatus and usage. What it waits for depends on who asks, and its plan is in changes.
func (s *sessionRecord) told(body []byte) []byte {
	return append(appendDerived(append(make([]byte, 0, len(body)+160), body...), s), '}')
}

// appendDerived replaces the closing brace of a changed session's public JSON by its
// derivedStatus and usage.
func appendDerived(body []byte, s *sessionRecord) []byte {
	body = append(body[:len(body)-1], `,"derivedStatus":`...)
	if d := s.derivedNow(); d != "" {
		body = append(append(append(body, '"'), d...), '"')
	} else {
		body = append(body, "null"...)
	}
	if s.Inner.Usage == nil {
		return appendUsage(body, nil)
	}
	return appendUsage(body, s.Inner.Usage.appendJSON(nil))
}
