package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// WaitingReason is a reason why no agent works on a session.
type WaitingReason string

// The reasons, the first that applies first (Decision 64).
const (
	WaitingPreflight   WaitingReason = "preflight"
	WaitingWaitFor     WaitingReason = "wait_for"
	WaitingQueuedAfter WaitingReason = "queued_after"
	WaitingBlocked     WaitingReason = "blocked"
	WaitingNotBefore   WaitingReason = "not_before"
	WaitingBudget      WaitingReason = "budget"
	WaitingHold        WaitingReason = "hold"
	WaitingConcurrency WaitingReason = "concurrency"
	WaitingAgentFull   WaitingReason = "agent_full"
	WaitingNoClaimer   WaitingReason = "no_claimer"
)

// waitingReasons lists the reasons. Those of parked sessions are at the number of their
// parkReason less one.
var waitingReasons = [...]WaitingReason{
	WaitingPreflight, WaitingWaitFor, WaitingQueuedAfter, WaitingBlocked, WaitingNotBefore, WaitingBudget, WaitingHold, WaitingConcurrency,
	WaitingAgentFull, WaitingNoClaimer,
}

// EnumValues implements Enumerated.
func (WaitingReason) EnumValues() []string { return enumTexts(waitingReasons[:]) }

// WaitingFor says why no agent works on a session (Decision 64).
type WaitingFor struct {
	Reason WaitingReason `json:"reason"`
	// On are the ids of sessions, issues or agents, or else the keys, scopes or fields, that
	// the session waits for.
	On []string `json:"on"`
	// Hidden is the number of sessions and issues that On lacks because the caller may not
	// see them.
	Hidden int `json:"hidden,omitempty"`
}

const (
	// maxWaitingOn is the most that On has.
	maxWaitingOn = 10
	// maxWaitingLooked is the number of an issue's blockers or a session's children that one
	// explanation looks at.
	maxWaitingLooked = 200
)

// explainer explains the sessions of one answer. It remembers what several of them need.
type explainer struct {
	v    *View
	full map[string]bool // by agent
}

// mayWait reports, from the stored form, whether a session may be waiting for something.
func mayWait(rec storage.Record) bool { return rec.Flags()&(sessionHasEnded|sessionIsRunning) == 0 }

// appendTo appends what a stored session waits for, or null.
func (x *explainer) appendTo(b []byte, rec storage.Record) ([]byte, error) {
	if !mayWait(rec) {
		return append(b, "null"...), nil
	}
	row, err := sessions.Decode(rec)
	if err != nil {
		return b, err
	}
	return x.append(b, &row.Value)
}

// append appends what a session waits for, or null.
func (x *explainer) append(b []byte, s *sessionRecord) ([]byte, error) {
	w, err := x.explain(s)
	if err != nil || w == nil {
		return append(b, "null"...), err
	}
	body, err := json.MarshalWithOption(w, json.DisableHTMLEscape())
	return append(b, body...), err
}

// appendExplained appends a session as in the answers of GET and the list: with its
// derivedStatus, and with what it waits for.
func (x *explainer) appendExplained(b []byte, rec storage.Record) ([]byte, error) {
	b = x.v.appendShown(b, rec)
	b, err := x.appendTo(append(b[:len(b)-1], `,"waitingFor":`...), rec)
	return append(b, '}'), err
}

// explain returns the first reason that applies to a session, or nil.
func (x *explainer) explain(s *sessionRecord) (*WaitingFor, error) {
	if reason := s.parkedFor(); reason != 0 && !s.Status.Ended() && int(reason) <= len(waitingReasons) {
		w := &WaitingFor{Reason: waitingReasons[reason-1], On: []string{}}
		return w, x.parked(w, s)
	}
	if !s.queued() {
		return nil, nil
	}
	full, err := x.agentFull(s.AgentID)
	switch {
	case err != nil:
		return nil, err
	case full:
		return &WaitingFor{Reason: WaitingAgentFull, On: []string{s.AgentID}}, nil
	case x.v.claimersFor(s.AgentID, s.Provider):
		// A claim gives an agent no second session of an issue.
		busy, err := x.v.Has(sessionEngaged, storage.Key(nil).Str(s.AgentID).ID(s.issue()))
		if err != nil {
			return nil, fmt.Errorf("look for a session of the agent: %w", err)
		}
		if !busy {
			return nil, nil
		}
	}
	return &WaitingFor{Reason: WaitingNoClaimer, On: []string{}}, nil
}

// parked names what a parked session waits for.
func (x *explainer) parked(w *WaitingFor, s *sessionRecord) error {
	switch w.Reason {
	case WaitingPreflight:
		w.add(s.Inner.Missing...)
	case WaitingWaitFor:
		return x.conditions(w, s)
	case WaitingQueuedAfter:
		for _, id := range s.pending() {
			if err := x.addSession(w, string(id)); err != nil {
				return err
			}
		}
	case WaitingBlocked:
		return x.blockers(w, s.issue())
	case WaitingBudget, WaitingHold, WaitingConcurrency:
		w.add(s.Inner.Park.Subject)
	}
	return nil
}

