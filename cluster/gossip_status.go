package cluster

import "time"

// memberStatus is a registered node and how it stands.
type memberStatus struct {
	record
	State NodeState
	// Since is when this node first saw it so.
	Since time.Time
}

// observation is how a registered node was seen last.
type observation struct {
	state       NodeState
	since       time.Time
	silentSince time.Time // since when it has not answered; zero: it does
}

// status tells how the registered nodes stand, by name. Draining overlays alive.
func (m *gossip) status() []memberStatus {
	known := m.cfg.Known()
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]memberStatus, 0, len(known))
	fresh := make(map[string]observation, len(known))
	for _, rec := range known {
		s := m.observe(rec, m.observed[rec.Name], now)
		fresh[rec.Name] = s
		state := s.state
		if state == NodeAlive && rec.Draining {
			state = NodeDraining
		}
		out = append(out, memberStatus{record: rec, State: state, Since: s.since})
	}
	m.observed = fresh
	return out
}

// observe is how a node stands, given how it stood.
func (m *gossip) observe(rec record, was observation, now time.Time) observation {
	is := observation{state: NodeAlive}
	if rec.Name != m.cfg.Self.Node {
		seen, heard := m.state.latest(rec.Name, m.state.cluster())
		is.state = m.classify(rec.Name, seen, heard, was)
	}
	if is.state == NodeSuspect {
		is.silentSince = was.silentSince
		if is.silentSince.IsZero() {
			is.silentSince = now
		}
		if now.Sub(is.silentSince) >= m.times.deadAfter {
			is.state = NodeDead
		}
	}
	is.since = was.since
	if is.state != was.state {
		is.since = now
	}
	return is
}

// classify weighs gossip against the peer port: a node that answers there is alive
// whatever gossip says, and one that does not is no more than suspect.
func (m *gossip) classify(node string, seen gossipNode, heard bool, was observation) NodeState {
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
