package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"switchyard/cluster/placement"
)

const (
	// rebalanceInterval is the pause between rounds.
	rebalanceInterval = time.Second
	// rebalanceSlowInterval is the pause after slowAfter rounds without a step: to collect the reports
	// of all groups is much of what the owner of the directory does in an idle cluster.
	rebalanceSlowInterval = 2 * time.Second
	slowAfter             = 20
	// rebalanceFastInterval is the pause while replicas move: each move takes several rounds.
	rebalanceFastInterval = 200 * time.Millisecond
	// fastRounds is the number of fast rounds at first, and after a step.
	fastRounds = 10
	// Steps that took no longer than quickSteps show that the cluster can take more of them at a time, and
	// steps that took longer than slowSteps that it can't.
	quickSteps = 100 * time.Millisecond
	slowSteps  = 500 * time.Millisecond
)

// rebalancerConfig configures a rebalancer.
type rebalancerConfig struct {
	Self         string
	Own          hosting
	Peers        nodeCaller
	Members      memberSource
	ReplaceAfter time.Duration
	LostGrace    time.Duration // 0 means placement.LostGrace
	// Release records that no group counts removed nodes any more. Nil without a registry.
	Release func(ctx context.Context, nodes []string) error
	Logger  *slog.Logger
}

// rebalancer carries out placement while this node owns the directory. It keeps nothing from one
// ownership to the next.
type rebalancer struct {
	rebalancerConfig
	collector reportCollector

	mu      sync.Mutex
	stop    context.CancelFunc // stops the running loop; nil without one
	ended   chan struct{}      // closed when the newest loop has ended
	closed  bool
	running []placement.Step // steps under way
}

func newRebalancer(cfg rebalancerConfig) *rebalancer {
	ended := make(chan struct{})
	close(ended)
	if cfg.LostGrace == 0 {
		cfg.LostGrace = placement.LostGrace
	}
	return &rebalancer{
		rebalancerConfig: cfg,
		collector:        reportCollector{self: cfg.Self, own: cfg.Own, peers: cfg.Peers},
		ended:            ended,
	}
}

// gained starts the rebalancer: this node owns the directory. It does not block.
func (m *rebalancer) gained() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	before, ended := m.ended, make(chan struct{})
	m.stop, m.ended = cancel, ended
	go func() {
		defer close(ended)
		<-before
		m.run(ctx)
	}()
}

// lost stops the rebalancer. It does not wait for a step under way, since that step may be the
// transfer of the directory.
func (m *rebalancer) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

// disable stops the rebalancer for good. It does not wait for a step under way.
func (m *rebalancer) disable() {
	m.lost()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
}

// close disables the rebalancer and waits for its end.
func (m *rebalancer) close() {
	m.disable()
	m.mu.Lock()
	ended := m.ended
	m.mu.Unlock()
	<-ended
}

// roundState is kept from one round to the next.
type roundState struct {
	orphans    placement.Ages[placement.Replica]
	lost       placement.Ages[placement.Replica]
	disks      hangingDisks
	failed     map[stepKey]bool // steps that failed in the last round and were logged
	fastRounds int              // fast rounds left
	slowRounds int              // rounds without a step
	smallMoves int              // see placement.State
}

// adapt sets how many small shards may move in the next round. As long as rounds make full use of the number
// and their steps are quick, it doubles: the shards of a new cluster are empty, and until they have all their
// replicas a failure of a node stops them.
func (k *roundState) adapt(steps int, took time.Duration, failed bool) {
	switch {
	case steps == 0 || failed:
		k.smallMoves = placement.MinSmallMoves
	case took > slowSteps:
		k.smallMoves = max(k.smallMoves/2, placement.MinSmallMoves)
	case took <= quickSteps && steps >= k.smallMoves:
		k.smallMoves = min(2*k.smallMoves, placement.MostSmallMoves)
	}
}

// pace returns the pause before the next round.
func (k *roundState) pace() time.Duration {
	if k.fastRounds > 0 {
		k.fastRounds--
		k.slowRounds = 0
		return rebalanceFastInterval
	}
	if k.slowRounds++; k.slowRounds > slowAfter {
		return rebalanceSlowInterval
	}
	return rebalanceInterval
}

// stepKey identifies a step across rounds.
type stepKey struct {
	kind placement.StepKind
	placement.Replica
}

func (m *rebalancer) run(ctx context.Context) {
	// The first rounds come fast: the directory has a new owner because the cluster is new, and its other
	// members are about to join, or because a node failed.
	known := roundState{smallMoves: placement.MinSmallMoves, fastRounds: fastRounds}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		m.round(ctx, &known)
		timer.Reset(known.pace())
	}
}

// round plans once and takes the steps. A failure shows in the next round's reports.
func (m *rebalancer) round(ctx context.Context, known *roundState) {
	r, ok := m.Members.membersView()
	if !ok {
		return
	}
	reports, full := m.collector.collect(ctx, r, m.Members.registrySnapshot())
	now := time.Now()
	hang, hangLong := known.disks.update(r.members, reports, now, m.ReplaceAfter)
	state := placement.State{
		Shards:       r.shards,
		EverThree:    r.everThree,
		ReplaceAfter: m.ReplaceAfter,
		SmallMoves:   known.smallMoves,
		Members:      markNodes(r.members, full, hang, hangLong),
		Reports:      reports,
	}
	state.Droppable = known.orphans.Update(placement.Orphans(state), now, placement.OrphanGrace)
	state.Lost = known.lost.Update(placement.Lost(state), now, m.LostGrace)
	steps := placement.Plan(state, now)
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	m.execute(ctx, steps, known)
	known.adapt(len(steps), time.Since(began), len(known.failed) > 0)
	m.release(ctx, placement.Releasable(state))
}

// release records that no group counts removed nodes any more. A failed release is repeated in the next
// round.
func (m *rebalancer) release(ctx context.Context, nodes []string) {
	if len(nodes) == 0 || m.Release == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := m.Release(ctx, nodes); err != nil {
		m.Logger.Info("release removed nodes", "nodes", nodes, "error", err)
		return
	}
	m.Logger.Info("removed nodes have no replicas any more", "nodes", nodes)
}
