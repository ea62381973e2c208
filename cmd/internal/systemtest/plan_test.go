package systemtest

import (
	"fmt"
	"slices"
)

// A plan is what the issues and sessions of a workspace should be, kept as plainly as can
// be, without indexes, timers or kept counts. TestPlans holds the service against it.
type plan struct {
	issues   []*planIssue // that are there, oldest first
	sessions []*planSession
	// blocks and duplicates have the relations of these types, by their two ends.
	blocks, duplicates map[[2]*planIssue]bool
	holds              map[string]bool
	limits             map[string]int // of concurrency keys
	room               map[string]int // maxConcurrentSessions of agents
	projects           []string
	budgets            map[string]*planBudget // by scope
	used               map[string]planUsage   // by scope
	// happened has, of what the request has done so far, what sessions may wait for.
	happened []func(planCondition) bool
	busy     bool
	// apart is set while several requests are made that the plan takes for one: it does not
	// know then which of them ended a wait.
	apart bool
}

func newPlan() *plan {
	return &plan{
		blocks: map[[2]*planIssue]bool{}, duplicates: map[[2]*planIssue]bool{}, holds: map[string]bool{},
		limits: map[string]int{}, room: map[string]int{}, budgets: map[string]*planBudget{}, used: map[string]planUsage{},
	}
}

type planIssue struct {
	id, status, priority string
	project              string // "" for none
	pr                   string // state of the pull request, "" for none
	gone                 bool
}

func (t *planIssue) open() bool { return !closedStatus(t.status) }

// planSession is a session. Its number is its place in plan.sessions, which is the order
// of their age.
type planSession struct {
	id              string
	number          int
	issue           *planIssue
	agent, provider string
	status          string
	createdAt       string
	keys            []string
	whenReady       bool
	putOff          bool // notBefore is far ahead
	pending         []*planSession
	wait            *planWait
	wokenBy         []string // conditions, for the next claim
	parent          *planSession
	depth           int  // levels below a session without a parent
	begun           bool // an agent has worked on it since it was dispatched or put back
	leased          bool
	lane            string
	formerLanes     []string
	attempts        int
	retry           planRetry
	retried         string // the report of a failure that put it back
	ends, revived   int    // times that it has ended, and was retried after that
	claims          []planAttempt
	checkpoint      string // JSON; "" for none
	used            planUsage
	reason          string // failureReason, "" for none
	dead            bool   // a dead letter
	deaths          int    // times that it has become one
}

type planRetry struct {
	max            int
	lapsed, failed bool // the ends after which there is another attempt
	backoff        bool
}

// planAttempt is the time between a claim and its end, "" while it runs.
type planAttempt struct{ end, reason string }

// String describes the session in messages.
func (s *planSession) String() string {
	return fmt.Sprintf("%s (%d: %s of %s and %s, issue %s, keys %q, begun %t, put off %t, when ready %t, %d attempts of %d)",
		s.id, s.number, s.status, s.agent, s.provider, s.issue.id, s.keys, s.begun, s.putOff, s.whenReady, s.attempts, s.retry.max)
}

func endedStatus(status string) bool {
	return status == "completed" || status == "failed" || status == "canceled"
}

func (s *planSession) ended() bool { return endedStatus(s.status) }

// engaged reports whether the session has a place of its agent and of its keys.
func (s *planSession) engaged() bool {
	return s.status == "running" || s.status == "waiting" && s.begun && s.wait == nil
}

// awaitsIssue reports whether a whenReady session has not been released.
func (s *planSession) awaitsIssue() bool { return s.whenReady && s.status == "waiting" && !s.begun }

// mustAwaitIssue reports whether a session that waits for nothing else waits for its issue.
func (m *plan) mustAwaitIssue(s *planSession) bool {
	return s.whenReady && s.issue.open() && m.blocked(s.issue)
}

// urgency is smaller for sessions that are claimed earlier.
func (s *planSession) urgency() int {
	return slices.Index([]string{"urgent", "high", "medium", "low"}, s.issue.priority)
}

func (s *planSession) before(other *planSession) bool {
	if a, b := s.urgency(), other.urgency(); a != b {
		return a < b
	}
	return s.number < other.number
}

func (m *plan) find(id string) *planSession {
	for _, s := range m.sessions {
		if s.id == id {
			return s
		}
	}
	return nil
}

// blockers returns the open issues that block an issue.
func (m *plan) blockers(t *planIssue) (ids []string) {
	for e := range m.blocks {
		if e[1] == t && e[0].open() {
			ids = append(ids, e[0].id)
		}
	}
	return ids
}

func (m *plan) blocked(t *planIssue) bool { return len(m.blockers(t)) > 0 }

// ready is Decision 57.
func (m *plan) ready(t *planIssue) bool {
	if t.status != "backlog" && t.status != "todo" && t.status != "in_progress" || m.blocked(t) {
		return false
	}
	return !slices.ContainsFunc(m.sessions, func(s *planSession) bool { return s.issue == t && !s.ended() && !s.awaitsIssue() })
}

// reaches reports whether relations lead from one issue to another.
func reaches(edges map[[2]*planIssue]bool, from, to *planIssue) bool {
	if from == to {
		return true
	}
	for e := range edges {
		if e[0] == from && reaches(edges, e[1], to) {
			return true
		}
	}
	return false
}

// relate adds a relation, and reports whether it may be.
func (m *plan) relate(kind string, from, to *planIssue) bool {
	edges, e := m.blocks, [2]*planIssue{from, to}
	if kind == "duplicates" {
		edges = m.duplicates
	}
	switch {
	case edges[e]:
		return true
	case reaches(edges, to, from):
		return false
	}
	edges[e] = true
	if kind == "duplicates" && from.open() {
		m.setStatus(from, "canceled")
	}
	return true
}

