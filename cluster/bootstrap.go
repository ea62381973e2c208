package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster/gossip"
	"switchyard/cluster/membership"
)

// gossipView is the part of gossip that bootstrap uses; *gossip implements it.
type gossipView interface {
	ContactSeeds(ctx context.Context) []gossip.ContactResult
	Alive() []gossip.Node
	Changes() <-chan struct{}
}

type bootstrapConfig struct {
	Identity *identityRow
	Expect   int // Config.BootstrapExpect
	Gossip   gossipView
	Calls    caller
	// Self returns this node's record, with its addresses.
	Self func() membership.Record
	// AdoptList stores the registry that comes with joining, see registry.adopt.
	AdoptList func(*membership.List) error
	Logger    *slog.Logger

	tune func(*bootstrapTimes) // tests only
}

// bootstrapTimes are the times that tests change.
type bootstrapTimes struct {
	retryMin, retryMax time.Duration // pause between rounds: grows from min to max
	settle             time.Duration // how long the visible nodes must be unchanged before a node forms a cluster
	voteTTL            time.Duration // how long a vote binds a node
	callTimeout        time.Duration
}

// maxKeyFailures is the number of rounds in a row in which other nodes refuse the gossip key before
// the start fails.
const maxKeyFailures = 3

// bootstrap gives a node with empty data its cluster (Decision 52): the node joins one or forms one
// with others. For a node with data it checks that the nodes of --join belong to the same cluster.
type bootstrap struct {
	cfg   bootstrapConfig
	times bootstrapTimes

	mu          sync.Mutex
	votedFor    membership.Record // the node that this node lets form a cluster
	voteExpires time.Time         // end of the vote

	lastLogged  string // last reason logged; each is logged once
	keyFailures int    // rounds in a row that met another gossip key
}

func newBootstrap(cfg bootstrapConfig) *bootstrap {
	f := &bootstrap{cfg: cfg, times: bootstrapTimes{
		retryMin: 100 * time.Millisecond, retryMax: 5 * time.Second,
		settle: 400 * time.Millisecond, voteTTL: 30 * time.Second, callTimeout: 5 * time.Second,
	}}
	if cfg.tune != nil {
		cfg.tune(&f.times)
	}
	return f
}

// identity returns the node's identity as it is now.
func (f *bootstrap) identity() identity { return f.cfg.Identity.get() }

// run returns when the node belongs to a cluster: at once if its data says so. Its errors are
// final, except for ctx's, and tell an operator what to do.
func (f *bootstrap) run(ctx context.Context) (identity, error) {
	wait := f.times.retryMin
	for {
		if id := f.identity(); id.joined() {
			return id, nil
		}
		changed := f.cfg.Gossip.Changes()
		reason, err := f.try(ctx)
		if err != nil {
			return identity{}, err
		}
		if f.identity().joined() {
			continue
		}
		if reason != "" && wait > f.times.retryMin { // let the first round finish before the first log line
			f.logReason(reason)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return identity{}, fmt.Errorf("wait for a cluster: %w", ctx.Err())
		case <-changed:
			timer.Stop()
			// A node appeared: try again soon, but not once for each of many nodes.
			wait = f.times.retryMin
			if err := pause(ctx, f.times.retryMin); err != nil {
				return identity{}, fmt.Errorf("wait for a cluster: %w", err)
			}
		case <-timer.C:
			wait = min(2*wait, f.times.retryMax)
		}
	}
}

// check verifies, for a node with data, that the nodes of --join belong to its own cluster. It
// returns nil when it met a member, or when --join is empty. It runs beside serving.
func (f *bootstrap) check(ctx context.Context) error {
	for wait := f.times.retryMin; ; wait = min(2*wait, f.times.retryMax) {
		contacts := f.cfg.Gossip.ContactSeeds(ctx)
		own := f.identity().Cluster
		met := slices.ContainsFunc(f.cfg.Gossip.Alive(), func(s gossip.Node) bool { return s.Cluster == own })
		if len(contacts) == 0 || met {
			return nil
		}
		reason, err := f.assess(contacts)
		if err != nil {
			return err
		}
		if reason != "" && wait > f.times.retryMin {
			f.logReason(reason)
		}
		if pause(ctx, wait) != nil {
			return nil // the node closes; its cluster may be the right one
		}
	}
}

// try makes one attempt. It returns what the node still waits for, if anything.
func (f *bootstrap) try(ctx context.Context) (reason string, err error) {
	contacts := f.cfg.Gossip.ContactSeeds(ctx)
	live := f.cfg.Gossip.Alive()
	var clusters []string
	for _, s := range live {
		if s.Cluster != "" {
			clusters = append(clusters, s.Cluster)
		}
	}
	slices.Sort(clusters)
	switch clusters = slices.Compact(clusters); {
	case len(clusters) > 1:
		return "", fmt.Errorf("cluster: the nodes of --join belong to different clusters (%s): correct --join", strings.Join(clusters, ", "))
	case len(clusters) == 1:
		return f.join(ctx, live)
	case len(live) == 0:
		return f.assess(contacts)
	case f.cfg.Expect > 0:
		return f.tryForm(ctx, live)
	}
	others := "1 other node runs and does not belong to a cluster"
	if n := len(live); n > 1 {
		others = fmt.Sprintf("%d other nodes run and none of them belongs to a cluster", n)
	}
	return others + ": start one node without --join, or all nodes with --bootstrap-expect", nil
}

