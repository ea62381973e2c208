package systemtest

import (
	"net/url"
	"slices"
)

// planQueue is the answer of GET .../agent/queue.
type planQueue struct {
	Counts     map[string]int
	WaitingFor map[string]int
	ByAgent    []struct {
		AgentID                   string
		Created, Running, Waiting int
		OldestCreatedAt           *string
	}
	ByKey []struct {
		Key                     string
		Limit, Running, Waiting int
	}
	OldestCreatedAt *string
}

// compareCounts holds the counts of the queue against the plan.
func (run *planRun) compareCounts() {
	var q planQueue
	run.get("/agent/queue", &q)
	counts, reasons, byAgent, byKey := map[string]int{}, map[string]int{}, map[string][3]int{}, map[string]int{}
	oldest := map[string]string{}
	offered := 0 // sessions with free keys, which may be parked
	for _, s := range run.m.sessions {
		counts[s.status]++
		if s.ended() {
			continue
		}
		n := byAgent[s.agent]
		n[slices.Index([]string{"created", "running", "waiting"}, s.status)]++
		byAgent[s.agent] = n
		if why := run.m.reason(s); why != "" {
			reasons[why]++
			if s.status == "created" && len(s.keys) > 0 && (why == "agent_full" || why == "no_claimer") {
				offered++
			}
		}
		if s.status == "created" {
			for _, name := range []string{s.agent, ""} {
				if oldest[name] == "" {
					oldest[name] = s.createdAt
				}
			}
		}
		if s.engaged() {
			for _, key := range s.keys {
				byKey[key]++
			}
		}
	}
	for status, n := range q.Counts {
		if n != counts[status] {
			run.fail("%d sessions are counted as %s, want %d", n, status, counts[status])
		}
	}
	for reason, n := range q.WaitingFor {
		want := reasons[reason]
		fits := n == want
		switch reason {
		case "concurrency":
			fits = n >= want && n <= want+offered
		case "agent_full", "no_claimer":
			fits = n <= want && n >= want-offered
		}
		if !fits {
			run.fail("%d sessions are counted as waiting for %s, want %d (%d may be parked)", n, reason, want, offered)
		}
	}
	sum := func(all map[string]int) int { return all["concurrency"] + all["agent_full"] + all["no_claimer"] }
	if got, want := sum(q.WaitingFor), sum(reasons); got != want {
		run.fail("%d sessions are counted as waiting for a place or a claimer, want %d", got, want)
	}
	for _, a := range q.ByAgent {
		if got := [3]int{a.Created, a.Running, a.Waiting}; got != byAgent[a.AgentID] || timeOf(a.OldestCreatedAt) != oldest[a.AgentID] {
			run.fail("agent %s has %v sessions, the oldest of %s; want %v and %s", a.AgentID, got, timeOf(a.OldestCreatedAt), byAgent[a.AgentID], oldest[a.AgentID])
		}
		delete(byAgent, a.AgentID)
	}
	if len(byAgent) > 0 || timeOf(q.OldestCreatedAt) != oldest[""] {
		run.fail("the queue lacks the agents %v, and its oldest session is of %s, want %s", byAgent, timeOf(q.OldestCreatedAt), oldest[""])
	}
	for _, k := range q.ByKey {
		if k.Running != byKey[k.Key] || k.Limit != run.m.limit(k.Key) {
			run.fail("key %s is held %d times of %d, want %d of %d", k.Key, k.Running, k.Limit, byKey[k.Key], run.m.limit(k.Key))
		}
		delete(byKey, k.Key)
	}
	if len(byKey) > 0 {
		run.fail("the queue lacks the keys %v", byKey)
	}
}

func timeOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// planListed is a session of the list.
type planListed struct {
	ID, Status string
	WaitingFor *struct {
		Reason string
		On     []string
	}
}

