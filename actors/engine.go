package actors

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cockroachdb/pebble/v2"
	"github.com/prometheus/client_golang/prometheus"

	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/internal/processors"
	"switchyard/storage"
)

// Engine runs operations: queries where they are asked, commands on their
// workspace's actor, workflows as their steps. Its methods may be called from any
// goroutine.
type Engine struct {
	cfg        Config
	log        *slog.Logger
	state      *pebble.DB
	replicator Replicator

	system  *actor.ActorSystem
	root    *actor.RootContext
	workers workers  // run the actors
	shards  []*shard // by number; the directory's is the first

	timerOps map[string]*tracker.Op // by kind of timer
	tails    *tracker.Tails         // of the search indexes
	// turns bounds how many lists read a filter set at a time: half of the processors are left to
	// other requests.
	turns    chan struct{}
	indexing *indexTurns
	heavy    *heavyTurns
	pages    *heavyTurns // of other queries from a snapshot
	others   *heavyTurns // of work outside of operations
	changes  changeMemory
	running  chan struct{} // taken by commands that run, see runningAtOnce

	rootHash    [sha256.Size]byte
	callers     callers
	generations generations
	tokenUses   tokenUses

	calls   sync.Pool // *call
	views   sync.Pool // *tracker.View
	stats   counters
	survey  backlogSurvey
	waits   waiters
	feeds   feeds
	lists   listSets
	exports exports
	// claimers is that of waits, kept since a method value is an allocation each time.
	claimers tracker.ClaimersWaiting

	deliveries *delivery.Dispatchers // of webhooks
	client     *webhook.Client       // sends them, unless a sender was given

	claimWaits prometheus.Histogram

	pairMakers atomic.Int32 // goroutines

	commands atomic.Int64 // unanswered
	active   atomic.Int64 // handles of all shards
	actors   inflight
	// background counts schedulers, dispatchers of deliveries, their workers, the sweeper, the writer of tokens' uses
	// and what makes filter sets and pairs of terms, which live until stopped is canceled.
	background inflight
	stopped    context.Context
	stop       context.CancelFunc
	closing    atomic.Bool
}

// NewEngine makes an engine that owns no shard yet and starts its sweeper. Close
// ends it.
func NewEngine(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:        cfg,
		log:        cfg.Logger,
		state:      cfg.Store.State(),
		replicator: cfg.Replicator,
		timerOps:   tracker.TimerOps,
		tails:      tracker.NewTails(cfg.TailBytes),
	}
	e.tails.Pair(tracker.PairedFrom, e.makePairs)
	e.survey.step, e.claimWaits = backlogStep, newClaimWaits()
	e.turns = make(chan struct{}, (processors.Count()+1)/2)
	e.feeds.turns = make(chan struct{}, feedTurns*processors.Count())
	e.changes.most = cfg.ChangeBytes
	e.running = make(chan struct{}, runningAtOnce*processors.Count())
	e.heavy, e.pages, e.others = newHeavyTurns(processors.Count()), newHeavyTurns(pagesAtOnce*processors.Count()), newHeavyTurns(processors.Count())
	e.actors.ended = make(chan struct{})
	e.background.ended = make(chan struct{})
	e.stopped, e.stop = context.WithCancel(context.Background())
	e.indexing = newIndexTurns(e.stopped, (processors.Count()+1)/2, e.tails)
	e.deliveries = e.newDispatchers()
	e.calls.New = func() any { return newCall() }
	e.views.New = func() any { return new(tracker.View) }
	if cfg.RootToken != "" {
		e.rootHash = sha256.Sum256([]byte(cfg.RootToken))
	}
	// The library's own messages report events that are handled and logged here.
	e.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	e.root = e.system.Root
	for n := range cfg.Replicator.Shards() + 1 {
		e.shards = append(e.shards, newShard(e, storage.Shard(n)))
	}
	e.waits.limits, e.claimers = &e.cfg.Limits, e.waits.claimers
	e.lists.engine, e.lists.limit, e.lists.of = e, e.cfg.ListBytes, map[storage.ID]*workspaceSets{}
	e.background.enter()
	go e.sweep()
	return e, nil
}

// Do runs an operation for a request that Admit let in (or for the service
// itself) and returns when it is answered, at req.Deadline at the latest. Besides
// the operation's own errors it returns UNAVAILABLE: "not_applied" when the
// request certainly changed nothing, "unknown" when it may have. After such an
// answer the operation may still be running: in is not to be used again.
func (e *Engine) Do(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	work := &e.shardOf(target(req, op)).work
	if !work.enter() {
		return tracker.Reply{}, errClosing()
	}
	defer work.leave()
	if err := req.Admitted(op); err != nil {
		return tracker.Reply{}, e.clientError(req, op, err)
	}
	if len(op.Audits) > 0 {
		return e.audited(req, op, in)
	}
	if op.LongPoll {
		return e.longPoll(req, op, in)
	}
	return e.do(req, op, in)
}

