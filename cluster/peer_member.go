package cluster

import (
	"fmt"

	"switchyard/cluster/membership"
)

// A node that is paused or cut off while it is removed does not hear of its release, and its name may
// be another node's when it goes on. Two nodes under one name would count as one for Raft and for the
// shard map. So each node refuses the others that are no peers by its own list, and connections for a
// data directory that had its name before. Of two nodes with different lists the newer list decides: a
// node that has just joined is not refused by those that have not heard of it.

const noMemberText = "the node there knows that this one was removed from the cluster"

// errNoMember is the error of a control request that was refused since its sender is no peer.
var errNoMember = fmt.Errorf("%w: %s", errNotSent, noMemberText)

// members returns the newest node list that this node has received.
func (p *peerPort) members() *membership.List {
	if p.cfg.Members == nil {
		return &membership.List{}
	}
	return p.cfg.Members()
}

// addressTo completes the hello to a node by this node's list.
func (p *peerPort) addressTo(hello *peerHello) {
	list := p.members()
	hello.Registry = list.Version
	if rec, ok := list.Node(hello.To); ok && !rec.Released {
		hello.ToInstance = rec.Instance
	}
}

// refuses reports whether requests of the node of a hello are to be refused.
func (p *peerPort) refuses(h *peerHello) bool {
	return p.members().Refuses(h.From, h.Instance, h.Registry)
}

// isEarlier reports whether a hello is for another node of this one's name, by a list that is at least
// as new as this node's own.
func (p *peerPort) isEarlier(h *peerHello) bool {
	return h.ToInstance != "" && h.ToInstance != p.cfg.Self().instance && h.Registry >= p.members().Version
}

// refusesRequest reports whether a control request is to be refused. A node that is no peer may ask
// the owner of the directory whether it is one.
func (p *peerPort) refusesRequest(kind rpcKind, h *peerHello) bool {
	return h.Cluster != "" && kind != rpcJoin && kind != rpcRegister && p.refuses(h)
}
