package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"switchyard/storage"
)

// What an operator asks of the directory's owner. They are part of the protocol.
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
	Unknown bool            `json:"unknown,omitempty"` // there is no such node
	Refusal *permanentError `json:"refusal,omitempty"`
}

// ErrUnknownNode is in the chain of errors about nodes that are no members.
var ErrUnknownNode = errors.New("cluster: no node of that name")

// RefusedError is why the cluster can't be changed as an operator asked.
type RefusedError struct{ Message string }

// Error says why.
func (e *RefusedError) Error() string { return e.Message }

// Drain marks a node as to be emptied. The errors are ErrUnknownNode,
// *RefusedError, and others when the cluster can't be changed now.
func (n *Node) Drain(ctx context.Context, node string) error {
	return n.operate(ctx, operateRequest{operateDrain, node})
}

// Undrain takes Drain back.
func (n *Node) Undrain(ctx context.Context, node string) error {
	return n.operate(ctx, operateRequest{operateUndrain, node})
}

// Remove takes a node out of the cluster for good.
func (n *Node) Remove(ctx context.Context, node string) error {
	return n.operate(ctx, operateRequest{operateRemove, node})
}

// operate has the directory's owner, wherever it is, make the change.
func (n *Node) operate(ctx context.Context, request operateRequest) error {
	switch {
	case n.peering != nil:
	case request.Node != n.id.Node:
		return fmt.Errorf("%w: %q", ErrUnknownNode, request.Node)
	case request.Action == operateUndrain: // nothing was ever drained here
		return nil
	default:
		return &RefusedError{errNoPeerPort.Error()}
	}
	for {
		owner, _, changed := n.ownerOf(0)
		err := errNoDirectory
		switch owner {
		case "":
		case n.id.Node:
			err = n.peering.change(ctx, request)
		default:
			err = n.peering.ask(ctx, owner, request)
		}
		if !errors.Is(err, errNotOwner) && !errors.Is(err, errNotSent) && !errors.Is(err, errNoDirectory) {
			return err
		}
		// All of these changed nothing.
		if waited := awaitChange(ctx, changed); waited != nil {
			return fmt.Errorf("%s %s: %w", request.Action, request.Node, err)
		}
	}
}

// operatePause is how soon an owner that said it was none is asked again.
const operatePause = 100 * time.Millisecond

// awaitChange waits for another owner, or a moment.
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

// change makes the change on the directory's owner.
func (l *peering) change(ctx context.Context, request operateRequest) error {
	var err error
	switch request.Action {
	case operateDrain:
		err = l.registry.setDraining(ctx, request.Node, true)
	case operateUndrain:
		err = l.registry.setDraining(ctx, request.Node, false)
	case operateRemove:
		if rec, known := l.registry.list().node(request.Node); known && rec.Removed {
			return nil // it was before
		}
		err = l.registry.remove(ctx, request.Node)
	default:
		return fmt.Errorf("cluster: %q is no change of the cluster", request.Action)
	}
	if unknown := (*unknownNodeError)(nil); errors.As(err, &unknown) {
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
	var refusal *permanentError
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

// Topology is the cluster as this node sees it, a second late at most, also when it
// is cut off from the others. The answer is shared: change nothing in it.
func (n *Node) Topology(ctx context.Context) Topology { return n.status.status(ctx) }

// ShardOwner gives the node that owns a shard, empty when none is known that
// answers; whether it is this one; and a channel that is closed when the answer is
// another. It is called for every request.
func (n *Node) ShardOwner(shard storage.Shard) (node string, here bool, changed <-chan struct{}) {
	node, _, changed = n.ownerOf(shard)
	return node, node == n.id.Node, changed
}

// PeerListener yields the connections on which other nodes forward requests; nil
// for a node alone.
func (n *Node) PeerListener() net.Listener {
	if n.peering == nil {
		return nil
	}
	return n.peering.port.httpListener()
}

// DialPeer opens a connection on which to forward requests to a node. An error
// means that nothing was sent.
func (n *Node) DialPeer(ctx context.Context, node string) (net.Conn, error) {
	if n.peering == nil {
		return nil, errNoPeerPort
	}
	return n.peering.port.dialHTTP(ctx, node)
}

// GossipAddr and PeerAddr are where other nodes reach this one; empty for a node
// alone.
func (n *Node) GossipAddr() string {
	if n.peering == nil {
		return ""
	}
	return n.peering.gossip.addr
}

// PeerAddr is where other nodes reach this one's peer port; empty for a node
// alone.
func (n *Node) PeerAddr() string {
	if n.peering == nil {
		return ""
	}
	return n.peering.peerAddr
}

// Failed delivers the reason why this node must not go on, if there comes one: it
// was removed from the cluster, or was told to join another one.
func (n *Node) Failed() <-chan error { return n.failed }

// HandleCalls sets who answers Call for shards owned here.
func (n *Node) HandleCalls(serve func(ctx context.Context, body []byte) ([]byte, error)) {
	n.serveCall.Store(&serve)
}

// Call has the owner of a shard, another node, answer a request. What is certainly
// not sent is tried again while ctx lasts. The error is an *Error.
func (n *Node) Call(ctx context.Context, shard storage.Shard, body []byte) ([]byte, error) {
	if n.peering == nil {
		return nil, errNotOwner
	}
	for {
		owner, _, changed := n.ownerOf(shard)
		err := error(errNotOwner)
		if owner != "" && owner != n.id.Node {
			var answer []byte
			if answer, err = n.peering.port.call(ctx, owner, rpcCall, body); err == nil {
				return answer, nil
			}
			if !errors.Is(err, errNotSent) {
				return nil, &Error{message: "the owner's answer is not known", cause: err}
			}
		}
		if owner == n.id.Node {
			return nil, errNotOwner // the caller finds it here now
		}
		if waited := awaitChange(ctx, changed); waited != nil {
			return nil, &Error{message: "the shard's owner could not be reached in time", notApplied: true, cause: err}
		}
	}
}