// add names things that are not named yet, as long as there is room.
func (w *WaitingFor) add(ids ...string) {
	for _, id := range ids {
		known := false
		for _, other := range w.On {
			known = known || other == id
		}
		if !known && len(w.On) < maxWaitingOn {
			w.On = append(w.On, id)
		}
	}
}

// addSession names a session, or counts it.
func (x *explainer) addSession(w *WaitingFor, id string) error {
	parsed, _ := storage.ParseID(id)
	seen := false
	found, err := sessions.Record(x.v, sessionKey(parsed), func(rec storage.Record) (err error) {
		seen, err = x.v.canViewSession(rec)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("look for a session that another one waits for: %w", err)
	case found && seen:
		w.add(id)
	case found:
		w.Hidden++
	}
	return nil
}

// addIssue names an issue, or counts it. With open it does so only while the issue is.
func (x *explainer) addIssue(w *WaitingFor, id storage.ID, open bool) error {
	row, err := issues.Get(x.v, issueKey(id))
	if err != nil || row == nil || open && row.Value.Status.Closed() {
		return err
	}
	seen, err := x.v.relatedIssue(id)
	switch {
	case err != nil:
		return err
	case seen != nil:
		w.add(id.String())
	default:
		w.Hidden++
	}
	return nil
}

// blockers names the open issues that block an issue.
func (x *explainer) blockers(w *WaitingFor, issue storage.ID) error {
	looked := 0
	return x.v.eachNeighbor(issue, edgeBlocks, inward, func(other storage.ID) (bool, error) {
		looked++
		return looked < maxWaitingLooked, x.addIssue(w, other, true)
	})
}

// conditions names what the conditions are about that have not been met.
func (x *explainer) conditions(w *WaitingFor, s *sessionRecord) (err error) {
	wait := s.Inner.Wait
	if wait == nil {
		return nil
	}
	for i := range wait.Conditions {
		if wait.Met[i] {
			continue
		}
		switch kind, id := wait.Conditions[i].indexed(s); kind {
		case waitSession:
			err = x.addSession(w, id.String())
		case waitChildren:
			err = x.children(w, id)
		case waitIssue, waitPR, waitChecks:
			err = x.addIssue(w, id, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// children names the children of a session that have not ended.
func (x *explainer) children(w *WaitingFor, parent storage.ID) error {
	prefix := storage.Key(nil).ID(parent).Byte(0)
	var keys [][]byte
	if err := x.v.Rows(sessionByParent, prefix, nil, func(fields, _ []byte) (bool, error) {
		keys = append(keys, append([]byte(nil), fields[len(prefix):]...))
		return len(keys) < maxWaitingLooked, nil
	}); err != nil {
		return fmt.Errorf("list a session's children: %w", err)
	}
	for _, pk := range keys {
		row, err := sessions.Get(x.v, pk)
		if err != nil || row == nil {
			return err
		}
		if err := x.addSession(w, string(row.Value.ID)); err != nil {
			return err
		}
	}
	return nil
}

// agentFull reports whether an agent works on as many sessions as it may. It remembers the agents.
func (x *explainer) agentFull(id string) (full bool, err error) {
	if full, known := x.full[id]; known {
		return full, nil
	}
	if full, err = x.v.agentFull(id); err != nil {
		return false, err
	}
	if x.full == nil {
		x.full = map[string]bool{}
	}
	x.full[id] = full
	return full, nil
}

// agentFull reports whether an agent works on as many sessions as it may.
func (v *View) agentFull(id string) (bool, error) {
	if id == unassigned {
		return false, nil
	}
	agent, err := v.agent(id)
	if err != nil || agent == nil || agent.Value.MaxConcurrentSessions == nil {
		return false, err
	}
	key := agentKey(id)
	engaged, err := v.Number(engagedTable, key[:])
	if err != nil {
		return false, fmt.Errorf("count an agent's sessions: %w", err)
	}
	return engaged >= uint64(*agent.Value.MaxConcurrentSessions), nil
}

// ClaimersWaiting returns the number of claims that wait for a topic, or for all topics
// of its group.
type ClaimersWaiting func(workspace storage.ID, of Topic) int

// SeeClaimers sets the way to learn of the claims that wait; nil means there are none.
func (v *View) SeeClaimers(waiting ClaimersWaiting) { v.claimers = waiting }

// claimersFor reports whether a claim waits that could get a session.
func (v *View) claimersFor(agent, provider string) bool {
	if v.claimers == nil {
		return false
	}
	for _, topic := range claimTopics(agent, provider) {
		if v.claimers(v.Workspace(), topic) > 0 {
			return true
		}
	}
	return false
}
