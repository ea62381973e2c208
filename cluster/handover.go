package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// handoverRequest asks the lead goroutine to transfer the leadership to another voter.
type handoverRequest struct {
	to      string // empty: any voter that follows
	release bool   // record in the log that this node stopped answering
	done    chan error
}

// errNotLeading is returned where only the group's leader can act.
var errNotLeading = errors.New("cluster: this node does not lead the shard")

// handOver transfers the group's leadership to a voter: this node stops answering, records that in
// the log, and tells the other voter to stand for election. If the transfer fails, this node serves
// on in a new epoch. A target that does not follow the log is refused at the start.
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
	return fmt.Errorf("cluster: node %q is not a voter of shard %d that follows its log", to, g.shard)
}

// transferTries bounds the successors that are tried one after another: each may take an election
// time-out.
const transferTries = 2

// transfer makes another voter leader: the named one, or any. The lead goroutine calls it while the
// group is not served.
func (g *group) transfer(to string) error {
	if g.raft.State() != raft.Leader {
		return errNotLeading
	}
	g.tracking.handingOver.Store(true)
	defer g.tracking.handingOver.Store(false)
	if g.isRelaxed() { // Raft tries for the length of its time-out, and takes no entries meanwhile
		g.tighten()
	}
	err := g.noSuccessor(to)
	for i, successor := range g.successors(to) {
		if i == transferTries {
			break
		}
		// Raft brings the successor up to date first.
		if err = g.raft.LeadershipTransferToServer(raft.ServerID(successor), raft.ServerAddress(successor)).Error(); err == nil {
			return nil
		}
		err = fmt.Errorf("transfer shard %d to %s: %w", g.shard, successor, err)
		if g.raft.State() != raft.Leader {
			break
		}
	}
	return err
}

// transferBeforeStop transfers the leadership before this member stops, which saves the others an
// election time-out. The lead goroutine calls it.
func (g *group) transferBeforeStop() {
	if len(g.successors("")) == 0 {
		return
	}
	if err := g.transfer(""); err != nil {
		g.logger.Info("the leadership was not transferred", "error", err)
	}
}

// successors returns the other voters that follow the log, or only the named one. Different shards
// begin with different voters, and those without room for changes come last. A voter that has no room for
// committed changes that it lacks is left out: the leader can't bring it up to date. A member without a vote
// is never told to stand for election: it would only depose the leader.
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
		id := raft.ServerID(voter)
		if !g.owners.hasRoom(voter) && g.tracking.followerLacks(term, id, g.raft.CommitIndex()) {
			continue
		}
		if lag, follows := g.tracking.followerProgress(term, id, electionTimeout); follows && lag <= caughtUpLag {
			successors = append(successors, voter)
		}
	}
	// A successor without room for changes would soon hand the shard on.
	slices.SortStableFunc(successors, func(a, b string) int {
		switch room := g.owners.hasRoom(a); {
		case room == g.owners.hasRoom(b):
			return 0
		case room:
			return -1
		}
		return 1
	})
	return successors
}

// Leave tells the other nodes that this node is about to stop and transfers its leaderships. It
// serves on the shards that no other node took. A leadership that it gains later is passed on: the
// other nodes send it no requests any more.
func (n *Node) Leave(ctx context.Context) error {
	if n.peering != nil {
		n.leaving.Store(true)
		n.peering.heartbeat.announceLeaving()
		if n.peering.rebalancer != nil {
			n.peering.rebalancer.disable() // the rebalancer would move leaderships back
		}
	}
	return n.handOverAll(ctx)
}

// handOverAll transfers every leadership that has a successor, and records so in the log:
// the successors need not wait until this node's leases have expired.
func (n *Node) handOverAll(ctx context.Context) error {
	var (
		mu   sync.Mutex
		errs []error
		all  sync.WaitGroup
	)
	for _, g := range n.runningGroups() {
		if g.raft.State() != raft.Leader || len(g.successors("")) == 0 {
			continue
		}
		all.Go(func() {
			err := g.handOver(ctx, "", true)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