// do runs a step of a workflow that admission has already counted.
func (e *Engine) do(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	if req.Deadline.IsZero() {
		req.Deadline = time.Now().Add(e.cfg.Limits.Answer)
	}
	proof := req.Proof
	req.Proof = tracker.Proof{} // a later look needs another
	switch op.Kind {
	case tracker.Query:
		return e.query(req, op, in, proof)
	case tracker.Command:
		return e.command(req, op, in)
	default:
		return e.workflow(req, op, in)
	}
}

// target is the workspace whose rows an operation reads or changes.
func target(req *tracker.Request, op *tracker.Op) storage.ID {
	if op.Directory {
		return storage.DirectoryID
	}
	return req.Workspace
}

func (e *Engine) shardOf(workspace storage.ID) *shard {
	return e.shards[storage.ShardOf(workspace, len(e.shards)-1)]
}

// now is the owner's clock as operations see it.
func (e *Engine) now() time.Time { return e.cfg.Clock().UTC().Truncate(time.Millisecond) }

// command has a command run by its workspace's actor, and looks at the caller's rights again
// whenever they may have changed while the command waited for its turn.
func (e *Engine) command(req *tracker.Request, op *tracker.Op, in any) (reply tracker.Reply, err error) {
	for range maxAdmissions {
		if reply, err = e.send(req, op, in); !errors.Is(err, errOutdated) {
			break
		}
		if err := e.Admit(req, op); err != nil {
			return tracker.Reply{}, err
		}
		req.Proof = tracker.Proof{} // it is for queries
	}
	return reply, err
}

// send sends a command to its workspace's actor and waits for the answer.
func (e *Engine) send(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	e.stats.commands.Add(1)
	sent := time.Now()
	if !sent.Before(req.Deadline) {
		e.stats.refused[refusedLate].Add(1)
		return tracker.Reply{}, tracker.NotApplied("The request timed out before it began.")
	}
	if !hasSpace(e.cfg.Shortage(), op, req.Caller.Root) {
		e.stats.refused[refusedDiskFull].Add(1)
		return tracker.Reply{}, errDiskFull()
	}
	workspace := target(req, op)
	s := e.shardOf(workspace)
	h, err := s.admit(workspace)
	if err != nil {
		return tracker.Reply{}, err
	}
	c := e.calls.Get().(*call)
	c.fill(req, workspace, op, in)
	e.root.Send(h.pid, c)

	done, err := c.await(req.Deadline)
	if !done {
		e.stats.refused[refusedLate].Add(1)
		req.Spent.Queue += time.Since(sent) // or in a batch: the actor still has the call
		if c.isWithdrawn() {
			e.root.Send(h.pid, withdrawn{})
		}
		return tracker.Reply{}, err
	}
	reply, err, unproven := c.reply, c.err, c.unproven
	if req.Spent.On {
		req.Spent.Add(c.spent(sent))
	}
	c.empty()
	e.calls.Put(c)
	if err != nil {
		err = e.clientError(req, op, err)
	}
	if unproven {
		// Nothing of this command was committed, so no commit has shown that the state
		// it saw was the latest: a deposed owner must not answer from its old state.
		epoch, late := e.readable(s.number, req.Deadline)
		if late == nil && epoch != h.epoch {
			late = errNotServed()
		}
		if late != nil && reply.Replayed {
			late = tracker.OutcomeUnknown("This node could not make sure in time that it has the latest state of the workspace.")
		}
		if late != nil {
			return tracker.Reply{}, late
		}
	}
	if err != nil {
		return tracker.Reply{}, err
	}
	return reply, nil
}

// Close refuses new requests, lets those in progress finish until ctx ends, and stops
// every goroutine. Requests still unanswered when ctx ends are answered as unavailable.
// The replicator must work until Close returns.
func (e *Engine) Close(ctx context.Context) error {
	if e.closing.Swap(true) {
		return nil
	}
	e.stop()
	e.background.finish()
	var late error
	for _, s := range e.shards {
		s.work.finish()
	}
	for _, s := range e.shards {
		late = wait(ctx, s.work.ended, late)
	}
	for _, s := range e.shards {
		s.lose()
	}
	e.actors.finish()
	late = wait(ctx, e.actors.ended, late)
	late = wait(ctx, e.background.ended, late)
	if e.client != nil {
		e.client.Close()
	}
	e.system.Shutdown()
	e.workers.end()
	if late != nil {
		return fmt.Errorf("close the engine: %w", late)
	}
	return nil
}

// wait waits for ended until ctx ends. After an earlier error it does not wait and returns
// that error.
func wait(ctx context.Context, ended <-chan struct{}, earlier error) error {
	select {
	case <-ended:
		return earlier
	default:
	}
	if earlier != nil {
		return earlier
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
