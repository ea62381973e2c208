package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// rebalanceInterval is how often placement is planned when nothing happens.
	rebalanceInterval = time.Second
	// rebalanceFastInterval is how often while replicas are on the move: each takes several
	// rounds.
	rebalanceFastInterval = 200 * time.Millisecond
	// fastRounds is for how many rounds after a step there may be another soon.
	fastRounds = 10
	// orphanGrace is how long an orphan must have been one before it is dropped: a
	// leader cut off from its group knows it long before.
	orphanGrace = 2 * time.Second
)

// rebalancerConfig is what a rebalancer works with.
type rebalancerConfig struct {
	Self         string
	Own          hosting
	Peers        nodeCaller
	Members      memberSource
	ReplaceAfter time.Duration
	Logger       *slog.Logger
}

// rebalancer carries out placement while this node owns the directory. Nothing is
// kept from one ownership to the next.
type rebalancer struct {
	rebalancerConfig
	collector reportCollector

	mu      sync.Mutex
	stop    context.CancelFunc // of the running loop; nil when there is none
	ended   chan struct{}      // closed when the latest loop has ended
	closed  bool
	running []step // being carried out now
}

func newRebalancer(cfg rebalancerConfig) *rebalancer {
	ended := make(chan struct{})
	close(ended)
	return &rebalancer{
		rebalancerConfig: cfg,
		collector:        reportCollector{self: cfg.Self, own: cfg.Own, peers: cfg.Peers},
		ended:            ended,
	}
}

// gained starts placement: this node owns the directory. It does not block.
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

// lost stops placement. It does not wait for a step under way, which may itself
// be what takes the directory away.
func (m *rebalancer) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

// disable stops placement for good. It does not wait for a step under way.
func (m *rebalancer) disable() {
	m.lost()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
}

// close is retire, and waits for the end.
func (m *rebalancer) close() {
	m.disable()
	m.mu.Lock()
	ended := m.ended
	m.mu.Unlock()
	<-ended
}

// progress gives the steps being carried out now, by shard.
func (m *rebalancer) progress() []step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.running)
}

// roundState is what a rebalancer remembers between rounds.
type roundState struct {
	orphans    map[replica]time.Time // since when they are known
	failed     map[stepKey]bool      // steps of the last round that failed, and were logged
	fastRounds int                   // rounds to come at the faster pace
}

// stepKey tells whether two steps are the same but for the time.
type stepKey struct {
	kind stepKind
	replica
}

func (m *rebalancer) run(ctx context.Context) {
	known := roundState{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		m.round(ctx, &known)
		pace := rebalanceInterval
		if known.fastRounds > 0 {
			known.fastRounds--
			pace = rebalanceFastInterval
		}
		timer.Reset(pace)
	}
}

// round looks once and takes the steps that follow. Whatever fails shows in the
// next round's reports.
func (m *rebalancer) round(ctx context.Context, known *roundState) {
	r, ok := m.Members.membersView()
	if !ok {
		return
	}
	reports := m.collector.collect(ctx, r, m.Members.registrySnapshot())
	state := clusterState{
		shards:       r.shards,
		everThree:    r.everThree,
		replaceAfter: m.ReplaceAfter,
		members:      markFullNodes(r.members, reports),
		reports:      reports,
	}
	now := time.Now()
	state.droppable = known.agedOrphans(orphans(state), now)
	steps := plan(state, now)
	if ctx.Err() != nil {
		return
	}
	m.execute(ctx, steps, known)
}

// agedOrphans notes the orphans of this round and gives those that are old enough.
func (k *roundState) agedOrphans(found map[replica]bool, now time.Time) map[replica]bool {
	since := make(map[replica]time.Time, len(found))
	old := map[replica]bool{}
	for r := range found {
		since[r] = now
		if first, ok := k.orphans[r]; ok {
			since[r] = first
			old[r] = now.Sub(first) >= orphanGrace
		}
	}
	k.orphans = since
	return old
}
