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
)

// gatherer is what forming sees of gossip; *members is one.
type gatherer interface {
	contactSeeds(ctx context.Context) []contact
	live() []sighting
	changes() <-chan struct{}
}

type formingConfig struct {
	Raft   *pebble.DB
	Expect int // Config.BootstrapExpect
	Gossip gatherer
	Calls  caller
	// Self is this node's record, with its addresses.
	Self func() record
	// Adopt takes the registry that comes with joining, see registry.adopt.
	Adopt  func(*roster) error
	Logger *slog.Logger

	tune func(*formingTimes) // tests only
}

// formingTimes are the times that tests change.
type formingTimes struct {
	first, most time.Duration // between rounds: grows from the one to the other
	settle      time.Duration // what is seen must have stood that long before a node forms
	pledge      time.Duration // how long a node keeps to the one it pledged itself to
	call        time.Duration
}

// keyRounds is in how many rounds in a row a gossip key must be refused before a
// start is given up.
const keyRounds = 3

// forming is how a node with empty data comes by a cluster (Decision 52), and how
// one with data makes sure that the nodes it was told of are of its own.
type forming struct {
	cfg   formingConfig
	times formingTimes

	mu      sync.Mutex
	id      identity
	pledged record    // whom this node lets form a cluster
	until   time.Time // and for how long

	said string // logged last, to say each thing once
	keys int    // rounds in a row that met another gossip key
}

func newForming(id identity, cfg formingConfig) *forming {
	f := &forming{cfg: cfg, id: id, times: formingTimes{
		first: 100 * time.Millisecond, most: 5 * time.Second,
		settle: 400 * time.Millisecond, pledge: 30 * time.Second, call: 5 * time.Second,
	}}
	if cfg.tune != nil {
		cfg.tune(&f.times)
	}
	return f
}

// identity is what the node is by now.
func (f *forming) identity() identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id
}

// run returns when the node belongs to a cluster: at once when its data says so.
// Its errors are final, but for ctx's; they say what an operator has to do.
func (f *forming) run(ctx context.Context) (identity, error) {
	wait := f.times.first
	for {
		if id := f.identity(); id.joined() {
			return id, nil
		}
		changed := f.cfg.Gossip.changes()
		why, err := f.round(ctx)
		if err != nil {
			return identity{}, err
		}
		if f.identity().joined() {
			continue
		}
		if why != "" && wait > f.times.first { // give the first round the time it needs
			f.say(why)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return identity{}, fmt.Errorf("wait for a cluster: %w", ctx.Err())
		case <-changed:
			timer.Stop()
			// Somebody came: look soon, and not at once for each of many.
			wait = f.times.first
			if err := pause(ctx, f.times.first); err != nil {
				return identity{}, fmt.Errorf("wait for a cluster: %w", err)
			}
		case <-timer.C:
			wait = min(2*wait, f.times.most)
		}
	}
}

// check makes sure that a node with data was told of its own cluster. It returns
// nil when it met a member, or when it was told of none; run it beside serving.
func (f *forming) check(ctx context.Context) error {
	for wait := f.times.first; ; wait = min(2*wait, f.times.most) {
		contacts := f.cfg.Gossip.contactSeeds(ctx)
		own := f.identity().Cluster
		met := slices.ContainsFunc(f.cfg.Gossip.live(), func(s sighting) bool { return s.Cluster == own })
		if len(contacts) == 0 || met {
			return nil
		}
		why, err := f.weigh(contacts)
		if err != nil {
			return err
		}
		if why != "" && wait > f.times.first {
			f.say(why)
		}
		if pause(ctx, wait) != nil {
			return nil // the node closes, which says nothing against its cluster
		}
	}
}

