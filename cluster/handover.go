package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// handoverRequest asks the lead goroutine to give the leadership to another voter.
type handoverRequest struct {
	to   string // empty: to the one that follows best
	done chan error
}

// errNotLeading answers what only a group's leader can do.
var errNotLeading = errors.New("cluster: this node does not lead the shard")

// hand gives the group's leadership to a voter: this node stops answering, says so
// in the log, and then the other one is told to stand. When that fails, this node
// serves on.
func (g *group) hand(ctx context.Context, to string) error {
	if g.raft.State() != raft.Leader {
		return errNotLeading
	}
	request := &handoverRequest{to: to, done: make(chan error, 1)}
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

// transfer has another voter elected. The group must not be served.
func (g *group) transfer(to string) error {
	if g.raft.State() != raft.Leader {
		return errNotLeading
	}
	if to == "" {
		if to = g.heir(); to == "" {
			return fmt.Errorf("hand shard %d over: no other voter answers", g.shard)
		}
	}
	// Raft brings the other one up to date first.
	future := g.raft.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(to))
	if err := future.Error(); err != nil {
		return fmt.Errorf("hand shard %d over: %w", g.shard, err)
	}
	return nil
}

// bequeath hands the group over before this member ends, so that nobody waits for
// an election. Raft gives up by itself after an election's time.
func (g *group) bequeath() {
	if g.heir() == "" {
		return
	}
	if err := g.transfer(""); err != nil {
		g.logger.Info("the leadership was not handed over", "error", err)
	}
}

// heir is another voter that answers, empty when there is none. Shards differ in
// whom they choose first.
func (g *group) heir() string {
	voters, _, err := g.members()
	if err != nil {
		return ""
	}
	for i := range voters {
		voter := voters[(i+int(g.shard))%len(voters)]
		if voter != g.node && g.owners.answers(voter) {
			return voter
		}
	}
	return ""
}

// members are the group's voters and others, by name, as this member knows them.
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

// Leave tells the others that this node is about to stop, and hands over what it
// leads. It serves on what nobody took.
func (n *Node) Leave(ctx context.Context) error {
	if n.link != nil {
		n.link.pulse.leave()
	}
	return n.StepAside(ctx)
}

// StepAside hands over what this node leads to others where there are any, and
// serves the rest on. It is for a node that can't write but can still talk.
func (n *Node) StepAside(ctx context.Context) error {
	var (
		mu   sync.Mutex
		errs []error
		all  sync.WaitGroup
	)
	for _, g := range n.hosted() {
		if g.raft.State() != raft.Leader || g.heir() == "" {
			continue
		}
		all.Go(func() {
			err := g.hand(ctx, "")
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// changeReplica changes one member of a group that this node leads.
func (n *Node) changeReplica(ctx context.Context, shard storage.Shard, change replicaChange) error {
	g := n.group(shard)
	if g == nil || !g.up.Load() || g.raft.State() != raft.Leader {
		return errNotLeading
	}
	voters, _, err := g.members()
	if err != nil {
		return err
	}
	id := raft.ServerID(change.Node)
	var future raft.Future
	switch change.Action {
	case replicaAdd:
		future = g.raft.AddNonvoter(id, raft.ServerAddress(id), 0, membershipTimeout)
	case replicaPromote:
		future = g.raft.AddVoter(id, raft.ServerAddress(id), 0, membershipTimeout)
	case replicaRemove:
		if len(voters) == 1 && voters[0] == change.Node {
			return fmt.Errorf("cluster: node %q holds the only replica of shard %d", change.Node, shard)
		}
		if change.Node == g.node {
			return fmt.Errorf("cluster: node %q leads shard %d: hand it over first", change.Node, shard)
		}
		future = g.raft.RemoveServer(id, 0, membershipTimeout)
	case replicaTransfer:
		return g.hand(ctx, change.Node)
	default:
		return fmt.Errorf("cluster: %q is no change of a replica", change.Action)
	}
	if err := within(ctx, future.Error); err != nil {
		return fmt.Errorf("%s %s in shard %d: %w", change.Action, change.Node, shard, err)
	}
	return nil
}

// membershipTimeout bounds how long a change of members may wait for its turn.
const membershipTimeout = heartbeatTimeout

// report tells how the groups on this node stand.
func (n *Node) report() []groupReport {
	var reports []groupReport
	full := n.cfg.Full != nil && n.cfg.Full()
	for _, g := range n.hosted() {
		if !g.up.Load() {
			continue
		}
		voters, others, err := g.members()
		if err != nil { // it ends
			continue
		}
		_, leader := g.raft.LeaderWithID()
		_, last := g.log.bounds()
		reports = append(reports, groupReport{
			Shard:     g.shard,
			Leads:     g.raft.State() == raft.Leader,
			Term:      g.raft.CurrentTerm(),
			Leader:    string(leader),
			Epoch:     g.epoch.Load(),
			Voters:    voters,
			NonVoters: others,
			Applied:   g.machine.applied.Load(),
			Last:      max(last, g.machine.applied.Load()),
			Full:      full,
		})
	}
	return reports
}
