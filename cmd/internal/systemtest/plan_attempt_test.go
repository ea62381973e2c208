package systemtest

import (
	"fmt"
	"slices"
)

// A planWait is what a session waits for after a report.
type planWait struct {
	any  bool
	left []planCondition
}

// planCondition has one of its fields; pr has the issue, too.
type planCondition struct {
	text     string // its JSON
	session  *planSession
	children *planSession // all children of which have to end
	issue    *planIssue
	pr       string
	reply    bool
}

// request does what one request does, and then wakes the sessions whose waits it has ended.
func (m *plan) request(do func()) {
	if m.busy {
		do()
		return
	}
	m.busy = true
	do()
	m.busy = false
	all := m.happened
	m.happened = nil
	for _, s := range m.sessions {
		if s.wait != nil {
			s.meet(func(c planCondition) bool {
				return slices.ContainsFunc(all, func(is func(planCondition) bool) bool { return is(c) })
			})
			if s.wait == nil && m.apart {
				s.wokenBy = nil
			}
		}
	}
	m.check()
}

// happen notes that conditions of waits have been met.
func (m *plan) happen(is func(planCondition) bool) { m.happened = append(m.happened, is) }

// meet removes the conditions that are met, and puts the session into the queue if its wait
// is over.
func (s *planSession) meet(is func(planCondition) bool) {
	by := []string{}
	s.wait.left = slices.DeleteFunc(s.wait.left, func(c planCondition) bool {
		met := is(c)
		if met {
			by = append(by, c.text)
		}
		return met
	})
	if len(s.wait.left) == 0 || len(by) > 0 && s.wait.any {
		s.wait, s.status, s.wokenBy = nil, "created", by
	}
}

// check holds the plan against what must be so after each request, whatever it did.
func (m *plan) check() {
	for _, s := range m.sessions {
		ended := 0
		if s.ended() {
			ended = 1
		}
		switch {
		case s.awaitsIssue() && len(s.pending) == 0 && !m.mustAwaitIssue(s):
			panic(planFault{fmt.Sprintf("session %s is released and stays parked", s)})
		case s.ends != s.revived+ended:
			panic(planFault{fmt.Sprintf("session %s has ended %d times and was retried %d times", s, s.ends, s.revived)})
		}
	}
}

// begin gives a session to an agent, or has one that waits go on. The latter holds its keys already:
// their limits may have been lowered since.
func (m *plan) begin(s *planSession) {
	held := s.engaged()
	s.status, s.begun, s.pending = "running", true, nil
	if t := s.issue; t.status == "triage" || t.status == "backlog" || t.status == "todo" {
		t.status = "in_progress"
	}
	for _, key := range s.keys {
		if !held && m.holders(key) > m.limit(key) {
			panic(planFault{fmt.Sprintf("session %s is one of %d that hold %s", s, m.holders(key), key)})
		}
	}
}

// leave ends what a session's holder has, and the attempt.
func (s *planSession) leave(end string) {
	if s.leased {
		last := &s.claims[len(s.claims)-1]
		if last.end = end; end == "failed" || end == "canceled" { // canceled for a budget
			last.reason = s.reason
		}
	}
	if s.lane != "" {
		s.formerLanes = append(s.formerLanes, s.lane)
	}
	s.lane, s.leased = "", false
}

// putBack puts a session into the queue again.
func (s *planSession) putBack(end string) {
	s.leave(end)
	s.status, s.begun = "created", false
}

// deadLetter ends a session whose attempts are used up.
func (m *plan) deadLetter(s *planSession, attempt string) {
	s.dead = true
	s.deaths++
	m.endAfter(s, "failed", attempt)
}

// lapse is the end of a lease.
func (m *plan) lapse(s *planSession) {
	if s.lapsesForGood() {
		m.deadLetter(s, "lapsed")
	} else {
		s.putBack("lapsed")
		s.putOff = s.retry.backoff
	}
}

// lapsesForGood reports whether the end of a session's lease makes it a dead letter.
func (s *planSession) lapsesForGood() bool { return !s.retry.lapsed || s.attempts >= s.retry.max }

// revive puts a session that has ended into the queue again, with all its attempts.
func (s *planSession) revive() {
	s.status, s.begun, s.retried, s.attempts, s.dead, s.reason = "created", false, "", 0, false, ""
	s.revived++
	if len(s.claims) > 0 {
		s.putOff = false // by a backoff or a release
	}
}

// children returns the children of a session.
func (m *plan) children(of *planSession) (all []*planSession) {
	for _, s := range m.sessions {
		if s.parent == of {
			all = append(all, s)
		}
	}
	return all
}

// active counts the children of a session that have not ended.
func (m *plan) active(of *planSession) (n int) {
	for _, s := range m.children(of) {
		if !s.ended() {
			n++
		}
	}
	return n
}

// planChildren is the number of unfinished children that a session may have.
const planChildren = 10

// crowded reports whether a session's parent has no room for it as an unfinished child.
func (m *plan) crowded(s *planSession) bool {
	return s.parent != nil && !s.parent.ended() && m.active(s.parent) >= planChildren
}

func (m *plan) childrenEnded(of *planSession) bool { return m.active(of) == 0 }
