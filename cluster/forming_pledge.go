package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// gather has nodes with empty data form a cluster together: the one with the
// lowest name does, when it sees as many as are expected and each of them pledges
// itself to it. A node pledges itself to one at a time and forms nothing itself
// meanwhile, so that two that see different parts of the others don't both form.
// (With twice the expected number of nodes they might.)
func (f *forming) gather(ctx context.Context, live []sighting) (why string, err error) {
	self := f.cfg.Self()
	waiting := newest(live)
	if here := len(waiting) + 1; here < f.cfg.Expect {
		return fmt.Sprintf("%d of the %d nodes of --bootstrap-expect are here: %s", here, f.cfg.Expect, namesOf(self.Name, waiting)), nil
	}
	lowest := slices.MinFunc(waiting, func(a, b sighting) int { return cmp.Compare(a.Node, b.Node) })
	switch {
	case lowest.Node == self.Name:
		return "", refuse(refusedName, "another node named %q waits for the same cluster, at %s: give this one a name of its own with --node-name", self.Name, lowest.Peer)
	case lowest.Node < self.Name:
		return fmt.Sprintf("node %q is to form the cluster", lowest.Node), nil
	}
	if moment := time.Since(youngest(waiting)); moment < f.times.settle {
		if err := pause(ctx, f.times.settle-moment); err != nil {
			return "", fmt.Errorf("wait for a cluster: %w", err)
		}
		return "the nodes have just met", nil
	}
	return f.canvass(ctx, self, waiting)
}

// canvass asks the others for their pledges and forms a cluster when it has
// enough.
func (f *forming) canvass(ctx context.Context, self record, waiting []sighting) (why string, err error) {
	began := time.Now()
	if err := f.pledge(self); err != nil {
		return fmt.Sprintf("this node is %v", err), nil
	}
	pledges := 1
	for _, s := range waiting {
		if pledges == f.cfg.Expect {
			break
		}
		reply, err := f.ask(ctx, s.Peer, &joinRequest{Node: self, Pledge: true})
		switch {
		case err != nil:
			why = fmt.Sprintf("node %q at %s does not let this node form the cluster: %v", s.Node, s.Peer, err)
		case reply.Cluster != "":
			// It has a cluster that gossip has yet to tell of.
			return fmt.Sprintf("node %q belongs to a cluster", s.Node), nil
		case reply.Pledged:
			pledges++
		}
	}
	// Pledges run out; what took long may not stand any more.
	if pledges < f.cfg.Expect || time.Since(began) > f.times.pledge/2 {
		f.unpledge(self)
		return why, nil
	}
	return "", f.become(func(id identity) (identity, error) {
		if id.joined() {
			return id, nil
		}
		return id.form(f.cfg.Raft)
	}, "formed a cluster")
}

// pledge keeps this node to one candidate for a while.
func (f *forming) pledge(candidate record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.pledged.Instance != candidate.Instance && now.Before(f.until) {
		return fmt.Errorf("%w: %q", errPledged, f.pledged.Name)
	}
	f.pledged, f.until = candidate, now.Add(f.times.pledge)
	return nil
}

// unpledge frees this node of a pledge to itself that led to nothing.
func (f *forming) unpledge(self record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pledged.Instance == self.Instance {
		f.until = time.Time{}
	}
}

// handlePledge answers rpcJoin on a node that belongs to no cluster; registry
// answers it on one that does, see answerJoin.
func (f *forming) handlePledge(_ context.Context, _ string, body []byte) ([]byte, error) {
	var request joinRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("read a request to join: %w", err)
	}
	if !request.Pledge {
		return nil, fmt.Errorf("node %q has joined no cluster yet", f.identity().Node)
	}
	if err := request.Node.check(); err != nil {
		return nil, err
	}
	id := f.identity()
	if id.joined() {
		return json.Marshal(joinReply{Cluster: id.Cluster, Shards: id.Shards})
	}
	if request.Node.Name >= id.Node {
		return nil, fmt.Errorf("node %q has a lower name", id.Node)
	}
	if err := f.pledge(request.Node); err != nil {
		return nil, err
	}
	return json.Marshal(joinReply{Pledged: true})
}

// answerJoin is the handler of rpcJoin.
func answerJoin(f *forming, r *registry) rpcHandler {
	return func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if f.identity().joined() {
			return r.handleJoin(ctx, from, body)
		}
		return f.handlePledge(ctx, from, body)
	}
}

// newest leaves of each node's processes the last started; live has them in that
// order.
func newest(live []sighting) []sighting {
	return slices.CompactFunc(slices.Clone(live), func(a, b sighting) bool { return a.Node == b.Node && a.Instance == b.Instance })
}

func youngest(waiting []sighting) time.Time {
	return slices.MaxFunc(waiting, func(a, b sighting) int { return a.since.Compare(b.since) }).since
}

func namesOf(self string, waiting []sighting) string {
	names := []string{self}
	for _, s := range waiting {
		names = append(names, s.Node)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
