package tracker

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"switchyard/storage"
)

// A scope of sessions is suspended while no session in it may be claimed: by a hold, or
// because a budget is used up. The scopes are "workspace", "agent:ID" and "provider:NAME",
// and for budgets also "project:ID" and "issue:ID".
//
// suspendScope and resumeScope are all that holds and budgets need. The command that calls them parks
// or releases as many sessions as fit into its batch; a timer does the rest. Until then the
// claims pass over the sessions of a suspended scope. A claim may have looked at no others, so
// claims are woken when the scope has no session in the queue any more, and when it is resumed
// before.

// suspendedScopes caches the suspended scopes of a workspace, of which there are few.
// Owned by the workspace's goroutine.
type suspendedScopes struct {
	loaded bool
	// changed is set if the running command has changed the scopes.
	changed bool
	scopes  [parkConcurrency]map[string]bool // by reason
	// projects are the numbers of projects among the scopes. A session's project has to be read.
	projects [parkConcurrency]int
}

func (s *suspendedScopes) forget() { *s = suspendedScopes{} }

const (
	scopeWorkspace = "workspace"
	scopeAgent     = "agent:"
	scopeProvider  = "provider:"
	scopeProject   = "project:"
	scopeIssue     = "issue:"
)

func suspensionKey(reason parkReason, scope string) storage.Key {
	return storage.Key(nil).Byte(byte(reason)).Str(scope)
}

// suspended returns the suspended scopes of a reason.
func (tx *Tx) suspended(reason parkReason) (map[string]bool, error) {
	s := &tx.buffer.suspended
	if !s.loaded {
		if err := tx.Rows(suspensionTable, nil, nil, func(fields, _ []byte) (bool, error) {
			if len(fields) < 2 || fields[0] >= byte(len(s.scopes)) {
				return false, fmt.Errorf("%w: suspended scope of %d bytes", storage.ErrFormat, len(fields))
			}
			s.set(parkReason(fields[0]), unStr(fields[1:]), true)
			return true, nil
		}); err != nil {
			return nil, fmt.Errorf("read the suspended scopes: %w", err)
		}
		s.loaded = true
	}
	return s.scopes[reason], nil
}

func (s *suspendedScopes) set(reason parkReason, scope string, is bool) {
	if is != s.scopes[reason][scope] && strings.HasPrefix(scope, scopeProject) {
		if is {
			s.projects[reason]++
		} else {
			s.projects[reason]--
		}
	}
	if !is {
		delete(s.scopes[reason], scope)
		return
	}
	if s.scopes[reason] == nil {
		s.scopes[reason] = map[string]bool{}
	}
	s.scopes[reason][scope] = true
}

// suspendScope keeps the sessions of a scope from being claimed, for parkBudget or parkHold. It
// does nothing if the scope is suspended already.
func (tx *Tx) suspendScope(reason parkReason, scope string) error {
	scopes, err := tx.suspended(reason)
	if err != nil || scopes[scope] {
		return err
	}
	if err := tx.Writer().SetValue(suspensionTable, suspensionKey(reason, scope), []byte{0}); err != nil {
		return fmt.Errorf("suspend a scope: %w", err)
	}
	tx.buffer.suspended.changed = true
	tx.buffer.suspended.set(reason, scope, true)
	_, err = tx.settleScope(reason, scope)
	return err
}

// resumeScope ends the suspension of a scope, and releases its sessions, or parks them for the
// next reason. It does nothing if the scope is not suspended.
func (tx *Tx) resumeScope(reason parkReason, scope string) error {
	scopes, err := tx.suspended(reason)
	if err != nil || !scopes[scope] {
		return err
	}
	if err := tx.Writer().DeleteValue(suspensionTable, suspensionKey(reason, scope)); err != nil {
		return fmt.Errorf("resume a scope: %w", err)
	}
	tx.buffer.suspended.changed = true
	tx.buffer.suspended.set(reason, scope, false)
	parking, err := tx.hasTimer(timerScope, scopeSubject(reason, scope))
	if err != nil {
		return err
	}
	if parking {
		tx.wakeClaimers() // for the sessions that were not parked yet
	}
	_, err = tx.settleScope(reason, scope)
	return err
}

