package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
	"switchyard/storage"
)

// Actions that an operator requests from the directory's owner. They are part of the protocol.
const (
	operateDrain   = "drain"
	operateUndrain = "undrain"
	operateRemove  = "remove"
)

type operateRequest struct {
	Action string `json:"action"`
	Node   string `json:"node"`
}

type operateReply struct {
	Unknown bool                       `json:"unknown,omitempty"` // the node does not exist
	Refusal *membership.PermanentError `json:"refusal,omitempty"`
}

// ErrUnknownNode is wrapped by errors about nodes that are not members.
var ErrUnknownNode = errors.New("cluster: no node of that name")

// RefusedError says why the cluster refuses an operator's request.
type RefusedError struct{ Message string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Message }

// Drain marks a node for draining: its replicas and leaderships move to other nodes. It returns
// ErrUnknownNode, a *RefusedError, or another error if the cluster can't be changed now: an *Error if nothing was
// changed for certain.
func (n *Node) Drain(ctx context.Context, node string) error {
	return n.operate(ctx, operateRequest{operateDrain, node})
}

// Undrain ends a drain, and takes a removal back.
func (n *Node) Undrain(ctx context.Context, node string) error {
	return n.operate(ctx, operateRequest{operateUndrain, node})
}

// Remove removes a node from the cluster. Its leaderships and replicas move to other nodes; it serves
// those that did not move yet. When no group counts it any more, it is refused and its name is free.
func (n *Node) Remove(ctx context.Context, node string) error {
	return n.operate(ctx, operateRequest{operateRemove, node})
}

// operate sends the change to the directory's owner, on whichever node that is.
func (n *Node) operate(ctx context.Context, request operateRequest) error {
	switch {
	case n.peering != nil:
	case request.Node != n.id.Node:
		return fmt.Errorf("%w: %q", ErrUnknownNode, request.Node)
	case request.Action == operateUndrain: // a node alone is never draining
		return nil
	default:
		return &RefusedError{errNoPeerPort.Error()}
	}
	for {
		owner, changed := n.ownerOf(0)
		err := errNoDirectory
		switch owner {
		case "":
		case n.id.Node:
			err = n.peering.change(ctx, request)
			if refusal := (*membership.PermanentError)(nil); errors.As(err, &refusal) {
				err = &RefusedError{refusal.Message}
			}
		default:
			err = n.peering.ask(ctx, owner, request)
		}
		if !errors.Is(err, errNotOwner) && !errors.Is(err, errNotSent) && !errors.Is(err, errNoDirectory) {
			return err
		}
		// None of these errors changed anything, so the request may be repeated.
		if waited := awaitChange(ctx, changed); waited != nil {
			return &Error{message: fmt.Sprintf("could not ask to %s %s", request.Action, request.Node), notApplied: true, cause: err}
		}
	}
}

// operatePause is the wait before an owner that reported that it is not the owner is asked again.
const operatePause = 100 * time.Millisecond

// awaitChange waits until the owner changes or operatePause has passed.
func awaitChange(ctx context.Context, changed <-chan struct{}) error {
	timer := time.NewTimer(operatePause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// change makes the change on this node, which owns the directory.
func (l *peering) change(ctx context.Context, request operateRequest) error {
	var err error
	switch request.Action {
	case operateDrain:
		err = l.registry.setDraining(ctx, request.Node, true)
	case operateUndrain:
		err = l.registry.setDraining(ctx, request.Node, false)
	case operateRemove:
		if rec, known := l.registry.list().Node(request.Node); known && rec.Removed {
			return nil // removed before
		}
		err = l.registry.remove(ctx, request.Node)
	default:
		return fmt.Errorf("cluster: unknown change of the cluster %q", request.Action)
	}
	if unknown := (*membership.UnknownNodeError)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("%w: %q", ErrUnknownNode, request.Node)
	}
	return err
}

func (l *peering) ask(ctx context.Context, owner string, request operateRequest) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := l.port.call(ctx, owner, rpcOperate, body)
	if err != nil {
		var rpcErr *rpcError
		if errors.As(err, &rpcErr) && rpcErr.message == errNotOwner.Error() {
			return errNotOwner
		}
		return err
	}
	var reply operateReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("read the answer of %s: %w", owner, err)
	}
	switch {
	case reply.Unknown:
		return fmt.Errorf("%w: %q", ErrUnknownNode, request.Node)
	case reply.Refusal != nil:
		return &RefusedError{reply.Refusal.Message}
	}
	return nil
}

