package cluster

import (
	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// groupReport is how one group stands, as a node that hosts a replica of it sees
// it. On the leader it is the truth about the members, elsewhere gossipState.
type groupReport struct {
	Shard     storage.Shard `json:"shard"`
	Leads     bool          `json:"leads"` // Raft's leader, whether or not it serves already
	Term      uint64        `json:"term"`
	Leader    string        `json:"leader"` // as this replica knows it; empty when it knows none
	Epoch     uint64        `json:"epoch"`  // in which this node owns the shard; 0 when it does not
	Voters    []string      `json:"voters"`
	NonVoters []string      `json:"nonVoters"`
	Applied   uint64        `json:"applied"`         // newest entry in this replica's state
	Last      uint64        `json:"last"`            // newest entry in this replica's log
	Full      bool          `json:"full,omitempty"`  // the node's disk is full: it should lead nothing
	Peers     []peerReport  `json:"peers,omitempty"` // the other members, on the leader only
}

// peerReport is how far another member of the group follows its leader.
type peerReport struct {
	Node     string `json:"node"`
	Lag      uint64 `json:"lag"`      // entries it is behind the leader's log
	CaughtUp bool   `json:"caughtUp"` // near enough to the end to vote, and heard of lately
}

// replicaAction is a change of one member of a group, made on its leader.
type replicaAction string

const (
	replicaAdd      replicaAction = "add"      // as a non-voter
	replicaPromote  replicaAction = "promote"  // a non-voter to a voter
	replicaRemove   replicaAction = "remove"   // voter or not
	replicaTransfer replicaAction = "transfer" // the leadership, to a voter
)

// replicaChange names the member it is about.
type replicaChange struct {
	Action replicaAction `json:"action"`
	Node   string        `json:"node"`
}

// report tells how the groups on this node stand.
func (n *Node) report() []groupReport {
	var reports []groupReport
	full := n.cfg.Full != nil && n.cfg.Full()
	for _, g := range n.hosted() {
		if !g.up.Load() {
			continue
		}
		if r, err := g.report(); err == nil { // else it ends
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
