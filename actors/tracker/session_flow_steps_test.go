package tracker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// These are the operations on sessions of flowModel. An operation that is refused is one of no interest here: the
// records have to be as they were.

// any draws a session.
func (m *flowModel) any(t *rapid.T, fits func(*sessionRecord) bool) *sessionRecord {
	all := m.state(t).all
	if fits != nil {
		all = slices.DeleteFunc(all, func(s *sessionRecord) bool { return !fits(s) })
	}
	if len(all) == 0 {
		t.Skip("no such session yet: rapid draws another step")
	}
	return pick(t, "session", all)
}

func unfinished(s *sessionRecord) bool { return !s.Status.Ended() }

func (m *flowModel) options(t *rapid.T) (o SessionOptions) {
	o.WhenReady = onceIn(t, 2, "when ready")
	if onceIn(t, 3, "keys") {
		o.ConcurrencyKeys = Some(pick(t, "keys", [][]string{{"k"}, {"l"}, {"k", "l"}, {"l", "k"}}))
	}
	if onceIn(t, 6, "put off") {
		o.NotBefore = Some(string(At(m.now.Add(10 * time.Second))))
	}
	if onceIn(t, 8, "duration") {
		o.MaxDuration = Some(int64(1))
	}
	if onceIn(t, 4, "retry") {
		o.Retry = Some(RetryIn{MaxAttempts: Some(int64(2)), BackoffSeconds: Some(pick(t, "backoff", []int64{0, 5})), On: Some([]string{"lapsed", "failed"})})
	}
	if onceIn(t, 4, "queued") {
		var ids []string
		for range rapid.IntRange(1, 2).Draw(t, "predecessors") {
			if all := m.state(t).all; len(all) > 0 && onceIn(t, 2, "a session") {
				ids = append(ids, string(pick(t, "predecessor", all).ID))
			} else {
				ids = append(ids, string(m.anyIssue(t)))
			}
		}
		o.QueuedAfter = queuedBehind(ids...)
	}
	return o
}

func (m *flowModel) dispatchOne(t *rapid.T) {
	in := DispatchIssueIn{ID: string(m.anyIssue(t)), Preflight: onceIn(t, 8, "preflight"), SessionOptions: m.options(t)}
	if !onceIn(t, 6, "no agent") {
		in.AgentID = Some(pick(t, "agent", m.agents))
	}
	if onceIn(t, 2, "provider") {
		in.Provider = Some(pick(t, "name", []string{"p", "q"}))
	}
	_, _ = m.exec(t, pick(t, "caller", m.callers), DispatchIssue, &in)
}

func (m *flowModel) claimIn(t *rapid.T) ClaimSessionsIn {
	in := ClaimSessionsIn{Limit: rapid.IntRange(1, 3).Draw(t, "limit"), LeaseSeconds: pick(t, "lease", []int64{20, 3600})}
	if onceIn(t, 2, "of an agent") {
		in.AgentID = Some(pick(t, "agent", m.agents))
	}
	if onceIn(t, 4, "of a provider") {
		in.Provider = Some(pick(t, "provider", []string{"p", "q", "external"}))
	}
	return in
}

func (m *flowModel) claimSome(t *rapid.T) {
	in := m.claimIn(t)
	if _, err := m.exec(t, pick(t, "caller", m.callers), ClaimSessions, &in); err != nil {
		t.Fatalf("a claim: %v", err)
	}
}

func (m *flowModel) claimWaits(t *rapid.T) {
	in, caller := m.claimIn(t), pick(t, "caller", m.callers)
	in.Wait = 30
	reply, err := m.exec(t, caller, ClaimSessions, &in)
	if err != nil {
		t.Fatalf("a claim: %v", err)
	}
	if reply.Wait != nil {
		m.began++
		in.rounds = 0
		m.waiters = append(m.waiters, &flowWaiter{m.began, caller, in, reply.Wait.Topic})
	}
}

func (m *flowModel) waiterLeaves(t *rapid.T) {
	if len(m.waiters) == 0 {
		t.Skip("no claim waits yet: rapid draws another step")
	}
	i := rapid.IntRange(0, len(m.waiters)-1).Draw(t, "waiter")
	m.waiters = slices.Delete(m.waiters, i, i+1)
}

// useLane sends a report or a heartbeat with the lane token of any claim. It must be refused if the claim is over.
func (m *flowModel) useLane(t *rapid.T) {
	if len(m.lanes) == 0 {
		t.Skip("no lane yet: rapid draws another step")
	}
	token := pick(t, "lane", slices.SortedFunc(maps.Keys(m.lanes), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.lanes[a].session, m.lanes[b].session), cmp.Compare(m.lanes[a].claim, m.lanes[b].claim))
	}))
	lane := m.lanes[token]
	s := m.state(t).of[lane.session]
	holds := s != nil && s.Inner.Lease != nil && s.Inner.Claims == lane.claim
	var err error
	if onceIn(t, 2, "heartbeat") {
		_, err = m.exec(t, token, Heartbeat, &HeartbeatIn{ID: lane.session, Usage: m.usage(t)})
	} else {
		to := pick(t, "to", []SessionStatus{SessionCompleted, SessionFailed})
		_, err = m.exec(t, token, ReportSession, &ReportSessionIn{ID: lane.session, Status: Some(to), Result: m.result(t)})
	}
	if err == nil && !holds {
		m.fail(t, "the lane of claim %d of session %s was taken", lane.claim, lane.session)
	}
}

