package placement

import (
	"time"

	"switchyard/storage"
)

// HangRest is how long the disk of a node must have worked before the node is taken for one whose disk does. Each
// further time that it hangs would stop the shards that it had been given to lead for some seconds.
const HangRest = 30 * time.Second

// GroupReport describes a group as seen by a node with a replica of it. Only the leader's report is
// authoritative about the members.
type GroupReport struct {
	Shard     storage.Shard `json:"shard"`
	Leads     bool          `json:"leads"` // Raft's leader, whether or not it serves yet
	Term      uint64        `json:"term"`
	Leader    string        `json:"leader"` // as this replica knows it; empty if unknown
	Epoch     uint64        `json:"epoch"`  // epoch in which this node owns the shard; 0 if it does not
	Voters    []string      `json:"voters"`
	NonVoters []string      `json:"nonVoters"`
	Applied   uint64        `json:"applied"`         // newest entry in this replica's state
	Last      uint64        `json:"last"`            // newest entry in this replica's log
	Full      bool          `json:"full,omitempty"`  // the node should lead nothing: its disk is full, stuck or damaged, or its clock is wrong
	Peers     []PeerReport  `json:"peers,omitempty"` // the other members, on the leader only
	// NoRoom is set while the disk of the node has no room for changes: the replica acknowledges
	// none. Versions before this field leave it out.
	NoRoom bool `json:"noRoom,omitempty"`
	// Stuck is set while writes to the disk of the node hang. Versions before this field leave it out.
	Stuck bool `json:"stuck,omitempty"`
	// Hung is set while the disk of the node works, but has hung within HangRest. Versions before this field
	// leave it out.
	Hung bool `json:"hung,omitempty"`
	// Changing is set on a leader that has a change of the members in its log which is not committed
	// yet: Voters and NonVoters may still become again what they were. Versions before this field
	// leave it out.
	Changing bool `json:"changing,omitempty"`
	// Differing lists the nodes whose replicas differed when this node last compared them as the owner.
	Differing []string `json:"differing,omitempty"`
	// Bytes is an estimate of what a copy of the replica takes, on the leader only; 0 if it is not known.
	// Versions before this field leave it out.
	Bytes uint64 `json:"bytes,omitempty"`
	// Starting is set while the replica is being opened. Only Shard is set with it.
	Starting bool `json:"starting,omitempty"`
	// Failed says why this replica can't follow its group's log; empty while it can. Its leader
	// replaces it.
	Failed string `json:"failed,omitempty"`
}

// takesEntries reports whether the disk of the replica takes new entries.
func (r *GroupReport) takesEntries() bool { return !r.NoRoom && !r.Stuck }

// PeerReport says how far a member follows its leader.
type PeerReport struct {
	Node     string `json:"node"`
	Lag      uint64 `json:"lag"`      // entries behind the leader's log
	CaughtUp bool   `json:"caughtUp"` // near enough to the end to vote, and answered lately
}
