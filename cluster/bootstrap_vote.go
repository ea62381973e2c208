package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster/gossip"
	"switchyard/cluster/membership"
)

// tryForm lets nodes with empty data form a cluster together. The node with the lowest name forms
// it when it sees as many nodes as expected and each of them votes for it. A node votes for one
// candidate at a time and forms nothing itself meanwhile, so that two nodes that see different
// parts of the others do not both form a cluster. (With twice the expected number of nodes they
// might.)
func (f *bootstrap) tryForm(ctx context.Context, live []gossip.Node) (reason string, err error) {
	self := f.cfg.Self()
	waiting := latestStarted(live)
	if here := len(waiting) + 1; here < f.cfg.Expect {
		return fmt.Sprintf("%d of the %d nodes of --bootstrap-expect run: %s", here, f.cfg.Expect, nodeNames(self.Name, waiting)), nil
	}
	lowest := slices.MinFunc(waiting, func(a, b gossip.Node) int { return cmp.Compare(a.Node, b.Node) })
	switch {
	case lowest.Node == self.Name:
		return "", membership.Permanent(membership.ReasonNameTaken, "another node named %q waits for the same cluster, at %s: give this one a name of its own with --node-name", self.Name, lowest.Peer)
	case lowest.Node < self.Name:
		return fmt.Sprintf("node %q is to form the cluster", lowest.Node), nil
	}
	if moment := time.Since(lastSeen(waiting)); moment < f.times.settle {
		if err := pause(ctx, f.times.settle-moment); err != nil {
			return "", fmt.Errorf("wait for a cluster: %w", err)
		}
		return "the nodes have met only now", nil
	}
	return f.requestVotes(ctx, self, waiting)
}

// requestVotes asks the other nodes for their votes and forms a cluster when it has enough.
func (f *bootstrap) requestVotes(ctx context.Context, self membership.Record, waiting []gossip.Node) (reason string, err error) {
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
			// The node has a cluster that gossip does not show yet.
			return fmt.Sprintf("node %q belongs to a cluster", s.Node), nil
		case reply.Voted:
			votes++
		}
	}
	// Votes expire. After a slow round some may have expired already.
	if votes < f.cfg.Expect || time.Since(began) > f.times.voteTTL/2 {
		f.withdrawVote(self)
		return reason, nil
	}
	return "", f.adopt(func(id identity, db *pebble.DB) (identity, error) {
		if id.joined() {
			return id, nil
		}
		return id.form(db)
	}, "formed a cluster")
}

// vote binds this node to one candidate until the vote expires.
func (f *bootstrap) vote(candidate membership.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.votedFor.Instance != candidate.Instance && now.Before(f.voteExpires) {
		return fmt.Errorf("%w: %q", errVoted, f.votedFor.Name)
	}
	f.votedFor, f.voteExpires = candidate, now.Add(f.times.voteTTL)
	return nil
}

// withdrawVote ends a vote of this node for itself.
func (f *bootstrap) withdrawVote(self membership.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.votedFor.Instance == self.Instance {
		f.voteExpires = time.Time{}
	}
}

// handleVote handles rpcJoin on a node without a cluster. On a member the registry handles it, see
// answerJoin.
func (f *bootstrap) handleVote(_ context.Context, _ string, body []byte) ([]byte, error) {
	var request joinRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("read a request to join: %w", err)
	}
	if !request.Vote {
		return nil, fmt.Errorf("node %q has joined no cluster yet", f.identity().Node)
	}
	if err := request.Node.Check(); err != nil {
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

// answerJoin handles rpcJoin.
func answerJoin(f *bootstrap, r *registry) rpcHandler {
	return func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if f.identity().joined() {
			return r.handleJoin(ctx, from, body)
		}
		return f.handleVote(ctx, from, body)
	}
}

// latestStarted keeps, of the processes of each node, the one started last. alive returns them in
// that order.
func latestStarted(live []gossip.Node) []gossip.Node {
	return slices.CompactFunc(slices.Clone(live), func(a, b gossip.Node) bool { return a.Node == b.Node && a.Instance == b.Instance })
}

func lastSeen(waiting []gossip.Node) time.Time {
	return slices.MaxFunc(waiting, func(a, b gossip.Node) int { return a.Since.Compare(b.Since) }).Since
}

func nodeNames(self string, waiting []gossip.Node) string {
	names := []string{self}
	for _, s := range waiting {
		names = append(names, s.Node)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
