package actors

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Replicator makes batches durable and tells what this node may answer for. The
// engine needs nothing else of the cluster.
type Replicator interface {
	// Shards is the number of workspace shards; the directory's is beside them.
	Shards() int
	// Owner gives the epoch in which this node owns a shard; false when it does not.
	Owner(shard storage.Shard) (epoch uint64, ok bool)
	// ReadBarrier returns nil when a read of the shard's state that starts now, or
	// that ended before the call, saw the latest state.
	ReadBarrier(shard storage.Shard, deadline time.Time) error
	// Propose replicates a batch and applies it. done is called once, from any
	// goroutine, and may be called before Propose returns. Batches that one
	// goroutine proposes one after another are applied in that order or not at all,
	// an empty one among them too. An error that has a method NotApplied() bool
	// says whether the batch certainly changed nothing.
	Propose(shard storage.Shard, epoch uint64, batch []byte, done func(error))
}

// Limits bound what the engine holds at a time; zero fields get the defaults.
type Limits struct {
	// WorkspaceCommands, ShardCommands and Commands are unanswered commands of a
	// workspace, a shard and in all: 1024, 4096 and 16384.
	WorkspaceCommands, ShardCommands, Commands int
	// ActiveActors is the number of workspaces held active: 16384.
	ActiveActors int
	// BatchBytes and BatchCommands close a batch: 1 MiB and 512.
	BatchBytes, BatchCommands int
	// Idle is how long a workspace without commands stays active: 1 minute.
	Idle time.Duration
	// Timers is how many timers of a shard run at once: 16.
	Timers int
	// Deliveries is how many webhook deliveries of a shard are made at once: 128.
	Deliveries int
	// Answer is how long a request without a deadline may take: 10 seconds.
	Answer time.Duration
	// WorkspaceWaiting and Waiting are the requests of a workspace and in all that
	// wait for something to happen, 20,000 and 65,536; beyond, they are answered at
	// once.
	WorkspaceWaiting, Waiting int
	// WorkspaceListening and Listening are the streams of events of a workspace and in
	// all: 8,192 and 16,384.
	WorkspaceListening, Listening int
}

// Webhooks says how events are delivered to webhooks.
type Webhooks struct {
	// Policy says where they may lead.
	Policy tracker.WebhookPolicy
	// Workspace and Host bound the deliveries of each workspace and to each host; the zero
	// rates are no bound. Deliveries over a rate wait.
	Workspace, Host DeliveryRate
	// MaxData bounds data and changes in the body of a delivery, in bytes each; 0 means
	// tracker.DefaultDeliveryPart.
	MaxData int
	// Sender makes the requests; nil: a webhook.Client that keeps to the policy.
	Sender Sender
}

// Config says what an engine runs on.
type Config struct {
	Store      *storage.Store
	Replicator Replicator
	// Remote reaches the engines of other nodes; nil: there are none.
	Remote Remote
	// RootToken is the operator's credential; empty: there is none.
	RootToken string
	// OpenOnboarding lets anyone make a workspace (Decision 12).
	OpenOnboarding bool
	// Inbound is what the operator has set for calls of providers.
	Inbound  tracker.InboundSettings
	Webhooks Webhooks
	// Agents are the operator's settings of agents' work.
	Agents tracker.AgentSettings
	// Workspace limits what each workspace may store.
	Workspace tracker.Limits
	Clock     func() time.Time // nil: the machine's
	Random    io.Reader        // nil: the machine's; used by many goroutines
	Logger    *slog.Logger     // nil: slog's default
	Limits    Limits
	// Shortage tells how little space the node's disk has; nil: it has ample.
	Shortage func() storage.Shortage
}

func (c *Config) complete() error {
	if c.Store == nil || c.Replicator == nil {
		return errors.New("engine: a store and a replicator are needed")
	}
	if len(c.RootToken) > maxCredential {
		return errors.New("engine: the root token is too long")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Shortage == nil {
		c.Shortage = func() storage.Shortage { return storage.Ample }
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	l := &c.Limits
	for _, f := range []struct {
		value *int
		other int
	}{
		{&l.WorkspaceCommands, 1024},
		{&l.ShardCommands, 4096},
		{&l.Commands, 16384},
		{&l.ActiveActors, 16384},
		{&l.BatchBytes, 1 << 20},
		{&l.BatchCommands, 512},
		{&l.Timers, 16},
		{&l.Deliveries, 128},
		{&l.WorkspaceWaiting, 20_000},
		{&l.Waiting, 65_536},
		{&l.WorkspaceListening, 8_192},
		{&l.Listening, 16_384},
	} {
		if *f.value <= 0 {
			*f.value = f.other
		}
	}
	if l.Idle <= 0 {
		l.Idle = time.Minute
	}
	if l.Answer <= 0 {
		l.Answer = 10 * time.Second
	}
	return nil
}
