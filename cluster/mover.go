package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// moverPace is how often placement is planned when nothing happens.
	moverPace = time.Second
	// moverHurry is how often while replicas are on the move: each takes several
	// rounds.
	moverHurry = 200 * time.Millisecond
	// hurryRounds is for how many rounds after a step there may be another soon.
	hurryRounds = 10
	// orphanAge is how long an orphan must have been one before it is dropped: a
	// leader cut off from its group knows it long before.
	orphanAge = 2 * time.Second
)

// moverConfig is what a mover works with.
type moverConfig struct {
	Self         string
	Own          hosting
	Peers        nodeCaller
	Members      registrar
	ReplaceAfter time.Duration
	Logger       *slog.Logger
}

// mover carries out placement while this node owns the directory. Nothing is
// kept from one ownership to the next.
type mover struct {
	moverConfig
	gatherer reportGatherer

	mu      sync.Mutex
	stop    context.CancelFunc // of the running loop; nil when there is none
	ended   chan struct{}      // closed when the latest loop has ended
	closed  bool
	running []step // being carried out now
}

func newMover(cfg moverConfig) *mover {
	ended := make(chan struct{})
	close(ended)
	return &mover{
		moverConfig: cfg,
		gatherer:    reportGatherer{self: cfg.Self, own: cfg.Own, peers: cfg.Peers},
		ended:       ended,
	}
}

// gained starts placement: this node owns the directory. It does not block.
func (m *mover) gained() {
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
func (m *mover) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

// retire stops placement for good. It does not wait for a step under way.
func (m *mover) retire() {
	m.lost()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
}

// close is retire, and waits for the end.
func (m *mover) close() {
	m.retire()
	m.mu.Lock()
	ended := m.ended
	m.mu.Unlock()
	<-ended
}

// progress gives the steps being carried out now, by shard.
func (m *mover) progress() []step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.running)
}

// memory is what a mover remembers between rounds.
type memory struct {
	orphans map[replica]time.Time // since when they are known
	failed  map[stepKey]bool      // steps of the last round that failed, and were logged
	hurry   int                   // rounds to come at the faster pace
}

// stepKey tells whether two steps are the same but for the time.
type stepKey struct {
	kind stepKind
	replica
}

func (m *mover) run(ctx context.Context) {
	known := memory{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		m.round(ctx, &known)
		pace := moverPace
		if known.hurry > 0 {
			known.hurry--
			pace = moverHurry
		}
		timer.Reset(pace)
	}
}

// round looks once and takes the steps that follow. Whatever fails shows in the
// next round's reports.
func (m *mover) round(ctx context.Context, known *memory) {
	r, ok := m.Members.view()
	if !ok {
		return
	}
	reports := m.gatherer.gather(ctx, r, m.Members.snapshot())
	state := clusterState{
		shards:       r.shards,
		everThree:    r.everThree,
		replaceAfter: m.ReplaceAfter,
		members:      relieve(r.members, reports),
		reports:      reports,
	}
	now := time.Now()
	state.lingering = known.linger(orphans(state), now)
	steps := plan(state, now)
	if ctx.Err() != nil {
		return
	}
	m.carryOut(ctx, steps, known)
}

// linger notes the orphans of this round and gives those that are old enough.
func (k *memory) linger(found map[replica]bool, now time.Time) map[replica]bool {
	since := make(map[replica]time.Time, len(found))
	old := map[replica]bool{}
	for r := range found {
		since[r] = now
		if first, ok := k.orphans[r]; ok {
			since[r] = first
			old[r] = now.Sub(first) >= orphanAge
		}
	}
	k.orphans = since
	return old
}
