package systemtest

// obstacle returns the reason why a session can't be claimed now, or "".
func (m *plan) obstacle(s *planSession) string {
	switch {
	case s.status == "waiting" && s.wait != nil:
		return "wait_for"
	case s.status == "waiting" && len(s.pending) > 0:
		return "queued_after"
	case s.awaitsIssue():
		return "blocked"
	case s.status != "created":
		return s.status
	case s.putOff:
		return "not_before"
	case m.overspent(s) != "":
		return "budget"
	case m.held(s):
		return "hold"
	case m.fullKey(s):
		return "concurrency"
	case m.agentFull(s.agent):
		return "agent_full"
	case m.atIssue(s):
		return "its agent works on another session of the issue"
	}
	return ""
}

// reason returns what waitingFor should say of a session, "" for null. A session of a key
// with a free place may also be parked, if the place is offered to others.
func (m *plan) reason(s *planSession) string {
	switch why := m.obstacle(s); {
	case s.status != "created" && s.status != "waiting" || s.engaged():
		return ""
	case s.status == "created" && why != "not_before" && why != "budget" && why != "hold" && why != "concurrency" && why != "agent_full":
		return "no_claimer"
	default:
		return why
	}
}