// compareAll holds all sessions, and the lists of ready and blocked issues, against the
// plan.
func (run *planRun) compareAll() {
	m := run.m
	listed := run.list("")
	if len(listed) != len(m.sessions) {
		run.fail("%d sessions are listed, want %d", len(listed), len(m.sessions))
	}
	parked := map[*planSession]string{} // by keys that may have a free place
	for _, s := range m.sessions {
		run.compareSession(s, listed[s.id], parked)
	}
	run.compareOffers(parked)
	run.compareBudgets()
	run.compareTries()
	for name, is := range map[string]func(*planIssue) bool{"ready": m.ready, "blocked": m.blocked} {
		var want []string
		for _, t := range m.issues {
			if is(t) {
				want = append(want, t.id)
			}
		}
		var page struct {
			Issues     []struct{ ID string }
			NextCursor *string
		}
		run.get("/issues?limit=100&"+name+"=true", &page)
		var got []string
		for _, t := range page.Issues {
			got = append(got, t.ID)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || page.NextCursor != nil {
			run.fail("the %s issues are %q, want %q", name, got, want)
		}
	}
}

// list returns the sessions of a list, by id.
func (run *planRun) list(filter string) map[string]planListed {
	listed := map[string]planListed{}
	first := "/agent/sessions?summary=1&limit=100" + filter
	for path := first; path != ""; {
		var page struct {
			Sessions   []planListed
			NextCursor string
		}
		run.get(path, &page)
		for _, s := range page.Sessions {
			listed[s.ID] = s
		}
		if path = ""; page.NextCursor != "" {
			path = first + "&cursor=" + url.QueryEscape(page.NextCursor)
		}
	}
	return listed
}

// compareSession holds a listed session against the plan.
func (run *planRun) compareSession(s *planSession, got planListed, parked map[*planSession]string) {
	m := run.m
	reason, on := "", []string(nil)
	if got.WaitingFor != nil {
		reason, on = got.WaitingFor.Reason, got.WaitingFor.On
	}
	want := m.reason(s)
	if got.Status != s.status {
		run.fail("session %s is %s, want %s", s, got.Status, s.status)
	}
	if s.status == "created" && reason == "concurrency" && len(s.keys) > 0 && (want == "no_claimer" || want == "agent_full") {
		want = reason
	}
	if reason != want {
		run.fail("session %s waits for %q, want %q", s, reason, want)
	}
	var all []string
	switch reason {
	case "wait_for":
		for _, c := range s.wait.left {
			switch {
			case c.session != nil:
				all = append(all, c.session.id)
			case c.children != nil:
				for _, child := range m.children(s) {
					if !child.ended() {
						all = append(all, child.id)
					}
				}
			case c.issue != nil:
				all = append(all, c.issue.id)
			}
		}
	case "queued_after":
		for _, p := range s.pending {
			all = append(all, p.id)
		}
	case "blocked":
		all = m.blockers(s.issue)
	case "agent_full":
		all = []string{s.agent}
	case "budget":
		if len(on) != 1 || !slices.Contains(s.scopes(), on[0]) || !m.exceeded(on[0]) {
			run.fail("session %s waits for the budgets of %q, which are not used up", s, on)
		}
		return
	case "hold":
		if len(on) != 1 || !m.holds[on[0]] {
			run.fail("session %s waits for the hold of %q, which is none", s, on)
		}
		return
	case "concurrency":
		if len(on) != 1 || !slices.Contains(s.keys, on[0]) {
			run.fail("session %s waits for the keys %q, which it does not have", s, on)
		}
		parked[s] = on[0]
		return
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Sort(on)
	if !slices.Equal(on, all) && len(all) <= 10 {
		run.fail("session %s waits for %s on %q, want %q", s, reason, on, all)
	}
}

// compareOffers checks that no session stays parked under a key that has a free place,
// unless sessions before it are offered all free places.
func (run *planRun) compareOffers(parked map[*planSession]string) {
	m := run.m
	for s, key := range parked {
		free := m.limit(key) - m.holders(key)
		if free <= 0 || m.fullKey(s) {
			continue
		}
		for _, o := range m.sessions {
			if _, is := parked[o]; !is && o.status == "created" && !o.putOff && !m.held(o) && m.overspent(o) == "" && o.agent == s.agent && o.provider == s.provider && slices.Contains(o.keys, key) {
				free--
			}
		}
		if free > 0 {
			run.fail("session %s is parked under %s, which has %d places that nobody is offered", s, key, free)
		}
	}
}