// unrelate removes a blocks relation.
func (m *plan) unrelate(from, to *planIssue) {
	m.request(func() {
		delete(m.blocks, [2]*planIssue{from, to})
		if from.open() && !m.blocked(to) {
			m.released(to)
		}
	})
}

// released moves the sessions on that waited for an issue not to be blocked, and for nothing else.
func (m *plan) released(t *planIssue) {
	for _, s := range m.sessions {
		if s.issue == t && s.awaitsIssue() && len(s.pending) == 0 {
			s.status = "created"
		}
	}
}

// closed cancels the sessions that wait for an issue which has been closed.
func (m *plan) closed(t *planIssue) {
	for _, s := range m.sessions {
		if s.issue == t && s.awaitsIssue() {
			m.end(s, "canceled")
		}
	}
}

// blockedBy returns the issues that a relation says are blocked by an issue.
func (m *plan) blockedBy(t *planIssue) (others []*planIssue) {
	for _, other := range m.issues {
		if m.blocks[[2]*planIssue{t, other}] {
			others = append(others, other)
		}
	}
	return others
}

// setStatus changes the status of an issue, with all that follows.
func (m *plan) setStatus(t *planIssue, status string) {
	was := t.open()
	t.status = status
	if !was || t.open() {
		return
	}
	m.request(func() {
		m.closed(t)
		m.noBlocker(m.blockedBy(t))
		m.happen(func(c planCondition) bool { return c.issue == t && c.pr == "" })
	})
}

// noBlocker releases issues that have lost a blocker, if it was the last.
func (m *plan) noBlocker(lost []*planIssue) {
	for _, other := range lost {
		if !m.blocked(other) {
			m.released(other)
		}
	}
}

// remove deletes an issue: its sessions are canceled, its relations go.
func (m *plan) remove(t *planIssue) {
	m.request(func() {
		var lost []*planIssue
		if t.open() {
			lost = m.blockedBy(t)
		}
		m.issues = slices.DeleteFunc(m.issues, func(other *planIssue) bool { return other == t })
		t.gone = true
		for _, edges := range []map[[2]*planIssue]bool{m.blocks, m.duplicates} {
			for e := range edges {
				if e[0] == t || e[1] == t {
					delete(edges, e)
				}
			}
		}
		for _, s := range m.sessions {
			if s.issue == t && !s.ended() {
				m.end(s, "canceled")
			}
		}
		m.noBlocker(lost)
		m.happen(func(c planCondition) bool { return c.issue == t && c.pr == "" })
		delete(m.budgets, "issue:"+t.id)
		delete(m.used, "issue:"+t.id)
	})
}

// add dispatches a session. after are those that it is queued after.
func (m *plan) add(s *planSession, after []*planSession) {
	s.number = len(m.sessions)
	m.sessions = append(m.sessions, s)
	failed := false
	for _, p := range after {
		if p.status == "completed" || slices.Contains(s.pending, p) {
			continue
		}
		failed = failed || p.ended()
		s.pending = append(s.pending, p)
	}
	switch s.status = "created"; {
	case failed:
		s.status = "waiting"
		m.end(s, "canceled")
	case len(s.pending) > 0, m.mustAwaitIssue(s):
		s.status = "waiting"
	}
}

// end ends a session, and does what follows for those behind it.
func (m *plan) end(s *planSession, status string) { m.endAfter(s, status, status) }

// endAfter ends a session whose last attempt ended in another way.
func (m *plan) endAfter(s *planSession, status, attempt string) {
	m.request(func() {
		s.leave(attempt)
		s.status, s.wait, s.pending = status, nil, nil
		s.ends++
		for _, f := range m.sessions {
			i := slices.Index(f.pending, s)
			switch {
			case i < 0 || f.status != "waiting":
			case status != "completed":
				m.end(f, "canceled")
			default:
				if f.pending = slices.Delete(f.pending, i, i+1); len(f.pending) == 0 && !m.mustAwaitIssue(f) {
					f.status = "created"
				}
			}
		}
		m.happen(func(c planCondition) bool {
			return c.session == s || c.children != nil && c.children == s.parent && m.childrenEnded(s.parent)
		})
	})
}

// holders counts the sessions that hold a key.
func (m *plan) holders(key string) (n int) {
	for _, s := range m.sessions {
		if s.engaged() && slices.Contains(s.keys, key) {
			n++
		}
	}
	return n
}

func (m *plan) limit(key string) int {
	if n, ok := m.limits[key]; ok {
		return n
	}
	return 1
}

// fullKey reports whether a key of a session has no free place.
func (m *plan) fullKey(s *planSession) bool {
	return slices.ContainsFunc(s.keys, func(key string) bool { return m.holders(key) >= m.limit(key) })
}

func (m *plan) agentFull(agent string) bool {
	most, limited := m.room[agent]
	if !limited {
		return false
	}
	for _, s := range m.sessions {
		if s.engaged() && s.agent == agent {
			most--
		}
	}
	return most <= 0
}

// atIssue reports whether a session's agent works on another session of its issue.
func (m *plan) atIssue(s *planSession) bool {
	return slices.ContainsFunc(m.sessions, func(o *planSession) bool {
		return o != s && o.engaged() && o.agent == s.agent && o.issue == s.issue
	})
}

func (m *plan) held(s *planSession) bool {
	return m.holds["workspace"] || m.holds["agent:"+s.agent] || m.holds["provider:"+s.provider]
}
