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

// tryForm has nodes with empty data form a cluster together: the one with the
// lowest name does, when it sees as many as are expected and each of them votes
// itself to it. A node votes for one at a time and forms nothing itself
// meanwhile, so that two that see different parts of the others don't both form.
// (With twice the expected number of nodes they might.)
func (f *bootstrap) tryForm(ctx context.Context, live []gossipNode) (reason string, err error) {
	self := f.cfg.Self()
	waiting := latestStarted(live)
	if here := len(waiting) + 1; here < f.cfg.Expect {
		return fmt.Sprintf("%d of the %d nodes of --bootstrap-expect are here: %s", here, f.cfg.Expect, nodeNames(self.Name, waiting)), nil
	}
	lowest := slices.MinFunc(waiting, func(a, b gossipNode) int { return cmp.Compare(a.Node, b.Node) })
	switch {
	case lowest.Node == self.Name:
		return "", permanent(refusedName, "another node named %q waits for the same cluster, at %s: give this one a name of its own with --node-name", self.Name, lowest.Peer)
	case lowest.Node < self.Name:
		return fmt.Sprintf("node %q is to form the cluster", lowest.Node), nil
	}
	if moment := time.Since(lastSeen(waiting)); moment < f.times.settle {
		if err := pause(ctx, f.times.settle-moment); err != nil {
			return "", fmt.Errorf("wait for a cluster: %w", err)
		}
		return "the nodes have just met", nil
	}
	return f.requestVotes(ctx, self, waiting)
}

// requestVotes asks the others for their votes and forms a cluster when it has
// enough.
func (f *bootstrap) requestVotes(ctx context.Context, self record, waiting []gossipNode) (reason string, err error) {
	began := time.Now()
	if err := f.vote(self); err != nil {
		return fmt.Sprintf("this node %v", err), nil
	}
	votes := 1
	for _, s := range waiting {
		if votes == f.cfg.Expect {
			break
		}
		reply, err := f.ask(ctx, s.Peer, &joinRequest{Node: self, Vote: true})
		switch {
		case err != nil:
			reason = fmt.Sprintf("node %q at %s does not let this node form the cluster: %v", s.Node, s.Peer, err)
		case reply.Cluster != "":
			// It has a cluster that gossip has yet to tell of.
			return fmt.Sprintf("node %q belongs to a cluster", s.Node), nil
		case reply.Voted:
			votes++
		}
	}
	// Votes run out; what took long may not stand any more.
	if votes < f.cfg.Expect || time.Since(began) > f.times.voteTTL/2 {
		f.withdrawVote(self)
		return reason, nil
	}
	return "", f.adopt(func(id identity) (identity, error) {
		if id.joined() {
			return id, nil
		}
		return id.form(f.cfg.Raft)
	}, "formed a cluster")
}

// vote keeps this node to one candidate for a while.
func (f *bootstrap) vote(candidate record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.votedFor.Instance != candidate.Instance && now.Before(f.voteExpires) {
		return fmt.Errorf("%w: %q", errVoted, f.votedFor.Name)
	}
	f.votedFor, f.voteExpires = candidate, now.Add(f.times.voteTTL)
	return nil
}

// withdrawVote frees this node of a vote to itself that led to nothing.
func (f *bootstrap) withdrawVote(self record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.votedFor.Instance == self.Instance {
		f.voteExpires = time.Time{}
	}
}

// handleVote answers rpcJoin on a node that belongs to no cluster; registry
// answers it on one that does, see answerJoin.
func (f *bootstrap) handleVote(_ context.Context, _ string, body []byte) ([]byte, error) {
	var request joinRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("read a request to join: %w", err)
	}
	if !request.Vote {
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
	if err := f.vote(request.Node); err != nil {
		return nil, err
	}
	return json.Marshal(joinReply{Voted: true})
}

// answerJoin is the handler of rpcJoin.
func answerJoin(f *bootstrap, r *registry) rpcHandler {
	return func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if f.identity().joined() {
			return r.handleJoin(ctx, from, body)
		}
		return f.handleVote(ctx, from, body)
	}
}

// latestStarted leaves of each node's processes the last started; live has them in that
// order.
func latestStarted(live []gossipNode) []gossipNode {
	return slices.CompactFunc(slices.Clone(live), func(a, b gossipNode) bool { return a.Node == b.Node && a.Instance == b.Instance })
}

func lastSeen(waiting []gossipNode) time.Time {
	return slices.MaxFunc(waiting, func(a, b gossipNode) int { return a.since.Compare(b.since) }).since
}

func nodeNames(self string, waiting []gossipNode) string {
	names := []string{self}
	for _, s := range waiting {
		names = append(names, s.Node)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
