package actors

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"

	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Replicator makes batches durable and knows which shards this node owns. It is all
// that the engine needs of the cluster.
type Replicator interface {
	// Shards returns the number of workspace shards, without the directory's.
	Shards() int
	// Owner returns the epoch in which this node owns a shard, or false.
	Owner(shard storage.Shard) (epoch uint64, ok bool)
	// ReadBarrier returns nil if a read of the shard's state that starts now, or that
	// ended before the call, sees the latest state.
	ReadBarrier(shard storage.Shard, deadline time.Time) error
	// Propose replicates a batch and applies it. done is called once, from any
	// goroutine, and may be called before Propose returns. An empty batch is applied
	// after every batch that was proposed before it, or neither is. Others that are not
	// answered yet are applied in any order. If an error has a method NotApplied() bool, the method reports whether the batch
	// certainly changed nothing.
	Propose(shard storage.Shard, epoch uint64, batch []byte, done func(error))
	// HasRoom reports whether the disks of an owned shard's voters have room for changes. If not, Propose
	// refuses all of them.
	HasRoom(shard storage.Shard) bool
	// Damaged is told that a part of the shard's state can't be read on this node.
	Damaged(shard storage.Shard, cause error)
}

// Limits limits what the engine holds at a time; zero fields mean the defaults.
type Limits struct {
	// WorkspaceCommands, ShardCommands and Commands limit the unanswered commands of a
	// workspace, of a shard and in all: 1024, 4096 and 16384.
	WorkspaceCommands, ShardCommands, Commands int
	// ActiveActors is the number of active workspaces: 16384.
	ActiveActors int
	// BatchBytes and BatchCommands are the sizes at which a batch is closed: 1 MiB and
	// 512.
	BatchBytes, BatchCommands int
	// Idle is the time that a workspace without commands stays active: 1 minute.
	Idle time.Duration
	// Timers is the number of timers of a shard that run at once: 16.
	Timers int
	// Deliveries is the number of webhook deliveries of a shard that are made at once:
	// 128.
	Deliveries int
	// Answer is the time-out of a request without a deadline: 10 seconds.
	Answer time.Duration
	// WorkspaceWaiting and Waiting limit the waiting requests of a workspace and in
	// all, 20,000 and 65,536; beyond, requests are answered at once.
	WorkspaceWaiting, Waiting int
	// WorkspaceListening and Listening limit the event streams of a workspace and in
	// all: 8,192 and 16,384.
	WorkspaceListening, Listening int
	// Exports is the number of exports that run at once: 4.
	Exports int
}

// Webhooks configures the deliveries to webhooks.
type Webhooks struct {
	// Policy decides which addresses webhooks may have.
	Policy tracker.WebhookPolicy
	// Workspace and Host limit the deliveries of each workspace and to each host; zero
	// rates are no limit. Deliveries over a rate wait.
	Workspace, Host delivery.Rate
	// MaxData limits data and changes in the body of a delivery, in bytes each; 0 means
	// tracker.DefaultDeliveryPart.
	MaxData int
	// Sender sends the requests; nil means a webhook.Client with the policy.
	Sender delivery.Sender
	// Wrap is given the sender and returns that which is used; nil: the sender itself.
	Wrap func(delivery.Sender) delivery.Sender
}

// Config configures an engine.
type Config struct {
	Store      *storage.Store
	Replicator Replicator
	// Remote reaches the engines of other nodes; nil if there are none.
	Remote Remote
	// RootToken is the operator's credential; empty for none.
	RootToken string
	// OpenOnboarding lets callers without a credential create workspaces (Decision 12).
	OpenOnboarding bool
	// Inbound are the operator's settings for calls of providers.
	Inbound  tracker.InboundSettings
	Webhooks Webhooks
	// Agents are the operator's settings for agents' work.
	Agents tracker.AgentSettings
	// Workspace limits the bytes that each workspace stores.
	Workspace tracker.Limits
	Clock     func() time.Time // nil: time.Now
	Random    io.Reader        // nil: crypto/rand; used by many goroutines
	Logger    *slog.Logger     // nil: slog's default
	Limits    Limits
	// TailBytes is the memory for the issues that are in no search index yet; 0 means
	// 8 MiB.
	TailBytes int64
	// ListBytes bounds the memory of the sets that filter lists of issues. 0
	// means 32 MiB, and a negative value none.
	ListBytes int64
	// ChangeBytes is the memory for large changes until they are committed. 0 means 64 MiB.
	ChangeBytes int64
	// DeliveryBytes is the memory for the webhook deliveries that are made at once. Each takes
	// 32 KiB, and its body if that is large. 0 means 32 MiB.
	DeliveryBytes int64
	// Format returns the format in which rows are written, which may go up; nil means the newest one.
	Format func() storage.Format
	// Shortage returns how little free space the node's disk has; nil means enough.
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
	if c.TailBytes <= 0 {
		c.TailBytes = 8 << 20
	}
	if c.ListBytes == 0 {
		c.ListBytes = 32 << 20
	}
	if c.ChangeBytes <= 0 {
		c.ChangeBytes = 64 << 20
	}
	if c.DeliveryBytes <= 0 {
		c.DeliveryBytes = 32 << 20
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
		{&l.Exports, 4},
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
