package cluster

import "time"

// memberStatus is a registered node and how it stands.
type memberStatus struct {
	record
	State NodeState
	// Since is when this node first saw it so.
	Since time.Time
}

// standing is how a registered node was seen last.
type standing struct {
	state  NodeState
	since  time.Time
	silent time.Time // since when it has not answered; zero: it does
}

// status tells how the registered nodes stand, by name. Draining overlays alive.
func (m *members) status() []memberStatus {
	known := m.cfg.Known()
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]memberStatus, 0, len(known))
	fresh := make(map[string]standing, len(known))
	for _, rec := range known {
		s := m.judge(rec, m.standing[rec.Name], now)
		fresh[rec.Name] = s
		state := s.state
		if state == NodeAlive && rec.Draining {
			state = NodeDraining
		}
		out = append(out, memberStatus{record: rec, State: state, Since: s.since})
	}
	m.standing = fresh
	return out
}

// judge is how a node stands, given how it stood.
func (m *members) judge(rec record, was standing, now time.Time) standing {
	is := standing{state: NodeAlive}
	if rec.Name != m.cfg.Self.Node {
		seen, heard := m.heard.node(rec.Name, m.heard.cluster())
		is.state = m.stands(rec.Name, seen, heard, was)
	}
	if is.state == NodeSuspect {
		is.silent = was.silent
		if is.silent.IsZero() {
			is.silent = now
		}
		if now.Sub(is.silent) >= m.times.suspect {
			is.state = NodeDead
		}
	}
	is.since = was.since
	if is.state != was.state {
		is.since = now
	}
	return is
}

// stands weighs gossip against the peer port: a node that answers there is alive
// whatever gossip says, and one that does not is no more than suspect.
func (m *members) stands(node string, seen sighting, heard bool, was standing) NodeState {
	switch {
	case heard && seen.state == NodeLeft:
		return NodeLeft
	case m.cfg.Reachable != nil && m.cfg.Reachable(node):
		return NodeAlive
	case heard && seen.state == NodeAlive:
		if m.cfg.Reachable == nil {
			return NodeAlive
		}
		return NodeSuspect
	case !heard && was.state == NodeLeft:
		return NodeLeft // gossip forgets
	}
	return NodeDead
}
