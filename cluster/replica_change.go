package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// membershipTimeout bounds how long a change of members may wait in Raft's queue.
const membershipTimeout = electionTimeout

var (
	errNotCaughtUp  = errors.New("cluster: the member does not follow the group's log closely enough to vote")
	errOnlyReplica  = errors.New("cluster: the node is the group's only voter")
	errNoQuorumLeft = errors.New("cluster: the remaining voters do not answer")
	errHandedOver   = errors.New("cluster: this node led the group and transferred it: ask the new leader")
)

// changeReplica changes one member of a group that this node leads. A change that is already made
// is no error. A leader that is to be removed transfers its leadership instead; the caller then
// asks its successor.
func (n *Node) changeReplica(ctx context.Context, shard storage.Shard, change replicaChange) error {
	g := n.group(shard)
	if g == nil || !g.up.Load() || g.raft.State() != raft.Leader {
		return errNotLeading
	}
	// One change at a time: each decides by the members.
	select {
	case g.changing <- struct{}{}:
		defer func() { <-g.changing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := g.change(ctx, change); err != nil {
		return fmt.Errorf("%s %s in shard %d: %w", change.Action, change.Node, shard, err)
	}
	return nil
}

func (g *group) change(ctx context.Context, change replicaChange) error {
	voters, others, err := g.members()
	if err != nil {
		return err
	}
	votes, there := slices.Contains(voters, change.Node), slices.Contains(others, change.Node)
	id := raft.ServerID(change.Node)
	var future raft.Future
	switch change.Action {
	case replicaAdd:
		if votes || there {
			return nil
		}
		future = g.raft.AddNonvoter(id, raft.ServerAddress(id), 0, membershipTimeout)
	case replicaPromote:
		if votes {
			return nil
		}
		// A voter that is far behind or does not run could cost the group its quorum.
		if !there || !g.isReady(id) {
			return errNotCaughtUp
		}
		future = g.raft.AddVoter(id, raft.ServerAddress(id), 0, membershipTimeout)
	case replicaRemove:
		switch {
		case !votes && !there:
			return nil
		case votes && len(voters) == 1:
			return errOnlyReplica
		case change.Node == g.node:
			if err := g.handOver(ctx, "", true); err != nil {
				return err
			}
			return errHandedOver
		case votes && !g.keepsQuorum(voters, change.Node):
			return errNoQuorumLeft
		}
		future = g.raft.RemoveServer(id, 0, membershipTimeout)
	case replicaTransfer:
		if change.Node == g.node {
			return nil
		}
		return g.handOver(ctx, change.Node, true)
	default:
		return fmt.Errorf("cluster: unknown change of a replica %q", change.Action)
	}
	return within(ctx, future.Error)
}

// isReady reports whether a member without a vote can become a voter: it follows the log, is behind by a few
// entries at most, and is filled, as it has the entry by which it was added (see filling.go).
func (g *group) isReady(id raft.ServerID) bool {
	term := g.raft.CurrentTerm()
	lag, follows := g.tracking.followerProgress(term, id, electionTimeout)
	return follows && lag <= caughtUpLag && g.tracking.followerHas(term, id) >= g.log.Configured()
}

// keepsQuorum reports whether enough of the remaining voters follow the log when one is removed.
func (g *group) keepsQuorum(voters []string, removed string) bool {
	term := g.raft.CurrentTerm()
	left, follow := 0, 0
	for _, voter := range voters {
		if voter == removed {
			continue
		}
		left++
		if voter == g.node {
			follow++
		} else if _, follows := g.tracking.followerProgress(term, raft.ServerID(voter), electionTimeout); follows {
			follow++
		}
	}
	return follow > left/2
}

// members returns the group's voters and non-voters, by name, as this member knows them.
func (g *group) members() (voters, others []string, err error) {
	future := g.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return nil, nil, fmt.Errorf("read the members of shard %d: %w", g.shard, err)
	}
	voters, others = []string{}, []string{}
	for _, server := range future.Configuration().Servers {
		if server.Suffrage == raft.Voter {
			voters = append(voters, string(server.ID))
		} else {
			others = append(others, string(server.ID))
		}
	}
	return voters, others, nil
}
