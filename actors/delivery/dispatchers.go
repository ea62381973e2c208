package delivery

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/storage"
)

// Sender makes one attempt of a delivery. Send returns soon after ctx ends.
type Sender interface {
	Send(ctx context.Context, d *webhook.Delivery) webhook.Result
}

// Config is what the dispatchers of a node are given. All of it is needed but for the rates.
type Config struct {
	// State has the rows of all shards.
	State  pebble.Reader
	Sender Sender
	// Record writes results through the actor of their workspace. Results of a workspace
	// that was deleted are no error.
	Record func(workspace storage.ID, results *tracker.DeliveryOutcomes) error
	// Busy reports whether callers wait for answers, who have priority over deliveries.
	Busy func() bool
	// Shortage returns how little free space there is for changes of a shard.
	Shortage func(shard storage.Shard) storage.Shortage
	// Enter counts a goroutine in, and reports whether it may begin. Leave counts it off.
	Enter func() bool
	Leave func()
	// Stopped ends when the node stops.
	Stopped context.Context
	Clock   func() time.Time
	Logger  *slog.Logger
	// Most is the number of deliveries of a shard that are made at once.
	Most int
	// Bytes is the memory for the deliveries that are made at once, over all shards.
	Bytes int64
	// Workspace and Host limit the deliveries of each workspace and to each host; zero rates
	// are no limit.
	Workspace, Host Rate
	// MaxData limits data and changes in the body of a delivery, in bytes each.
	MaxData int
	// PublicURL is where users reach the service.
	PublicURL string
}

// Dispatchers are those of one node. They share the rates of hosts, the memory for deliveries and the
// counters.
type Dispatchers struct {
	cfg      Config
	hosts    *hostRates
	capacity *capacity
	// shortening has an element for each event that is being shortened.
	shortening chan struct{}
	inFlight   atomic.Int64
	counters   struct {
		outcomes               [outcomes]atomic.Uint64
		held                   atomic.Uint64
		records, recordsFailed atomic.Uint64
	}
}

// New returns the dispatchers of a node, of which none runs yet.
func New(cfg Config) *Dispatchers {
	return &Dispatchers{
		cfg: cfg, hosts: newHostRates(cfg.Host), capacity: newCapacity(cfg.Bytes),
		shortening: make(chan struct{}, min(max(cfg.Bytes/shortenBytes, 1), shortenMost)),
	}
}

// Events that are too long are shortened a few at a time: one for each shortenBytes of the memory for deliveries, and
// shortenMost at most.
const (
	shortenBytes = 8 << 20
	shortenMost  = 16
)

// The results of attempts.
const (
	succeeded = iota
	failed    // one attempt failed
	dropped   // the delivery ended without an attempt
	outcomes
)

var outcomeNames = [outcomes]string{"succeeded", "failed", "dropped"}

// Counts are the values of the counters since the node's start, and the deliveries that are
// being sent.
type Counts struct {
	Outcomes map[string]uint64
	// Held is the number of times that a delivery had to wait for a rate.
	Held                   uint64
	Records, RecordsFailed uint64
	InFlight               int64
	// Bytes is the memory that deliveries take, and Waiting the number of workspaces whose deliveries
	// wait for some. A workspace counts twice if deliveries of both healthy and other webhooks wait.
	Bytes   int64
	Waiting int
}

// Counts returns the values of the counters.
func (d *Dispatchers) Counts() Counts {
	c := Counts{
		Outcomes: map[string]uint64{}, Held: d.counters.held.Load(),
		Records: d.counters.records.Load(), RecordsFailed: d.counters.recordsFailed.Load(), InFlight: d.inFlight.Load(),
	}
	c.Bytes, c.Waiting = d.capacity.counts()
	for i, name := range outcomeNames {
		c.Outcomes[name] = d.counters.outcomes[i].Load()
	}
	return c
}