// suspendedBy returns the first suspended scope of a reason that a session is in, or "".
func (tx *Tx) suspendedBy(reason parkReason, s *sessionRecord) (string, error) {
	scopes, err := tx.suspended(reason)
	if err != nil || len(scopes) == 0 {
		return "", err
	}
	for _, scope := range [...]string{scopeWorkspace, scopeAgent + s.AgentID, scopeProvider + s.Provider, scopeIssue + string(s.IssueID)} {
		if scopes[scope] {
			return scope, nil
		}
	}
	return tx.suspendedProject(reason, s.issue())
}

// suspendedProject returns the scope of an issue's project if it is suspended for a reason, or "".
func (tx *Tx) suspendedProject(reason parkReason, issue storage.ID) (string, error) {
	scopes, err := tx.suspended(reason)
	if err != nil || tx.buffer.suspended.projects[reason] == 0 {
		return "", err
	}
	project, err := tx.projectOf(issue)
	if err != nil || project == "" || !scopes[scopeProject+project] {
		return "", err
	}
	return scopeProject + project, nil
}

// passesOver reports whether claims pass over the sessions of an agent and a provider,
// which are encoded as in keys.
func (tx *Tx) passesOver(agent, provider []byte) (bool, error) {
	for _, reason := range [...]parkReason{parkBudget, parkHold} {
		scopes, err := tx.suspended(reason)
		if err != nil {
			return false, err
		}
		if len(scopes) > 0 && (scopes[scopeWorkspace] || scopes[scopeAgent+unStr(agent)] || scopes[scopeProvider+unStr(provider)]) {
			return true, nil
		}
	}
	return false, nil
}

// passesOverIssue reports whether claims pass over the sessions of an issue.
func (tx *Tx) passesOverIssue(issue storage.ID) (bool, error) {
	for _, reason := range [...]parkReason{parkBudget, parkHold} {
		scopes, err := tx.suspended(reason)
		if err != nil || len(scopes) > 0 && scopes[scopeIssue+issue.String()] {
			return err == nil, err
		}
		if scope, err := tx.suspendedProject(reason, issue); err != nil || scope != "" {
			return err == nil, err
		}
	}
	return false, nil
}

// timerScope continues to park or release the sessions of a scope. Its subject is the number
// of the reason, and the scope.
const timerScope = "session.scope"

func scopeSubject(reason parkReason, scope string) string {
	return strconv.Itoa(int(reason)) + " " + scope
}

// parseScopeSubject parses the subject of a timer of a scope and reports whether it is one.
func parseScopeSubject(subject string) (reason parkReason, scope string, ok bool) {
	number, scope, _ := strings.Cut(subject, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n <= 0 || n >= int(parkConcurrency) {
		return 0, "", false
	}
	return parkReason(n), scope, true
}

// settleScope parks the sessions of a scope that has been suspended, or releases those of
// one that has been resumed, and sets the timer if some are left. It reports whether it has
// taken the last session of a suspended scope out of the claim queue.
func (tx *Tx) settleScope(reason parkReason, scope string) (unqueued bool, err error) {
	scopes, err := tx.suspended(reason)
	if err != nil {
		return false, err
	}
	var more bool
	if scopes[scope] {
		unqueued, more, err = tx.parkScope(reason, scope)
	} else {
		more, err = tx.releaseScope(reason, scope)
	}
	if err != nil {
		return false, err
	}
	subject := scopeSubject(reason, scope)
	if more {
		return unqueued, tx.SetTimerAtOnce(timerScope, subject)
	}
	return unqueued, tx.ClearTimer(timerScope, subject)
}

var settleScopeOp = NewCommand[TimerIn, None]("SettleScope", "Park or release the sessions of a scope", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	reason, scope, ok := parseScopeSubject(in.Subject)
	if !ok {
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	}
	unqueued, err := tx.settleScope(reason, scope)
	if unqueued {
		tx.wakeClaimers()
	}
	return Reply{Outcome: NoContent}, err
}, Prompt)

// releaseScope gives sessions that are parked for a scope their place anew, and reports
// whether some are left.
func (tx *Tx) releaseScope(reason parkReason, scope string) (more bool, err error) {
	keys, more, err := tx.parkedUnder(suspensionKey(reason, scope), maxReleased)
	if err != nil {
		return false, err
	}
	left, err := tx.reparkKeys(keys)
	return more || left, err
}

