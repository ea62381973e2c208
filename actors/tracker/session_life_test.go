package tracker

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// lifeModel is the expected state of sessions, independent of the table of moves.
type lifeModel struct {
	*agentFixture
	issues   []Issue
	sessions []SessionID
	hook     WebhookID // subscribes to all events
	status   map[SessionID]SessionStatus
	seen     int    // events looked at
	agent    string // the registered one, limited to two sessions
}

// allowed are the moves of a session's life, repeated independently.
var allowed = map[SessionStatus][]SessionStatus{
	SessionCreated: {SessionRunning, SessionCompleted, SessionFailed, SessionCanceled},
	SessionRunning: {SessionWaiting, SessionCreated, SessionCompleted, SessionFailed, SessionCanceled},
	SessionWaiting: {SessionRunning, SessionCreated, SessionCompleted, SessionFailed, SessionCanceled},
}

// For any operations in any order, each session follows its table of moves, an end is
// final, waiters are woken, no agent works on two sessions of one issue, and all rows
// agree.
func TestSessionLife_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &lifeModel{agentFixture: newAgentFixture(t), status: map[SessionID]SessionStatus{}}
		m.hook = decode[WebhookWithSecret](t, m.run(m.admin, CreateWebhook, &CreateWebhookIn{URL: "https://example.com/hook"}).Body).ID
		for range 3 {
			m.issues = append(m.issues, m.work(PriorityLow))
		}
		m.agent = string(m.register(CreateAgentIn{Name: "A", MaxConcurrentSessions: Some(int64(2))}).ID)
		m.follow()
		t.Repeat(map[string]func(*rapid.T){
			"dispatch": m.dispatchAny, "register": m.registerAny, "claim": m.claimAny, "report": m.reportAny,
			"cancel": m.cancelAny, "reply": m.replyAny, "time": m.timePasses, "priority": m.priorityChanges, "batch": m.batchAny, "": m.check,
		})
		m.verify()
	})
}

func (m *lifeModel) dispatchAny(t *rapid.T) {
	in := DispatchIssueIn{Preflight: rapid.Bool().Draw(t, "preflight")}
	if rapid.Bool().Draw(t, "budget") {
		in.MaxDuration = Some(int64(1))
	}
	if agent := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "agent"); agent != "" {
		in.AgentID = Some(agent)
	}
	m.dispatch(rapid.SampledFrom(m.issues).Draw(t, "issue").ID, in)
}

func (m *lifeModel) registerAny(t *rapid.T) {
	in := &RegisterSessionIn{IssueID: string(rapid.SampledFrom(m.issues).Draw(t, "issue").ID), Provider: "p", Status: rapid.SampledFrom(sessionStatuses[:]).Draw(t, "status")}
	if rapid.Bool().Draw(t, "known") {
		in.ProviderSessionID = Some("one")
	}
	m.run(m.admin, RegisterSession, in)
}

func (m *lifeModel) claimAny(t *rapid.T) {
	in := ClaimSessionsIn{Limit: rapid.IntRange(1, 3).Draw(t, "limit"), LeaseSeconds: 30}
	if rapid.Bool().Draw(t, "own") {
		in.AgentID = Some("x")
	}
	if rapid.Bool().Draw(t, "lost") { // the batch is lost and never applied
		req := ServiceRequest("", m.home.Workspace.ID.raw())
		if _, err := m.bufferOf(req.Workspace).Run(ClaimSessions, req, &in, m.now); err != nil {
			t.Fatal(err)
		}
		m.bufferOf(req.Workspace).Discard()
	}
	if got := m.claim(in); len(got) < in.Limit {
		m.nothingLeft(t, in.AgentID.Value)
	}
}

