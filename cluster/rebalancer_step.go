package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"switchyard/cluster/placement"
)

// stepTimeout bounds one step, so that one slow node can't delay the other shards for long.
const stepTimeout = 5 * time.Second

// execute takes the steps of a round at the same time; they do not depend on each other.
func (m *rebalancer) execute(ctx context.Context, steps []placement.Step, known *roundState) {
	m.setRunning(steps)
	defer m.setRunning(nil)
	errs := make([]error, len(steps))
	var taken sync.WaitGroup
	for i, s := range steps {
		taken.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, stepTimeout)
			defer cancel()
			errs[i] = m.executeStep(ctx, s)
		})
	}
	taken.Wait()
	failed := map[stepKey]bool{}
	for i, s := range steps {
		key := stepKey{s.Kind, placement.Replica{Shard: s.Shard, Node: s.Node}}
		switch {
		case errs[i] == nil:
			m.Logger.Info("placement step", "step", s, "outcome", "done")
			if s.Kind != placement.StepTransfer {
				known.fastRounds = fastRounds
			}
		case ctx.Err() != nil:
			m.Logger.Info("placement step", "step", s, "outcome", "left to the next owner of the directory")
		default:
			if !known.failed[key] { // it is repeated each round
				m.Logger.Info("placement step", "step", s, "outcome", "failed", "error", errs[i])
			}
			failed[key] = true
		}
	}
	known.failed = failed
}

func (m *rebalancer) setRunning(steps []placement.Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = steps
}

// actions maps steps to the changes that leaders make.
var actions = map[placement.StepKind]replicaAction{
	placement.StepAdd:      replicaAdd,
	placement.StepPromote:  replicaPromote,
	placement.StepRemove:   replicaRemove,
	placement.StepTransfer: replicaTransfer,
}

func (m *rebalancer) executeStep(ctx context.Context, s placement.Step) error {
	switch s.Kind {
	case placement.StepHost:
		return m.host(ctx, s)
	case placement.StepDrop:
		in := dropRequest{Shard: s.Shard, Term: s.Term, Last: s.Last}
		if s.Node == m.Self {
			return m.Own.dropOrphan(in)
		}
		return m.ask(ctx, s.Node, rpcDrop, in)
	case placement.StepAdd:
		// The replica is created first: a member without one would only slow its leader down.
		if err := m.host(ctx, s); err != nil {
			return err
		}
	}
	in := replicasRequest{Shard: s.Shard, Term: s.Term, Change: replicaChange{Action: actions[s.Kind], Node: s.Node}}
	if s.Leader == m.Self {
		return changeAsLeader(ctx, m.Own, in)
	}
	return m.ask(ctx, s.Leader, rpcReplicas, in)
}

func (m *rebalancer) host(ctx context.Context, s placement.Step) error {
	if s.Node == m.Self {
		return m.Own.hostReplica(s.Shard, logPoint{s.Term, s.Last})
	}
	return m.ask(ctx, s.Node, rpcHost, hostRequest{Shard: s.Shard, Term: s.Term, Last: s.Last})
}

func (m *rebalancer) ask(ctx context.Context, node string, kind rpcKind, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	if _, err := m.Peers.call(ctx, node, kind, body); err != nil {
		return fmt.Errorf("ask %s: %w", node, err)
	}
	return nil
}
