package tracker

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// flowState has all records of the sessions and what their places follow from.
type flowState struct {
	*flowModel
	t    *rapid.T
	view *View
	// began is when the sessions were read. What compare asks for takes time, in which no timer runs.
	began time.Time
	all   []*sessionRecord
	of    map[SessionID]*sessionRecord
	held  map[string]uint64 // places that are taken, by concurrency key
	at    map[string]bool   // agents with the issues that they work on: see place

	// The rest is set by compare.
	over, holds       map[string]bool   // scopes with a used-up budget, and those on hold
	blocked, occupied map[IssueID]bool  // occupied are issues with a session that does not wait for them
	active            map[SessionID]int // children that have not ended
}

// state reads the sessions.
func (m *flowModel) state(t *rapid.T) *flowState {
	s := &flowState{flowModel: m, t: t, began: m.now, of: map[SessionID]*sessionRecord{}, held: map[string]uint64{}, at: map[string]bool{}}
	s.view = NewView(m.view(m.home.Workspace.ID.raw()), &Caller{}, m.now, nil)
	if err := sessions.Scan(s.view, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := sessions.Decode(rec)
		if err != nil {
			return false, err
		}
		r := &row.Value
		s.all, s.of[r.ID] = append(s.all, r), r
		if r.engaged() {
			s.at[place(r)] = true
			for _, key := range r.ConcurrencyKeys {
				s.held[key]++
			}
		}
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// place is the agent of a session with the issue: an agent works on one session of an issue at a time.
func place(r *sessionRecord) string { return r.AgentID + " " + string(r.IssueID) }

// free is the number of places of a concurrency key that are left; negative if too many are taken.
func (s *flowState) free(key string) int64 {
	limit, err := s.view.keyLimit(key)
	if err != nil {
		s.t.Fatal(err)
	}
	return int64(limit) - int64(s.held[key])
}

// issue returns an issue, or nil if it is not there.
func (s *flowState) issue(id IssueID) *Issue {
	key, _ := storage.ParseID(id)
	row, err := issues.Get(s.view, issueKey(key))
	if err != nil {
		s.t.Fatal(err)
	}
	if row == nil {
		return nil
	}
	return &row.Value
}

// compare compares the place of each session with the definitions, and the lists with the records.
func (m *flowModel) compare(t *rapid.T) {
	s := m.state(t)
	s.readScopes()
	for at, due := m.nextTimer(); due != nil && !at.After(m.now); at, due = m.nextTimer() { // a hold may have ended while it was read
		m.passing(t, 0)
		s = m.state(t)
		s.readScopes()
	}
	s.readIssues()
	for _, r := range s.all {
		if r.MaxDurationMinutes != nil && !r.Status.Ended() && !r.budgetEnds().After(s.began) {
			m.fail(t, "session %s is %s past its maxDuration", r.ID, r.Status)
		}
		if l := r.Inner.Lease; l != nil && !l.ExpiresAt.Time().After(s.began) {
			m.fail(t, "session %s is held past its lease", r.ID)
		}
		switch {
		case r.Status.Ended() || r.Status == SessionRunning || r.Inner.External:
			if r.Inner.Park != nil {
				m.fail(t, "session %s is %s, and waits for %+v", r.ID, r.Status, r.Inner.Park)
			}
		case r.Status == SessionCreated:
			s.compareCreated(r)
		case r.Inner.Wait != nil:
			s.compareWait(r)
		case r.Inner.StartedAt == "": // else it asks
			s.compareWaiting(r)
		}
	}
	s.compareReady()
	s.compareCounts()
	if !m.imported {
		s.compareEvents()
	}
}

// readScopes reads which scopes are suspended.
func (s *flowState) readScopes() {
	s.over, s.holds = map[string]bool{}, map[string]bool{}
	for _, b := range decode[BudgetList](s, s.run(s.admin, ListBudgets, &None{}).Body).Budgets {
		if b.CostMicros != nil && b.SpentMicros > *b.CostMicros {
			s.over[b.Scope] = true
		}
	}
	for _, h := range decode[HoldList](s, s.run(s.admin, ListHolds, &None{}).Body).Holds {
		s.holds[h.Scope] = true
	}
}

// readIssues finds out which issues are blocked, and which have sessions that have not ended.
func (s *flowState) readIssues() {
	s.blocked, s.occupied, s.active = map[IssueID]bool{}, map[IssueID]bool{}, map[SessionID]int{}
	if err := relations.Scan(s.view, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		r, err := relations.Decode(rec)
		if err == nil && r.Value.Type == RelationBlocks && !s.issue(r.Value.FromID).Status.Closed() {
			s.blocked[r.Value.ToID] = true
		}
		return true, err
	}); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range s.all {
		if r.Status.Ended() {
			continue
		}
		if r.Inner.Parent != "" {
			s.active[r.Inner.Parent]++
		}
		if !r.WhenReady || r.Status != SessionWaiting || r.Inner.StartedAt != "" {
			s.occupied[r.IssueID] = true
		}
	}
}

// compareWaiting compares the reason why a session can't be claimed yet that nobody has worked on.
func (s *flowState) compareWaiting(r *sessionRecord) {
	for _, id := range r.pending() {
		if before := s.of[id]; before == nil || before.Status.Ended() {
			s.fail(s.t, "session %s waits for session %s, which has ended", r.ID, id)
		}
	}
	var want parkReason
	switch {
	case len(r.Inner.Missing) > 0:
		want = parkPreflight
	case len(r.pending()) > 0:
		want = parkQueuedAfter
	case r.WhenReady && s.blocked[r.IssueID] && !s.issue(r.IssueID).Status.Closed():
		want = parkBlocked
	}
	if want == 0 || r.Inner.Park == nil || r.Inner.Park.Reason != want {
		s.fail(s.t, "session %s waits for %+v, want %d", r.ID, r.Inner.Park, want)
	}
}

// compareCreated compares the reason why a session that is created can't be claimed.
func (s *flowState) compareCreated(r *sessionRecord) {
	scopes := []string{"workspace", "agent:" + r.AgentID, "provider:" + r.Provider, "issue:" + string(r.IssueID)}
	if project := s.issue(r.IssueID).ProjectID; project != nil {
		scopes = append(scopes, "project:"+*project)
	}
	in := func(set map[string]bool) bool {
		return slices.ContainsFunc(scopes, func(scope string) bool { return set[scope] })
	}
	var want parkReason
	switch {
	case r.NotBefore != nil && r.NotBefore.Time().After(s.began):
		want = parkNotBefore
	case in(s.over):
		want = parkBudget
	case in(s.holds):
		want = parkHold
	case slices.ContainsFunc(r.ConcurrencyKeys, func(key string) bool { return s.free(key) <= 0 }):
		want = parkConcurrency
	}
	var got parking
	if r.Inner.Park != nil {
		got = *r.Inner.Park
	}
	switch {
	case got.Reason == parkConcurrency && want == 0:
		if left := s.offered(r, got.Subject); left > 0 {
			s.fail(s.t, "session %s waits for %s, which has %d places that are offered to no other session", r.ID, got.Subject, left)
		}
	case got.Reason != want:
		s.fail(s.t, "session %s waits for %+v, want %d: %+v", r.ID, r.Inner.Park, want, r.SessionDetails)
	case want == parkBudget && !s.over[got.Subject] || want == parkHold && !s.holds[got.Subject]:
		s.fail(s.t, "session %s waits for %s, which is not suspended", r.ID, got.Subject)
	}
}

// offered returns the number of free places of a concurrency key that no session like r in the queue is offered.
func (s *flowState) offered(r *sessionRecord, key string) int64 {
	left := s.free(key)
	for _, o := range s.all {
		if o.queued() && o.AgentID == r.AgentID && o.Provider == r.Provider && slices.Contains(o.ConcurrencyKeys, key) && !s.at[place(o)] {
			left--
		}
	}
	return left
}

// compareWait compares which conditions of a waitFor are met.
func (s *flowState) compareWait(r *sessionRecord) {
	w, met := r.Inner.Wait, 0
	for i := range w.Conditions {
		if s.happened(r, &w.Conditions[i]) && !w.Met[i] {
			s.fail(s.t, "session %s waits for %+v, which has happened", r.ID, w.Conditions[i])
		}
		if w.Met[i] {
			met++
		}
	}
	if w.Any && met > 0 || met == len(w.Conditions) {
		s.fail(s.t, "session %s waits, though its wait is over", r.ID)
	}
	if r.Inner.Park == nil || r.Inner.Park.Reason != parkWaitFor || r.Inner.Lease != nil {
		s.fail(s.t, "session %s waits for conditions and for %+v, held: %t", r.ID, r.Inner.Park, r.Inner.Lease != nil)
	}
}

// happened reports whether a condition of a session's wait holds now.
func (s *flowState) happened(r *sessionRecord, c *WaitCondition) bool {
	switch {
	case c.Session != "":
		o := s.of[SessionID(c.Session)]
		return o == nil || o.Status.Ended()
	case c.Children:
		return s.active[r.ID] == 0
	case c.Issue != "":
		o := s.issue(IssueID(c.Issue))
		return o == nil || o.Status.Closed()
	case c.After != "":
		return !snooze(&c.After).Time().After(s.began)
	case c.PR != "":
		return c.metBy(fromPtr(s.issue(r.IssueID).PRState))
	}
	return false
}

// compareReady compares the list of ready issues with the issues.
func (s *flowState) compareReady() {
	var ready, want []IssueID
	for _, t := range decode[IssuePage](s, s.run(s.admin, ListIssues, &ListIssuesIn{Limit: 100, IssueFilter: IssueFilter{Ready: Some(true)}}).Body).Issues {
		ready = append(ready, t.ID)
	}
	if err := issues.Scan(s.view, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := issues.Decode(rec)
		if err != nil {
			return false, err
		}
		i := &row.Value
		if slices.Contains([]IssueStatus{StatusBacklog, StatusTodo, StatusInProgress}, i.Status) && !i.IsDraft && !s.blocked[i.ID] && !s.occupied[i.ID] {
			want = append(want, i.ID)
		}
		return true, nil
	}); err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(ready)
	slices.Sort(want)
	if len(want) <= 100 && !slices.Equal(ready, want) {
		s.fail(s.t, "ready are %v, want %v", ready, want)
	}
}