// nothingLeft checks that a claim which got fewer sessions than it asked for left none
// that it could have got.
func (m *lifeModel) nothingLeft(t *rapid.T, agent string) {
	var queued []*sessionRecord
	at, busy := map[string]bool{}, map[string]int{}
	v := m.view(m.home.Workspace.ID.raw())
	if err := sessions.Scan(&v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := sessions.Decode(rec)
		if err != nil {
			return false, err
		}
		s := &row.Value
		if s.engaged() {
			at[s.AgentID+string(s.IssueID)] = true
			busy[s.AgentID]++
		}
		if s.queued() && (agent == "" || s.AgentID == agent) {
			queued = append(queued, s)
		}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, s := range queued {
		if full := s.AgentID == m.agent && busy[m.agent] >= 2; !at[s.AgentID+string(s.IssueID)] && !full {
			t.Fatalf("session %s of agent %s could have been claimed", s.ID, s.AgentID)
		}
	}
}

// any draws a session.
func (m *lifeModel) any(t *rapid.T) SessionID {
	if len(m.sessions) == 0 {
		t.Skip("no session yet: rapid draws another step")
	}
	return rapid.SampledFrom(m.sessions).Draw(t, "session")
}

// full reports whether a session's agent works on as many others as it may.
func (m *lifeModel) full(id SessionID) bool {
	s := m.record(id)
	if s.AgentID != m.agent || s.engaged() {
		return false
	}
	busy := 0
	for _, other := range m.sessions {
		if o := m.record(other); o.AgentID == m.agent && o.engaged() {
			busy++
		}
	}
	return busy >= 2
}

// refused checks that an operation was refused if, and only if, the session has ended,
// the move is not allowed, or the session would run and its agent is full.
func (m *lifeModel) refused(t *rapid.T, id SessionID, to SessionStatus, full bool, err error) {
	from := m.status[id]
	possible := (from == to && !from.Ended() || slices.Contains(allowed[from], to)) && (to != SessionRunning || !full)
	var failure *Error
	switch {
	case err == nil && !possible:
		t.Fatalf("a session that is %s became %s", from, to)
	case err == nil:
	case !errors.As(err, &failure) || failure.Code != CodeConflict:
		t.Fatalf("error %v", err)
	case failure.Details.(SessionConflict).SessionID == id && failure.Details.(SessionConflict).Status != from:
		t.Fatalf("the session is said to be %s, and is %s", failure.Details.(SessionConflict).Status, from)
	case possible && failure.Details.(SessionConflict).SessionID == id:
		t.Fatalf("a session that is %s could not become %s: %v", from, to, err)
	}
}

func (m *lifeModel) reportAny(t *rapid.T) {
	id := m.any(t)
	to := rapid.SampledFrom([]SessionStatus{SessionRunning, SessionWaiting, SessionCompleted, SessionFailed, SessionCanceled}).Draw(t, "to")
	result := rapid.StringMatching(`[a-z]{12}`).Draw(t, "result") // so that no report repeats the final one
	full := m.full(id)
	_, err := m.try(m.admin, ReportSession, &ReportSessionIn{ID: id, Status: Some(to), Result: Some(result)})
	if m.status[id].Ended() && err == nil {
		t.Fatalf("a session that is %s took a report", m.status[id])
	}
	m.refused(t, id, to, full, err)
}

func (m *lifeModel) cancelAny(t *rapid.T) {
	id := m.any(t)
	_, err := m.try(m.admin, CancelSession, &CancelSessionIn{ID: id})
	if ended := m.status[id].Ended(); ended != (err != nil) {
		t.Fatalf("canceling a session that is %s: %v", m.status[id], err)
	}
}

func (m *lifeModel) replyAny(t *rapid.T) {
	id := m.any(t)
	inLine := len(m.record(id).Inner.Pending) > 0
	_, err := m.try(m.admin, ReplyToSession, &ReplyToSessionIn{ID: id, Message: "go on"})
	if ended := m.status[id].Ended(); (ended || inLine) != (err != nil) {
		t.Fatalf("replying to a session that is %s: %v", m.status[id], err)
	}
}

// record reads a session as it is stored.
func (m *lifeModel) record(id SessionID) *sessionRecord {
	v := m.view(m.home.Workspace.ID.raw())
	parsed, _ := storage.ParseID(id)
	row, err := sessions.Get(&v, sessionKey(parsed))
	if err != nil || row == nil {
		m.Fatalf("session %s: %v", id, err)
	}
	return &row.Value
}

// batchAny dispatches some issues, optionally behind others. An item waits behind a
// session that has not ended, and is dispatched or canceled at once behind one that
// has.
func (m *lifeModel) batchAny(t *rapid.T) {
	var items []DispatchItem
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		item := DispatchItem{IssueID: string(rapid.SampledFrom(m.issues).Draw(t, "issue").ID)}
		switch rapid.IntRange(0, 2).Draw(t, "after") {
		case 1:
			item.QueuedAfter = queuedBehind(string(rapid.SampledFrom(m.issues).Draw(t, "predecessor").ID))
		case 2:
			if len(m.sessions) > 0 {
				item.QueuedAfter = queuedBehind(string(m.any(t)))
			}
		}
		items = append(items, item)
	}
	was := maps.Clone(m.status)
	for i, r := range m.batch(items...) {
		before, known := was[SessionID(strings.Trim(string(items[i].QueuedAfter), `"`))]
		want := SessionCreated
		switch {
		case r.Error != nil || items[i].QueuedAfter != nil && !known: // behind an issue
			continue
		case known && !before.Ended():
			want = SessionWaiting
		case known && before != SessionCompleted:
			want = SessionCanceled
		}
		if *r.Status != want {
			t.Fatalf("queued behind a session that is %q: %s", before, *r.Status)
		}
	}
}

