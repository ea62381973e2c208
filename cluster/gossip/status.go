package gossip

import (
	"time"

	"switchyard/cluster/membership"
)

// MemberStatus is a registered node and its state.
type MemberStatus struct {
	membership.Record
	State membership.NodeState
	// Since is when this node first observed the state.
	Since time.Time
}

// observation is the last observed state of a registered node.
type observation struct {
	state       membership.NodeState
	since       time.Time
	silentSince time.Time // start of its silence; zero while it answers
}

// Status returns the states of the registered nodes, by name. Draining is reported for nodes that
// are alive.
func (m *Gossip) Status() []MemberStatus {
	known := m.cfg.Known()
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]MemberStatus, 0, len(known))
	fresh := make(map[string]observation, len(known))
	for _, rec := range known {
		s := m.observe(rec, m.observed[rec.Name], now)
		fresh[rec.Name] = s
		state := s.state
		if state == membership.NodeAlive && rec.Draining {
			state = membership.NodeDraining
		}
		out = append(out, MemberStatus{Record: rec, State: state, Since: s.since})
	}
	m.observed = fresh
	return out
}

// observe returns the new observation of a node, given the previous one.
func (m *Gossip) observe(rec membership.Record, was observation, now time.Time) observation {
	is := observation{state: membership.NodeAlive}
	if rec.Name != m.cfg.Self.Node {
		seen, heard := m.state.latest(rec.Name, m.state.cluster())
		is.state = m.classify(rec.Name, seen, heard, was)
	}
	if is.state == membership.NodeSuspect {
		is.silentSince = was.silentSince
		if is.silentSince.IsZero() {
			is.silentSince = now
		}
		if now.Sub(is.silentSince) >= m.times.deadAfter {
			is.state = membership.NodeDead
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
func (m *Gossip) classify(node string, seen Node, heard bool, was observation) membership.NodeState {
	switch {
	case heard && seen.State == membership.NodeLeft:
		return membership.NodeLeft
	case m.cfg.Reachable != nil && m.cfg.Reachable(node):
		return membership.NodeAlive
	case heard && seen.State == membership.NodeAlive:
		if m.cfg.Reachable == nil {
			return membership.NodeAlive
		}
		return membership.NodeSuspect
	case !heard && was.state == membership.NodeLeft:
		return membership.NodeLeft // memberlist has forgotten the node
	}
	return membership.NodeDead
}