// compareCounts compares the counts of the queue with the list of sessions.
func (s *flowState) compareCounts() {
	reasons := map[WaitingReason]uint64{}
	in := ListSessionsIn{Limit: 100, Summary: "1"}
	for more := true; more; {
		page := decode[SessionPage](s, s.run(s.admin, ListSessions, &in).Body)
		for _, r := range page.Sessions {
			if r.WaitingFor != nil {
				reasons[r.WaitingFor.Reason]++
			}
		}
		if more = page.NextCursor != ""; more {
			in.Cursor = Some(page.NextCursor)
		}
	}
	for reason, n := range s.queue().WaitingFor {
		if n != reasons[reason] {
			s.fail(s.t, "%d sessions are counted as waiting for %s, and %d are listed", n, reason, reasons[reason])
		}
	}
}

// compareEvents compares the status of each session with its last event.
func (s *flowState) compareEvents() {
	last := map[SessionID]SessionStatus{}
	for _, e := range s.events() {
		last[SessionID(e.Data.ID)] = SessionStatus(e.Data.Status)
	}
	for _, r := range s.all {
		if told, is := last[r.ID]; is && told != r.Status {
			s.fail(s.t, "session %s is %s, and its last event says %s", r.ID, r.Status, told)
		}
	}
}

// compareCopy imports the workspace into another service, and compares the places of its sessions. The clock of the copy
// runs on while it is made, so that is done at a time when no timer comes due within a second.
func (m *flowModel) compareCopy(t *rapid.T) {
	for at, due := m.nextTimer(); due != nil && !at.After(m.now.Add(time.Second)); at, due = m.nextTimer() {
		m.passing(t, time.Second)
	}
	to := &flowModel{agentFixture: m.copied(), imported: true, trail: m.trail}
	to.passing(t, 50*time.Millisecond)
	to.compare(t)
	to.verify()
	if _, due := m.nextTimer(); due != nil && due.Due.Before(to.now) {
		t.Fatalf("%s %s came due while the copy was made, at %v", due.Kind, due.Subject, due.Due)
	}
	of := to.state(t).of
	for _, r := range m.state(t).all {
		c := of[r.ID]
		if c == nil {
			m.fail(t, "session %s is not in the copy", r.ID)
		}
		if r.Status.Ended() && r.Status == c.Status {
			continue
		}
		if r.Status != c.Status || !sameReason(r, c) || r.Inner.Rank != c.Inner.Rank || r.Inner.Attempts != c.Inner.Attempts || r.engaged() != c.engaged() ||
			(r.Inner.Wait == nil) != (c.Inner.Wait == nil) || len(r.pending()) != len(c.pending()) || (r.Inner.Lease == nil) != (c.Inner.Lease == nil) {
			m.fail(t, "session %s is %s, %+v, and in the copy %s, %+v", r.ID, r.Status, r.Inner, c.Status, c.Inner)
		}
	}
}

// sameReason reports whether two records of a session wait for the same. A place of a concurrency key may be offered
// to another session in a copy.
func sameReason(a, b *sessionRecord) bool {
	reason := func(r *sessionRecord) parkReason {
		if r.Inner.Park == nil || r.Inner.Park.Reason == parkConcurrency {
			return 0
		}
		return r.Inner.Park.Reason
	}
	return reason(a) == reason(b)
}