// handleOperate answers rpcOperate.
func (l *peering) handleOperate(ctx context.Context, _ string, body []byte) ([]byte, error) {
	var request operateRequest
	if err := decodeRequest(body, &request); err != nil {
		return nil, err
	}
	err := l.change(ctx, request)
	var refusal *membership.PermanentError
	switch {
	case err == nil:
		return json.Marshal(operateReply{})
	case errors.Is(err, ErrUnknownNode):
		return json.Marshal(operateReply{Unknown: true})
	case errors.As(err, &refusal):
		return json.Marshal(operateReply{Refusal: refusal})
	case errors.Is(err, errNotOwner):
		return nil, errNotOwner
	}
	return nil, err
}

// Topology returns the cluster as this node sees it, at most a second old. It also answers when the
// node is cut off from the others. The result is shared and must not be changed.
func (n *Node) Topology(ctx context.Context) Topology { return n.status.status(ctx) }

// IsMember reports whether a node of the name is in the cluster, as far as this node knows.
func (n *Node) IsMember(name string) bool {
	v, _ := n.membersView()
	return slices.ContainsFunc(v.members, func(m placement.Member) bool { return m.Name == name })
}

// ShardOwner returns the node that owns a shard (empty if no reachable owner is known), whether
// that is this node, and a channel that is closed when the answer changes. It is called for every
// request.
func (n *Node) ShardOwner(shard storage.Shard) (node string, here bool, changed <-chan struct{}) {
	node, changed = n.ownerOf(shard)
	return node, node == n.id.Node, changed
}

// OwnerDue returns until when a request waits for an owner of a shard, if it has found none since
// missing: ownerWait after the last sign of an owner. missing counts if this node knows an owner that it
// reaches, or lost it later.
func (n *Node) OwnerDue(shard storage.Shard, missing time.Time) time.Time {
	if lost := n.unownedSince(shard); !lost.IsZero() && lost.Before(missing) {
		missing = lost
	}
	return missing.Add(ownerWait)
}

// ownerWait is how long requests wait for an owner after the last sign of the one before. A fail-over
// takes less. A node that is cut off from the majority refuses later requests at once. An owner on this
// node notices within electionTimeout that it has lost the majority, so all requests are refused within
// four seconds (Decision 55).
const ownerWait = 3 * time.Second

// PeerListener returns the listener of connections with forwarded requests; nil for a node alone.
func (n *Node) PeerListener() net.Listener {
	if n.peering == nil {
		return nil
	}
	return n.peering.port.httpListener()
}

// DialPeer opens a connection for forwarded requests to a node. After an error nothing was sent.
func (n *Node) DialPeer(ctx context.Context, node string) (net.Conn, error) {
	if n.peering == nil {
		return nil, errNoPeerPort
	}
	return n.peering.port.dialHTTP(ctx, node)
}

// GossipAddr returns the address at which other nodes reach this node's gossip; empty for a node
// alone.
func (n *Node) GossipAddr() string {
	if n.peering == nil {
		return ""
	}
	return n.peering.gossip.Addr
}

// PeerAddr returns the address at which other nodes reach this node's peer port; empty for a node
// alone.
func (n *Node) PeerAddr() string {
	if n.peering == nil {
		return ""
	}
	return n.peering.peerAddr
}

// Failed delivers the reason why this node must stop, if there is one: the node was removed from
// the cluster, or its --join addresses belong to another cluster.
func (n *Node) Failed() <-chan error { return n.failed }

// HandleCalls sets the handler of Call for shards that this node owns.
func (n *Node) HandleCalls(serve func(ctx context.Context, body []byte) ([]byte, error)) {
	n.serveCall.Store(&serve)
}

// Call sends a request to the owner of a shard on another node. A request that was certainly not
// sent is repeated until ctx ends, or until the shard has had no owner for ownerWait. The error is
// an *Error.
func (n *Node) Call(ctx context.Context, shard storage.Shard, body []byte) ([]byte, error) {
	if n.peering == nil {
		return nil, errNotOwner
	}
	for {
		owner, changed := n.ownerOf(shard)
		err := error(errNotOwner)
		if owner != "" && owner != n.id.Node {
			var answer []byte
			if answer, err = n.peering.port.call(ctx, owner, rpcCall, body); err == nil {
				return answer, nil
			}
			if !errors.Is(err, errNotSent) {
				return nil, &Error{message: "the outcome at the shard's owner is unknown", cause: err}
			}
		}
		if owner == n.id.Node {
			return nil, errNotOwner // the caller finds the owner on this node
		}
		wait, cancel := ctx, context.CancelFunc(func() {})
		if since := n.unownedSince(shard); !since.IsZero() {
			wait, cancel = context.WithDeadline(ctx, since.Add(ownerWait))
		}
		waited := awaitChange(wait, changed)
		cancel()
		if waited != nil {
			return nil, &Error{message: "the shard's owner could not be reached in time", notApplied: true, cause: err}
		}
	}
}
