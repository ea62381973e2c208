package cluster

import "time"

// memberStatus is a registered node and its state.
type memberStatus struct {
	record
	State NodeState
	// Since is when this node first observed the state.
	Since time.Time
}

// observation is the last observed state of a registered node.
type observation struct {
	state       NodeState
	since       time.Time
	silentSince time.Time // start of its silence; zero while it answers
}

// status returns the states of the registered nodes, by name. Draining is reported for nodes that
// are alive.
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

// observe returns the new observation of a node, given the previous one.
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

// classify combines gossip and the peer port: a node that answers on its peer port is alive
// whatever gossip says, and a node that does not is suspect at best.
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
		return NodeLeft // memberlist has forgotten the node
	}
	return NodeDead
}