// round is one try: it gives what the node waits for, if it still does.
func (f *forming) round(ctx context.Context) (why string, err error) {
	contacts := f.cfg.Gossip.contactSeeds(ctx)
	live := f.cfg.Gossip.live()
	var clusters []string
	for _, s := range live {
		if s.Cluster != "" {
			clusters = append(clusters, s.Cluster)
		}
	}
	slices.Sort(clusters)
	switch clusters = slices.Compact(clusters); {
	case len(clusters) > 1:
		return "", fmt.Errorf("cluster: the nodes of --join belong to different clusters (%s): correct it", strings.Join(clusters, ", "))
	case len(clusters) == 1:
		return f.join(ctx, live)
	case len(live) == 0:
		return f.weigh(contacts)
	case f.cfg.Expect > 0:
		return f.gather(ctx, live)
	}
	return fmt.Sprintf("%d other nodes are here and none belongs to a cluster: start one node without --join, or all with --bootstrap-expect", len(live)), nil
}

// weigh draws the conclusion from contacts that led to nobody.
func (f *forming) weigh(contacts []contact) (why string, err error) {
	var keys, foreign, none []string
	other := ""
	for _, c := range contacts {
		switch c.kind {
		case contactKey:
			keys = append(keys, c.addr)
		case contactForeign:
			foreign, other = append(foreign, c.addr), c.cluster
		case contactNone:
			none = append(none, c.addr)
		case contactMet:
			// It was there a moment ago; the next round will tell.
			f.keys = 0
			return "", nil
		}
	}
	if len(foreign) > 0 && len(foreign) == len(contacts) {
		return "", fmt.Errorf("the nodes at %s: %w", strings.Join(foreign, ", "), refuseCluster(f.cfg.Self().Name, f.identity().Cluster, other))
	}
	if len(keys) == 0 {
		f.keys = 0
	} else if f.keys++; f.keys >= keyRounds {
		return "", refuse(refusedKey, "the nodes at %s use another --gossip-key than this one, or none: start this node with theirs", strings.Join(keys, ", "))
	}
	switch {
	case len(keys) > 0:
		return "the nodes at " + strings.Join(keys, ", ") + " use another --gossip-key", nil
	case len(foreign) > 0:
		return "the nodes at " + strings.Join(foreign, ", ") + " belong to another cluster, and nobody answers at " + strings.Join(none, ", "), nil
	case len(none) > 0:
		return "nobody answers at " + strings.Join(none, ", "), nil
	}
	return "--join names no node but this one", nil
}

// joinTries is how many members a round asks.
const joinTries = 3

// join asks members to be taken in.
func (f *forming) join(ctx context.Context, live []sighting) (why string, err error) {
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
			why = fmt.Sprintf("node %q at %s does not let this node join: %v", s.Node, s.Peer, err)
			continue
		case reply.Refusal != nil:
			return "", fmt.Errorf("join the cluster by node %q at %s: %w", s.Node, s.Peer, reply.Refusal)
		case reply.Cluster == "" || reply.Shards < 1 || reply.Shards > MaxShards || reply.Roster == nil:
			return "", fmt.Errorf("join the cluster by node %q at %s: an answer that this version does not understand", s.Node, s.Peer)
		}
		// The registry first: a node of a cluster must know where to look for it.
		if err := f.cfg.Adopt(reply.Roster); err != nil {
			return "", fmt.Errorf("join the cluster: %w", err)
		}
		return "", f.become(func(id identity) (identity, error) { return id.join(f.cfg.Raft, reply.Cluster, reply.Shards) }, "joined the cluster")
	}
	if tries == 0 {
		why = "members are here and none tells its peer address"
	}
	return why, nil
}

func (f *forming) ask(ctx context.Context, peer string, request *joinRequest) (*joinReply, error) {
	ctx, cancel := context.WithTimeout(ctx, f.times.call)
	defer cancel()
	return send(ctx, request, func(ctx context.Context, body []byte) ([]byte, error) {
		return f.cfg.Calls.callAddr(ctx, peer, rpcJoin, body)
	})
}

// become makes the node a member and writes that down.
func (f *forming) become(make func(identity) (identity, error), what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, err := make(f.id)
	if err != nil {
		return err
	}
	f.id = id
	f.cfg.Logger.Info(what, "cluster", id.Cluster, "node", id.Node, "shards", id.Shards)
	return nil
}

// say logs what the node waits for, each thing once.
func (f *forming) say(why string) {
	if why != f.said {
		f.said = why
		f.cfg.Logger.Warn("this node waits for its cluster", "reason", why)
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

var errPledged = errors.New("pledged to another node")
