package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// handoverRequest asks the lead goroutine to give the leadership to another voter.
type handoverRequest struct {
	to      string // empty: to one that follows
	release bool   // write to the log that this node stopped answering
	done    chan error
}

// errNotLeading answers what only a group's leader can do.
var errNotLeading = errors.New("cluster: this node does not lead the shard")

// handOver gives the group's leadership to a voter: this node stops answering, says so
// in the log, and then the other one is told to stand. When that fails, this node
// serves on in a new epoch. A target that does not follow is refused before anything
// is given up.
func (g *group) handOver(ctx context.Context, to string, release bool) error {
	if g.raft.State() != raft.Leader {
		return errNotLeading
	}
	if successors := g.successors(to); len(successors) == 0 {
		return g.noSuccessor(to)
	}
	request := &handoverRequest{to: to, release: release, done: make(chan error, 1)}
	select {
	case g.handovers <- request:
	case <-g.led:
		return errClosing
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-request.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *group) noSuccessor(to string) error {
	if to == "" {
		return fmt.Errorf("cluster: shard %d has no other voter that follows its log", g.shard)
	}
	return fmt.Errorf("cluster: node %q is no voter of shard %d that follows its log", to, g.shard)
}

// transferTries bounds the heirs that are tried one after another: each may take
// an election's time-out.
const transferTries = 2

// transfer has another voter elected, a certain one or any. The group must not be
// served. It is called by lead.
func (g *group) transfer(to string) error {
	if g.raft.State() != raft.Leader {
		return errNotLeading
	}
	err := g.noSuccessor(to)
	for i, successor := range g.successors(to) {
		if i == transferTries {
			break
		}
		// Raft brings the other one up to date first.
		if err = g.raft.LeadershipTransferToServer(raft.ServerID(successor), raft.ServerAddress(successor)).Error(); err == nil {
			return nil
		}
		err = fmt.Errorf("hand shard %d over to %s: %w", g.shard, successor, err)
		if g.raft.State() != raft.Leader {
			break
		}
	}
	return err
}

// transferBeforeStop hands the group over before this member ends, so that nobody waits for
// an election. It is called by lead.
func (g *group) transferBeforeStop() {
	if len(g.successors("")) == 0 {
		return
	}
	if err := g.transfer(""); err != nil {
		g.logger.Info("the leadership was not handed over", "error", err)
	}
}

// successors are the other voters that follow the log, or only the one that is named.
// Shards differ in whom they name first. A member without a vote is never told to
// stand: it would only depose the leader.
func (g *group) successors(only string) []string {
	voters, _, err := g.members()
	if err != nil {
		return nil
	}
	term := g.raft.CurrentTerm()
	var successors []string
	for i := range voters {
		voter := voters[(i+int(g.shard))%len(voters)]
		if voter == g.node || only != "" && voter != only {
			continue
		}
		if lag, follows := g.tracking.followerProgress(term, raft.ServerID(voter), electionTimeout); follows && lag <= caughtUpLag {
			successors = append(successors, voter)
		}
	}
	return successors
}

// Leave tells the others that this node is about to stop, and hands over what it
// leads. It serves on what nobody took.
func (n *Node) Leave(ctx context.Context) error {
	if n.peering != nil {
		n.peering.heartbeat.announceLeaving()
		if n.peering.rebalancer != nil {
			n.peering.rebalancer.disable() // or it would bring back what is handed over
		}
	}
	return n.handOverAll(ctx, true)
}

// StepAside hands over what this node leads to others where there are any, and
// serves the rest on. It is for a node that can't write but can still talk: nothing
// is written for it, and the successors wait the node's leases out.
func (n *Node) StepAside(ctx context.Context) error { return n.handOverAll(ctx, false) }

// handOverAll hands over every group that has somebody to take it.
func (n *Node) handOverAll(ctx context.Context, release bool) error {
	var (
		mu   sync.Mutex
		errs []error
		all  sync.WaitGroup
	)
	for _, g := range n.hosted() {
		if !g.up.Load() || g.raft.State() != raft.Leader || len(g.successors("")) == 0 {
			continue
		}
		all.Go(func() {
			err := g.handOver(ctx, "", release)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
