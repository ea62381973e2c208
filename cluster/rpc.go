package cluster

import "context"

// rpcKind is what a control request between nodes asks for. The numbers are part
// of the protocol: never change or reuse one.
type rpcKind byte

const (
	rpcHeartbeat rpcKind = 1 // who I am still here and own what; answered with the same
	rpcJoin      rpcKind = 2 // an empty node asks to become a member
	rpcRegister  rpcKind = 3 // a member tells the directory's owner its addresses
	rpcReport    rpcKind = 4 // how the groups on a node stand
	rpcHost      rpcKind = 5 // make an empty replica of a shard
	rpcDrop      rpcKind = 6 // delete a replica that is no member of its group
	rpcReplicas  rpcKind = 7 // change the members of a group, on its leader
	rpcCall      rpcKind = 8 // an operation's step on a shard that another node owns
	rpcOperate   rpcKind = 9 // an operator's change, on the directory's owner
)

// rpcHandler answers control requests of one kind. from is the asking node's
// name, empty when it has not joined. An error is told to the asker by its text.
type rpcHandler func(ctx context.Context, from string, body []byte) ([]byte, error)
