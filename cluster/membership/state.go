package membership

// NodeState is the state of a member.
type NodeState string

// The states of a member.
const (
	NodeAlive    NodeState = "alive"
	NodeSuspect  NodeState = "suspect"  // does not answer now
	NodeDead     NodeState = "dead"     // has not answered for a long time
	NodeDraining NodeState = "draining" // alive, and its replicas move to other nodes
	NodeLeft     NodeState = "left"     // stopped on purpose
)
