package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"switchyard/cluster/membership"
)

// joinRequest asks to become a member (rpcJoin), updates a member's addresses (rpcRegister), or
// asks for a vote (rpcJoin among nodes without a cluster, see bootstrap).
type joinRequest struct {
	Cluster string            `json:"cluster,omitempty"` // the requesting node's cluster; empty without one
	Shards  int               `json:"shards,omitempty"`  // requested number; 0: any
	Node    membership.Record `json:"node"`
	Relayed bool              `json:"relayed,omitempty"` // a member has relayed the request
	Vote    bool              `json:"pledge,omitempty"`
}

// joinReply answers a joinRequest.
type joinReply struct {
	Cluster string                     `json:"cluster,omitempty"`
	Shards  int                        `json:"shards,omitempty"`
	List    *membership.List           `json:"roster,omitempty"`
	Refusal *membership.PermanentError `json:"refusal,omitempty"`
	Voted   bool                       `json:"pledged,omitempty"`
}

// errNoDirectory is returned while no owner of the directory is known.
var errNoDirectory = errors.New("the owner of the directory is not known right now")

// relayTimeout bounds one control request of the registry.
const relayTimeout = 5 * time.Second

// register sends this node's record to the directory's owner. A *membership.PermanentError is final.
func (r *registry) register(ctx context.Context, self membership.Record) error {
	id := r.cfg.Identity()
	request := joinRequest{Cluster: id.Cluster, Shards: id.Shards, Node: self}
	var reply *joinReply
	var err error
	if refuser := r.takeRefuser(); refuser != "" {
		// A node that was paused may know an owner of the directory that is none any more, or take
		// itself for the owner, and hears of no other while it is refused. The refusing one does.
		reply, err = r.send(ctx, refuser, rpcRegister, &request)
	} else {
		reply, err = r.serve(ctx, rpcRegister, &request)
	}
	if err != nil {
		return err
	}
	if reply.Refusal != nil {
		return reply.Refusal
	}
	if reply.List == nil {
		return errors.New("register with the cluster: the answer lacks the registry")
	}
	return r.adopt(reply.List)
}

// handleRegister handles rpcRegister.
func (r *registry) handleRegister(ctx context.Context, _ string, body []byte) ([]byte, error) {
	return r.answer(ctx, rpcRegister, body)
}

// handleJoin handles rpcJoin on a member of a cluster.
func (r *registry) handleJoin(ctx context.Context, _ string, body []byte) ([]byte, error) {
	return r.answer(ctx, rpcJoin, body)
}

func (r *registry) answer(ctx context.Context, kind rpcKind, body []byte) ([]byte, error) {
	var request joinRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("read a request to join: %w", err)
	}
	reply, err := r.serve(ctx, kind, &request)
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}

// serve decides a request if this node owns the directory; otherwise it relays the request to the
// owner, once.
func (r *registry) serve(ctx context.Context, kind rpcKind, request *joinRequest) (*joinReply, error) {
	id := r.cfg.Identity()
	if !id.joined() {
		return nil, errors.New("this node has joined no cluster yet")
	}
	if request.Vote {
		// A node that asks for votes knows of no cluster. This answer names one.
		return &joinReply{Cluster: id.Cluster, Shards: id.Shards}, nil
	}
	if err := request.Node.Check(); err != nil {
		return nil, err
	}
	if refused := r.fits(kind, id, request); refused != nil {
		return &joinReply{Refusal: refused}, nil
	}
	if _, ok := r.cfg.Directory.owned(); !ok {
		return r.relay(ctx, kind, *request)
	}
	list, err := r.change(ctx, func(l *membership.List) error {
		if kind == rpcJoin {
			return l.Join(request.Node, r.ruleInput())
		}
		return l.Register(request.Node)
	})
	var refused *membership.PermanentError
	if errors.As(err, &refused) {
		return &joinReply{Refusal: refused}, nil
	}
	if err != nil {
		return nil, err
	}
	return &joinReply{Cluster: id.Cluster, Shards: id.Shards, List: list}, nil
}

// fits refuses requests that any member can decide.
func (r *registry) fits(kind rpcKind, id identity, request *joinRequest) *membership.PermanentError {
	var err error
	switch {
	case request.Cluster != "" && request.Cluster != id.Cluster:
		err = otherClusterError(request.Node.Name, request.Cluster, id.Cluster)
	case request.Shards != 0 && request.Shards != id.Shards:
		err = membership.Permanent(membership.ReasonOtherShards, "the cluster has %d shards, fixed when it was formed, and this node asks for %d: start it without --shards", id.Shards, request.Shards)
	case kind == rpcRegister && request.Cluster == "":
		err = membership.Permanent(membership.ReasonUnknownNode, "node %q has joined no cluster", request.Node.Name)
	}
	var refused *membership.PermanentError
	errors.As(err, &refused)
	return refused
}

func otherClusterError(node, own, other string) error {
	return membership.Permanent(membership.ReasonOtherCluster, "the data of node %q belongs to cluster %s, and the nodes of --join to cluster %s: "+
		"correct --join, or start it with an empty data directory to add it to that cluster", node, own, other)
}

func (r *registry) relay(ctx context.Context, kind rpcKind, request joinRequest) (*joinReply, error) {
	owner := r.cfg.Owner()
	if owner == "" || owner == r.cfg.Self().Name || request.Relayed {
		return nil, errNoDirectory
	}
	request.Relayed = true
	return r.send(ctx, owner, kind, &request)
}

// send sends a request to another member.
func (r *registry) send(ctx context.Context, node string, kind rpcKind, request *joinRequest) (*joinReply, error) {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	return sendJoin(ctx, request, func(ctx context.Context, body []byte) ([]byte, error) {
		return r.cfg.Calls.call(ctx, node, kind, body)
	})
}

// sendJoin makes a request through a call and reads the answer.
func sendJoin(ctx context.Context, request *joinRequest, call func(context.Context, []byte) ([]byte, error)) (*joinReply, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("write a request to join: %w", err)
	}
	answer, err := call(ctx, body)
	if err != nil {
		return nil, err
	}
	var reply joinReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, fmt.Errorf("read the answer to a request to join: %w", err)
	}
	if reply.List != nil {
		if err := reply.List.Check(); err != nil {
			return nil, err
		}
	}
	return &reply, nil
}
