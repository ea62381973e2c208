package cluster

// Topology is the cluster as one node sees it (Decision 51).
type Topology struct {
	ClusterID string        `json:"clusterId"`
	Nodes     []NodeStatus  `json:"nodes"`  // by name
	Shards    []ShardStatus `json:"shards"` // by id, the directory's first
}

// NodeState is how a member stands.
type NodeState string

// The states of a member.
const (
	NodeAlive    NodeState = "alive"
	NodeSuspect  NodeState = "suspect"  // does not answer right now
	NodeDead     NodeState = "dead"     // has not answered for long
	NodeDraining NodeState = "draining" // alive, and being emptied
	NodeLeft     NodeState = "left"     // stopped in good order
)

// NodeStatus is one member.
type NodeStatus struct {
	Name     string    `json:"name"`
	State    NodeState `json:"state"`
	Zone     string    `json:"zone"`
	HTTP     string    `json:"http"`
	Peer     string    `json:"peer"`
	Gossip   string    `json:"gossip"`
	Version  string    `json:"version"`
	Leads    int       `json:"leads"`    // shards it leads
	Replicas int       `json:"replicas"` // shards it holds, as voter or not

	Drained bool   `json:"drained,omitempty"` // it drains, and nothing more will leave it
	Note    string `json:"note,omitempty"`    // what is to know about its drain or removal
}

// ShardStatus is one shard.
type ShardStatus struct {
	ID        int      `json:"id"`
	Leader    string   `json:"leader"` // empty when none is known
	Term      uint64   `json:"term"`
	Voters    []string `json:"voters"`
	NonVoters []string `json:"nonVoters"`
	Applied   uint64   `json:"applied"` // newest entry in the leader's state
	Lag       uint64   `json:"lag"`     // entries that the slowest replica is behind
}
