package cluster

import "context"

// rpcKind is the kind of a control request between nodes. The numbers are part of the protocol:
// never change or reuse one.
type rpcKind byte

const (
	rpcHeartbeat rpcKind = 1  // shards that the sender owns; the answer has the same form
	rpcJoin      rpcKind = 2  // an empty node asks to become a member
	rpcRegister  rpcKind = 3  // a member sends its addresses to the directory's owner
	rpcReport    rpcKind = 4  // reports about the groups on a node
	rpcHost      rpcKind = 5  // create an empty replica of a shard
	rpcDrop      rpcKind = 6  // delete a replica that is not a member of its group
	rpcReplicas  rpcKind = 7  // change the members of a group, on its leader
	rpcCall      rpcKind = 8  // a step of an operation on a shard that another node owns
	rpcOperate   rpcKind = 9  // an operator's change, on the directory's owner
	rpcCompare   rpcKind = 10 // the fingerprint of a replica at an entry
)

// rpcHandler handles control requests of one kind. from is the name of the requesting node, empty
// if that has not joined. The text of an error is sent to the requesting node.
type rpcHandler func(ctx context.Context, from string, body []byte) ([]byte, error)
