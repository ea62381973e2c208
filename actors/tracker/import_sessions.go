package tracker

import (
	"fmt"
	"slices"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/actors/tracker/resultschema"
	"switchyard/storage"
)

// takeSession stores a session as it is. Its inner part follows in a line of its own. A
// session whose issue was deleted has no issue in the file.
func takeSession(im *importing, data []byte) error {
	var public struct {
		AgentSession
		SessionDetails
		Plan []PlanStep `json:"plan"`
	}
	if err := im.decode(data, &public); err != nil {
		return err
	}
	s := sessionRecord{AgentSession: public.AgentSession, SessionDetails: public.SessionDetails}
	if err := im.needNewer(string(s.ID), s.issue()); err != nil {
		return err
	}
	if err := im.checkSession(&s); err != nil {
		return err
	}
	if err := im.completeSession(&s); err != nil {
		return err
	}
	if !s.Status.Ended() {
		full, err := im.tx.isFull(s.issue())
		if err != nil {
			return err
		}
		if full {
			return im.refuse("The issue %s has %d sessions that have not ended, the most there can be.", s.IssueID, maxActiveSessions)
		}
	}
	s.Inner.Plan = public.Plan != nil
	if err := restore(im, &sessions, &s); err != nil {
		return err
	}
	if public.Plan != nil {
		if err := im.takePlan(s.id(), public.Plan); err != nil {
			return err
		}
	}
	if err := im.setBudget(&s); err != nil {
		return err
	}
	return im.tx.sessionMoved(nil, &s)
}

// checkSession checks what the types of a session's fields don't say.
func (im *importing) checkSession(s *sessionRecord) error {
	if s.AgentID == "" || isLonger(s.AgentID, 255) || s.MaxDurationMinutes != nil && (*s.MaxDurationMinutes < 1 || *s.MaxDurationMinutes > 1440) {
		return im.refuse("data must have an agentId, and maxDurationMinutes of 1 to 1440 or null.")
	}
	if s.ProviderSessionID != nil && *s.ProviderSessionID == "" {
		return im.refuse("data.providerSessionId must not be empty.")
	}
	if s.ConcurrencyKeys == nil {
		s.ConcurrencyKeys = []string{}
	}
	for i, key := range s.ConcurrencyKeys {
		if !isConcurrencyKey(key) || slices.Contains(s.ConcurrencyKeys[:i], key) || i == maxImportKeys {
			return im.refuse("data.concurrencyKeys must be at most %d concurrency keys, each once.", maxImportKeys)
		}
	}
	if err := im.checkLists(s); err != nil {
		return err
	}
	if s.DeadLetteredAt != nil && s.Status != SessionFailed {
		return im.refuse("data.deadLetteredAt is of failed sessions only.")
	}
	return im.checkRetry(s.Retry)
}

// Bounds of what a session's text of secondaryRepos can have, and its resultSchemaErrors in all: more than the
// service makes. A claimer gets the session in one answer.
const (
	maxImportRepos      = 5
	maxImportReposText  = 16 << 10 // bytes
	maxImportErrors     = 100
	maxImportErrorsText = 64 << 10 // bytes
)

// checkLists checks the parts of a session that have bounds in bytes, or are lists.
func (im *importing) checkLists(s *sessionRecord) error {
	if schema := s.ResultSchema; !isNull(schema) && (schema[0] != '{' || len(schema) > resultschema.MaxSchema) {
		return im.refuse("data.resultSchema must be an object of at most %d bytes of JSON, or null.", resultschema.MaxSchema)
	}
	if len(s.StructuredResult) > maxStructured {
		return im.refuse("data.structuredResult must be at most %d bytes of JSON.", maxStructured)
	}
	if errs := s.ResultSchemaErrors; errs != nil {
		size := 0
		for _, text := range *errs {
			size += len(text)
		}
		if len(*errs) > maxImportErrors || size > maxImportErrorsText {
			return im.refuse("data.resultSchemaErrors must be at most %d texts of together %d bytes.", maxImportErrors, maxImportErrorsText)
		}
	}
	if text := s.SecondaryRepos; text != nil {
		var repos []SecondaryRepo
		if len(*text) > maxImportReposText || json.Unmarshal([]byte(*text), &repos) != nil || len(repos) > maxImportRepos {
			return im.refuse("data.secondaryRepos must be a text with a list of at most %d repositories, or null.", maxImportRepos)
		}
	}
	return nil
}

// maxImportKeys is the number of concurrency keys that a session can have: those of its
// dispatch, and one of each field that its agent adds.
const maxImportKeys = 4 + 3

// checkRetry checks the policy of a session or an agent.
func (im *importing) checkRetry(r *RetryPolicy) error {
	if r == nil {
		return nil
	}
	if r.MaxAttempts < 1 || r.MaxAttempts > 20 || r.BackoffSeconds < 0 || r.BackoffSeconds > 86_400 ||
		r.MaxBackoffSeconds != nil && (*r.MaxBackoffSeconds < 0 || *r.MaxBackoffSeconds > int64(maxPause/time.Second)) {
		return im.refuse("data.retry is out of the bounds of a policy.")
	}
	for i, end := range r.On {
		if end != retryLapsed && end != retryFailed || slices.Contains(r.On[:i], end) {
			return im.refuse("data.retry.on must have lapsed and failed only, each once.")
		}
	}
	return nil
}