func (m *lifeModel) timePasses(t *rapid.T) {
	m.pass(time.Duration(rapid.IntRange(1, 45).Draw(t, "seconds")) * time.Second)
}

func (m *lifeModel) priorityChanges(t *rapid.T) {
	m.run(m.admin, PatchIssue, &PatchIssueIn{
		ID:         string(rapid.SampledFrom(m.issues).Draw(t, "issue").ID),
		IssuePatch: IssuePatch{IssueFields: IssueFields{Priority: Some(rapid.SampledFrom([]IssuePriority{PriorityLow, PriorityHigh, PriorityUrgent}).Draw(t, "priority"))}},
	})
}

// follow reads the new events, which tell the whole history of the sessions.
func (m *lifeModel) follow() {
	all := m.events()
	for _, e := range all[m.seen:] {
		id, now := SessionID(e.Data.ID), SessionStatus(e.Data.Status)
		switch e.Type {
		case eventSessionCreated.name:
			m.sessions = append(m.sessions, id)
			m.status[id] = now
		case eventSessionUpdated.name, eventSessionEscalated.name, eventSessionEnded.name:
			was := m.status[id]
			if was != now && !slices.Contains(allowed[was], now) {
				m.Fatalf("%s of %s: it was %s and is %s", e.Type, id, was, now)
			}
			if (e.Type != eventSessionUpdated.name) != now.Ended() {
				m.Fatalf("%s of a session that is %s", e.Type, now)
			}
			m.status[id] = now
		}
	}
	m.seen = len(all)
}

func (m *lifeModel) check(t *rapid.T) {
	m.follow()
	v := m.view(m.home.Workspace.ID.raw())
	wantAll(t, &v, m.hook)
	for _, id := range m.sessions {
		for _, p := range m.record(id).Inner.Pending {
			if m.status[p].Ended() || m.status[id] != SessionWaiting {
				t.Fatalf("session %s is %s, in line behind %s, which is %s", id, m.status[id], p, m.status[p])
			}
		}
	}
	at := map[string]bool{}
	for _, s := range decode[SessionPage](t, m.run(m.admin, ListSessions, &ListSessionsIn{Limit: 100}).Body).Sessions {
		if m.status[s.ID] != s.Status {
			t.Fatalf("session %s is %s, and was said to be %s", s.ID, s.Status, m.status[s.ID])
		}
		if s.Status != SessionRunning || s.Provider == "p" { // registered sessions are not limited
			continue
		}
		if name := s.AgentID + string(s.IssueID); at[name] {
			t.Fatalf("agent %s is at two sessions of issue %s", s.AgentID, s.IssueID)
		} else {
			at[name] = true
		}
	}
}
