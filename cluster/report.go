package cluster

import (
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// groupReport describes a group as seen by a node with a replica of it. Only the leader's report is
// authoritative about the members.
type groupReport struct {
	Shard     storage.Shard `json:"shard"`
	Leads     bool          `json:"leads"` // Raft's leader, whether or not it serves yet
	Term      uint64        `json:"term"`
	Leader    string        `json:"leader"` // as this replica knows it; empty if unknown
	Epoch     uint64        `json:"epoch"`  // epoch in which this node owns the shard; 0 if it does not
	Voters    []string      `json:"voters"`
	NonVoters []string      `json:"nonVoters"`
	Applied   uint64        `json:"applied"`         // newest entry in this replica's state
	Last      uint64        `json:"last"`            // newest entry in this replica's log
	Full      bool          `json:"full,omitempty"`  // the node's disk is full: it should lead nothing
	Peers     []peerReport  `json:"peers,omitempty"` // the other members, on the leader only
}

// peerReport says how far a member follows its leader.
type peerReport struct {
	Node     string `json:"node"`
	Lag      uint64 `json:"lag"`      // entries behind the leader's log
	CaughtUp bool   `json:"caughtUp"` // near enough to the end to vote, and answered lately
}

// replicaAction is a change of one member of a group. The group's leader makes it.
type replicaAction string

const (
	replicaAdd      replicaAction = "add"      // as a non-voter
	replicaPromote  replicaAction = "promote"  // a non-voter to a voter
	replicaRemove   replicaAction = "remove"   // voter or not
	replicaTransfer replicaAction = "transfer" // the leadership, to a voter
)

// replicaChange is a change with its member.
type replicaChange struct {
	Action replicaAction `json:"action"`
	Node   string        `json:"node"`
}

// report describes the groups on this node.
func (n *Node) report() []groupReport {
	var reports []groupReport
	full := n.cfg.Full != nil && n.cfg.Full()
	for _, g := range n.hosted() {
		if !g.up.Load() {
			continue
		}
		if r, err := g.report(); err == nil { // otherwise the group is stopping
			r.Full = full
			reports = append(reports, r)
		}
	}
	return reports
}

func (g *group) report() (groupReport, error) {
	voters, others, err := g.members()
	if err != nil {
		return groupReport{}, err
	}
	_, leader := g.raft.LeaderWithID()
	_, last := g.log.bounds()
	r := groupReport{
		Shard:     g.shard,
		Leads:     g.raft.State() == raft.Leader,
		Term:      g.raft.CurrentTerm(),
		Leader:    string(leader),
		Epoch:     g.epoch.Load(),
		Voters:    voters,
		NonVoters: others,
		Applied:   g.machine.applied.Load(),
	}
	r.Last = max(last, r.Applied)
	if !r.Leads {
		return r, nil
	}
	for _, names := range [][]string{voters, others} {
		for _, name := range names {
			if name == g.node {
				continue
			}
			peer := peerReport{Node: name, Lag: r.Last}
			if lag, follows := g.tracking.followerProgress(r.Term, raft.ServerID(name), electionTimeout); follows {
				peer.Lag, peer.CaughtUp = lag, lag <= caughtUpLag
			}
			r.Peers = append(r.Peers, peer)
		}
	}
	return r, nil
}