// completeSession sets what follows from a session's issue and from its other fields.
func (im *importing) completeSession(s *sessionRecord) error {
	issue, err := issues.Get(im.tx, issueKey(s.issue()))
	if err != nil {
		return fmt.Errorf("read an issue: %w", err)
	}
	s.Inner.Orphan = issue == nil
	if issue == nil {
		if !s.Status.Ended() {
			return im.refuse("There is no issue %s before this line.", s.IssueID)
		}
		im.wasDeleted(s.issue())
	} else {
		s.Inner.Rank, s.Inner.Team, s.Inner.Restricted = issue.Value.Priority.rank(), "", false
	}
	if s.Inner.StartedAt == "" && s.Status == SessionRunning {
		s.Inner.StartedAt = s.CreatedAt
	}
	switch ended := s.Status.Ended(); {
	case !ended:
		s.Inner.EndedAt = ""
	case s.Inner.EndedAt == "":
		s.Inner.EndedAt = s.UpdatedAt
	}
	return im.tx.setParking(s)
}

// setBudget sets the timer of a session with a maxDuration.
func (im *importing) setBudget(s *sessionRecord) error {
	if s.MaxDurationMinutes == nil || s.Status.Ended() {
		return nil
	}
	return im.tx.SetTimer(timerSessionBudget, string(s.ID), s.budgetEnds())
}

// takeSessionState completes a session with its inner part. Lane tokens stay where they
// were made, so the claimer of the session can't go on with it: the lease ends as it
// would have.
func takeSessionState(im *importing, data []byte) error {
	var t transferredState
	if err := im.decode(data, &t); err != nil {
		return err
	}
	id, _ := storage.ParseID(t.SessionID)
	if err := im.storeLog(id); err != nil {
		return err
	}
	row, err := im.needSession(t.SessionID)
	if err != nil {
		return err
	}
	s := row.Value
	before := s.Inner
	s.Inner = t.sessionInner
	s.Inner.First, s.Inner.Last, s.Inner.LastActivity, s.Inner.LastType = before.First, before.Last, before.LastActivity, before.LastType
	s.Inner.Lanes, s.Inner.Stale, s.Inner.Final, s.Inner.Retried, s.Inner.RetriedBy, s.Inner.Plan = nil, nil, nil, nil, "", before.Plan
	if err := im.checkState(&s); err != nil {
		return err
	}
	if err := im.completeSession(&s); err != nil {
		return err
	}
	if _, err := sessions.Update(im.tx, row, &s); err != nil {
		return fmt.Errorf("store a session: %w", err)
	}
	if err := im.setBudget(&s); err != nil {
		return err
	}
	if l := s.Inner.Lease; l != nil {
		if err := im.leasedAlone(&s); err != nil {
			return err
		}
		if err := im.tx.armLeases(l.CheckAt.Time()); err != nil {
			return err
		}
	}
	if err := im.setWait(&row.Value, &s); err != nil {
		return err
	}
	return im.tx.sessionMoved(&row.Value, &s)
}

// leasedAlone refuses the lease of a session whose agent has that of another session of the issue.
// Sessions that were registered have no leases, and an agent may have several.
func (im *importing) leasedAlone(s *sessionRecord) error {
	var other SessionID
	err := im.tx.Rows(sessionEngaged, storage.Key(nil).Str(s.AgentID).ID(s.issue()), nil, func(fields, _ []byte) (bool, error) {
		row, err := sessions.Get(im.tx, fields[len(fields)-storage.ListedKeyLen:])
		if err == nil && row != nil && row.Value.Inner.Lease != nil && row.Value.ID != s.ID {
			other = row.Value.ID
		}
		return other == "", err
	})
	if err != nil {
		return fmt.Errorf("look for the sessions of an agent: %w", err)
	}
	if other != "" {
		return im.refuse("data.lease: The agent has a lease of another session of the issue, %s.", other)
	}
	return nil
}

// checkState checks the inner part of a session.
func (im *importing) checkState(s *sessionRecord) error {
	in := &s.Inner
	if in.Depth < 0 || in.Attempts < 0 || in.Claims < 0 {
		return im.refuse("data.depth, data.attempts and data.claims must not be negative.")
	}
	if a := in.Attempt; a != nil && (a.Number < 1 || a.Number != in.Claims || a.ClaimedAt == "" || (a.End == "") != (a.EndedAt == "")) {
		return im.refuse("data.attempt must be the last of the claims.")
	}
	if u := in.Usage; u != nil && !u.valid() {
		return im.refuse("data.usage must have numbers of 0 or more.")
	}
	if l := in.Lease; l != nil && (!s.engaged() || l.CheckAt > l.ExpiresAt || l.Seconds < 1 || l.Seconds > 3600 || l.CheckAt == "" || l.ExpiresAt == "") {
		return im.refuse("data.lease must be that of a session that runs.")
	}
	if p := in.Park; p != nil && (s.Status != SessionWaiting || in.External || p.Reason == 0 || p.Reason > parkBlocked) {
		in.Park = nil // found anew, for sessions that are created
	}
	if s.Status != SessionWaiting {
		in.Predecessor, in.Pending, in.Missing = "", nil, nil
	}
	if err := im.checkWait(s); err != nil {
		return err
	}
	for _, id := range s.pending() {
		if _, err := im.needSession(id); err != nil {
			return err
		}
		if string(id) >= string(s.ID) {
			return im.refuse("A session can wait for an older one only.")
		}
	}
	return nil
}

func takeSessionBrief(im *importing, data []byte) error {
	var b transferredBrief
	if err := im.decode(data, &b); err != nil {
		return err
	}
	row, err := im.needSession(b.SessionID)
	if err != nil {
		return err
	}
	there, err := im.tx.brief(row.Value.id())
	if err != nil || there != nil {
		if err == nil {
			err = im.refuse("The session has instructions already.")
		}
		return err
	}
	return im.tx.setBrief(row.Value.id(), &b.Instructions)
}