// assess derives the reason to wait, or a final error, from contacts that found no node.
func (f *bootstrap) assess(contacts []gossip.ContactResult) (reason string, err error) {
	var keys, foreign, none []string
	other := ""
	for _, c := range contacts {
		switch c.Outcome {
		case gossip.ContactOtherKey:
			keys = append(keys, c.Addr)
		case gossip.ContactOtherCluster:
			foreign, other = append(foreign, c.Addr), c.Cluster
		case gossip.ContactUnreachable:
			none = append(none, c.Addr)
		case gossip.ContactOK:
			// The node was reachable a moment ago; the next round will show its state.
			f.keyFailures = 0
			return "", nil
		}
	}
	if len(foreign) > 0 && len(foreign) == len(contacts) {
		return "", fmt.Errorf("the nodes at %s: %w", strings.Join(foreign, ", "), otherClusterError(f.cfg.Self().Name, f.identity().Cluster, other))
	}
	if len(keys) == 0 {
		f.keyFailures = 0
	} else if f.keyFailures++; f.keyFailures >= maxKeyFailures {
		return "", membership.Permanent(membership.ReasonOtherGossipKey, "the nodes at %s use another --gossip-key than this node, or none: start this node with the same key", strings.Join(keys, ", "))
	}
	switch {
	case len(keys) > 0:
		return "the nodes at " + strings.Join(keys, ", ") + " use another --gossip-key", nil
	case len(foreign) > 0:
		return "the nodes at " + strings.Join(foreign, ", ") + " belong to another cluster, and no node answers at " + strings.Join(none, ", "), nil
	case len(none) > 0:
		return "no node answers at " + strings.Join(none, ", "), nil
	}
	return "--join names only this node", nil
}

// joinTries is the number of members that one round asks.
const joinTries = 3

// join asks members to add this node.
func (f *bootstrap) join(ctx context.Context, live []gossip.Node) (reason string, err error) {
	id, self := f.identity(), f.cfg.Self()
	tries := 0
	for _, s := range live {
		if s.Cluster == "" || s.Peer == "" || tries == joinTries {
			continue
		}
		tries++
		reply, err := f.ask(ctx, s.Peer, &joinRequest{Shards: id.Shards, Node: self})
		switch {
		case err != nil:
			reason = fmt.Sprintf("node %q at %s does not let this node join: %v", s.Node, s.Peer, err)
			continue
		case reply.Refusal != nil:
			return "", fmt.Errorf("join the cluster by node %q at %s: %w", s.Node, s.Peer, reply.Refusal)
		case reply.Cluster == "" || reply.Shards < 1 || reply.Shards > MaxShards || reply.List == nil:
			return "", fmt.Errorf("join the cluster by node %q at %s: this version does not understand the answer", s.Node, s.Peer)
		}
		// The registry is stored before the cluster's id: a node of a cluster must know the other
		// nodes.
		if err := f.cfg.AdoptList(reply.List); err != nil {
			return "", fmt.Errorf("join the cluster: %w", err)
		}
		return "", f.adopt(func(id identity, db *pebble.DB) (identity, error) { return id.join(db, reply.Cluster, reply.Shards) }, "joined the cluster")
	}
	if tries == 0 {
		reason = "members run and none of them has a peer address"
	}
	return reason, nil
}

func (f *bootstrap) ask(ctx context.Context, peer string, request *joinRequest) (*joinReply, error) {
	ctx, cancel := context.WithTimeout(ctx, f.times.callTimeout)
	defer cancel()
	return sendJoin(ctx, request, func(ctx context.Context, body []byte) ([]byte, error) {
		return f.cfg.Calls.callAddr(ctx, peer, rpcJoin, body)
	})
}

// adopt makes the node a member and writes its identity.
func (f *bootstrap) adopt(to func(identity, *pebble.DB) (identity, error), what string) error {
	id, err := f.cfg.Identity.change(to)
	if err != nil {
		return err
	}
	f.cfg.Logger.Info(what, "cluster", id.Cluster, "node", id.Node, "shards", id.Shards)
	return nil
}

// logReason logs what the node waits for, each reason once.
func (f *bootstrap) logReason(reason string) {
	if reason != f.lastLogged {
		f.lastLogged = reason
		f.cfg.Logger.Warn("this node waits for its cluster", "reason", reason)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

var errVoted = errors.New("has voted for another node")