func (m *flowModel) usage(t *rapid.T) (u Opt[UsageIn]) {
	if onceIn(t, 2, "usage") {
		u = used(int64(rapid.IntRange(1, 5).Draw(t, "cost")), "")
	}
	return u
}

// result is one that no other report has, so that none repeats the final one.
func (m *flowModel) result(t *rapid.T) Opt[string] {
	return Some(rapid.StringMatching(`[a-z]{12}`).Draw(t, "result"))
}

func (m *flowModel) conditions(t *rapid.T) (list []WaitCondition) {
	for range rapid.IntRange(1, 3).Draw(t, "conditions") {
		switch rapid.IntRange(0, 5).Draw(t, "condition") {
		case 0:
			list = append(list, WaitCondition{Session: string(m.any(t, nil).ID)})
		case 1:
			list = append(list, WaitCondition{Children: true})
		case 2:
			list = append(list, WaitCondition{Issue: string(m.anyIssue(t))})
		case 3:
			list = append(list, WaitCondition{After: string(At(m.now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "seconds")) * time.Second)))})
		case 4:
			list = append(list, WaitCondition{PR: pick(t, "pr", []string{"merged", "closed"})})
		default:
			list = append(list, WaitCondition{Reply: true})
		}
	}
	return list
}

func (m *flowModel) reportOne(t *rapid.T) {
	s := m.any(t, func(s *sessionRecord) bool { return s.engaged() || unfinished(s) && s.id()[15]%4 == 0 })
	to := pick(t, "to", []SessionStatus{SessionRunning, SessionWaiting, SessionWaiting, SessionCompleted, SessionCompleted, SessionFailed, SessionCanceled})
	in := ReportSessionIn{ID: s.ID, Status: Some(to), Usage: m.usage(t), Result: m.result(t)}
	if to == SessionWaiting && !onceIn(t, 4, "asks") {
		in.WaitFor = Some(anyOf(m.conditions(t)...))
		if onceIn(t, 2, "all") {
			in.WaitFor = Some(allOf(m.conditions(t)...))
		}
	}
	if onceIn(t, 10, "pr") {
		in.PRState = Some("merged")
	}
	_, _ = m.exec(t, pick(t, "caller", m.callers), ReportSession, &in)
}

func (m *flowModel) beatOne(t *rapid.T) {
	_, _ = m.exec(t, m.admin, Heartbeat, &HeartbeatIn{ID: m.any(t, unfinished).ID, Usage: m.usage(t)})
}

func (m *flowModel) releaseOne(t *rapid.T) {
	s := m.any(t, func(s *sessionRecord) bool { return s.Inner.Lease != nil })
	in := ReleaseSessionIn{ID: s.ID, ReleaseFields: ReleaseFields{Reason: "r", CountAttempt: onceIn(t, 2, "count")}}
	if onceIn(t, 3, "later") {
		in.RetryAfterSeconds = Some(int64(10))
	}
	_, _ = m.exec(t, pick(t, "caller", m.callers), ReleaseSession, &in)
}

func (m *flowModel) replyToOne(t *rapid.T) {
	s := m.any(t, func(s *sessionRecord) bool { return s.Status == SessionWaiting })
	_, _ = m.exec(t, m.admin, ReplyToSession, &ReplyToSessionIn{ID: s.ID, Message: "go"})
}

func (m *flowModel) cancelOne(t *rapid.T) {
	_, _ = m.exec(t, m.admin, CancelSession, &CancelSessionIn{ID: m.any(t, unfinished).ID})
}

func (m *flowModel) retrySome(t *rapid.T) {
	if onceIn(t, 4, "dead letters") {
		_, _ = m.exec(t, pick(t, "caller", m.callers), RedriveSessions, &RedriveSessionsIn{Limit: 2})
		return
	}
	s := m.any(t, func(s *sessionRecord) bool { return s.Status.Ended() })
	_, _ = m.exec(t, m.admin, RetrySession, &RetrySessionIn{ID: s.ID})
}

func (m *flowModel) registerOne(t *rapid.T) {
	in := RegisterSessionIn{IssueID: string(m.anyIssue(t)), Provider: "p", Status: pick(t, "status", sessionStatuses[:])}
	_, _ = m.exec(t, pick(t, "caller", m.callers), RegisterSession, &in)
}

func (m *flowModel) spawnOne(t *rapid.T) {
	in := SpawnSessionIn{ID: m.any(t, unfinished).ID, Title: "Child", AgentID: Some(pick(t, "agent", m.agents))}
	if reply, err := m.exec(t, m.admin, SpawnSession, &in); err == nil {
		m.issues = append(m.issues, decode[SpawnedSession](m, reply.Body).Issue.ID)
	}
}

func (m *flowModel) timePasses(t *rapid.T) {
	d := time.Duration(rapid.IntRange(1, 45).Draw(t, "seconds")) * time.Second
	switch rapid.IntRange(0, 12).Draw(t, "long") {
	case 0:
		d = 25 * 24 * time.Hour
	case 1:
		d = 2 * time.Hour
	}
	m.trace("%s pass", d)
	m.passing(t, d)
}