// parkedUnder returns the primary keys of the first sessions under a prefix of the index
// of parked sessions, and reports whether there are more.
func (tx *Tx) parkedUnder(prefix storage.Key, most int) (keys [][]byte, more bool, err error) {
	err = tx.Rows(sessionParked, prefix, nil, func(fields, _ []byte) (bool, error) {
		if more = len(keys) == most; more {
			return false, nil
		}
		keys = append(keys, append([]byte(nil), fields[len(fields)-storage.ListedKeyLen:]...))
		return true, nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("list parked sessions: %w", err)
	}
	return keys, more, nil
}

// maxScanned is the number of index entries that one command looks at for sessions of a
// scope that has been suspended.
const maxScanned = 5000

// parkScope parks sessions of a suspended scope: those in the claim queue, and those that
// are parked for a later reason. The row of the scope has the place where it goes on. It
// reports whether it has parked the last one of the queue, and whether some are left.
func (tx *Tx) parkScope(reason parkReason, scope string) (unqueued, more bool, err error) {
	key := suspensionKey(reason, scope)
	at, err := tx.Value(suspensionTable, key, nil)
	if err != nil || len(at) == 0 {
		return false, false, err
	}
	phase, from := parkReason(at[0]), at[1:]
	if issue, is := strings.CutPrefix(scope, scopeIssue); is {
		more, err = tx.parkIssue(issue)
		return !more, more, err
	}
	budget := maxScanned
	for {
		var done bool
		if from, done, err = tx.parkPhase(scope, phase, from, &budget); err != nil {
			return false, false, err
		}
		if !done {
			break
		}
		unqueued = unqueued || phase == 0
		if phase, from = max(phase, reason)+1, nil; phase > parkConcurrency {
			return unqueued, false, nil
		}
	}
	value := append([]byte{byte(phase)}, from...)
	return unqueued, true, tx.Writer().SetValue(suspensionTable, key, value)
}

// parkIssue parks the sessions of an issue.
func (tx *Tx) parkIssue(id string) (more bool, err error) {
	issue, ok := storage.ParseID(id)
	if !ok {
		return false, nil
	}
	keys, err := tx.activeSessions(issue)
	if err != nil {
		return false, err
	}
	more, err = tx.reparkKeys(keys)
	return more, err
}

// parkPhase parks sessions of a scope that are in the claim queue (phase 0) or parked for
// the reason phase, from an entry on. It reports whether it came to the end, or else from
// which entry to go on.
func (tx *Tx) parkPhase(scope string, phase parkReason, from []byte, budget *int) (next []byte, done bool, err error) {
	index, prefix := sessionQueue, storage.Key(nil)
	agent, ofAgent := strings.CutPrefix(scope, scopeAgent)
	provider, ofProvider := strings.CutPrefix(scope, scopeProvider)
	switch {
	case phase > 0:
		index, prefix = sessionParked, prefix.Byte(byte(phase))
	case ofAgent:
		index, prefix = sessionQueueByAgent, prefix.Str(agent)
	}
	var keys [][]byte
	done = true
	err = tx.Rows(index, prefix, from, func(fields, _ []byte) (bool, error) {
		if *budget == 0 || len(keys) == maxReleased {
			next, done = append([]byte(nil), fields[len(prefix):]...), false
			return false, nil
		}
		*budget--
		rest, pk := fields[len(prefix):len(fields)-storage.ListedKeyLen], fields[len(fields)-storage.ListedKeyLen:]
		wanted := true
		switch {
		case phase > 0:
			parked := strs(rest, 3)
			wanted = !ofAgent && !ofProvider || ofAgent && string(parked[1]) == string(storage.Key(nil).Str(agent)) || ofProvider && string(parked[2]) == string(storage.Key(nil).Str(provider))
		case ofProvider:
			wanted = bytes.HasSuffix(rest, storage.Key(nil).Str(provider))
		}
		if wanted {
			keys = append(keys, append([]byte(nil), pk...))
		}
		return true, nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("look for the sessions of a scope: %w", err)
	}
	for i := range keys {
		more, err := tx.reparkKeys(keys[i : i+1])
		if err != nil {
			return nil, false, err
		}
		if more {
			return nil, false, nil // the parked ones are gone from the index: begin it again
		}
	}
	return next, done, nil
}

// strs splits what Key.Str wrote n times, each with its terminator. Missing parts are nil.
func strs(b []byte, n int) [][]byte {
	parts := make([][]byte, n)
	for i := range parts {
		end := bytes.IndexByte(b, 0)
		if end < 0 {
			break
		}
		parts[i], b = b[:end+1], b[end+1:]
	}
	return parts
}
