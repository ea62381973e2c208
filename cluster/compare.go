package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"switchyard/storage"
)

// Replicas of a shard that have applied the same entries have the same rows. Nothing else would show a
// replica that differs, until it leads. So the owner of a shard asks all voters from time to time for
// a fingerprint of their rows at one entry, and compares them.

const (
	// compareFirst is how long after its start a node compares for the first time.
	compareFirst = 10 * time.Minute
	// compareLook is the time between two looks for shards that are due.
	compareLook = time.Minute
	// compareSoon is how soon replicas are compared again that differed or could not be compared, as a
	// share of the time between two comparisons.
	compareSoon = 24
	// compareTries bounds the entries that are tried, since replicas may have passed one.
	compareTries = 4
	// comparePoll is the time between two requests to a replica that is being read, compareCall bounds
	// one, and compareWithin bounds a comparison.
	comparePoll   = 250 * time.Millisecond
	compareCall   = 5 * time.Second
	compareWithin = time.Hour
)

// Comparisons counts the comparisons of replicas that this node made as the owner of their shards.
type Comparisons struct {
	Equal, Different uint64
	Unknown          uint64 // a voter gave no fingerprint
}

// comparerConfig configures a comparer.
type comparerConfig struct {
	Self   string
	Shards int
	Every  time.Duration // between two comparisons of a shard
	Group  func(storage.Shard) *group
	Own    *replicaReader
	Calls  nodeCaller
	Logger *slog.Logger
}

// comparer compares the replicas of the shards that this node owns. It owns the goroutine of run, and
// those that ask the voters.
type comparer struct {
	comparerConfig
	due []time.Time // by shard; owned by run

	mu     sync.Mutex
	counts Comparisons
	differ map[storage.Shard][]string // see Node.Differing
}

func newComparer(cfg comparerConfig) *comparer {
	return &comparer{comparerConfig: cfg, due: make([]time.Time, cfg.Shards+1), differ: map[storage.Shard][]string{}}
}

// run compares until ctx ends, one shard after another.
func (c *comparer) run(ctx context.Context) {
	timer := time.NewTimer(min(c.Every, compareFirst))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		for shard := range c.due {
			if ctx.Err() == nil && !time.Now().Before(c.due[shard]) {
				c.due[shard] = time.Now().Add(c.look(ctx, storage.Shard(shard)))
			}
		}
		timer.Reset(min(c.Every/2, compareLook))
	}
}

// look compares the replicas of a shard if this node owns it, and returns when to do so again.
func (c *comparer) look(ctx context.Context, shard storage.Shard) time.Duration {
	g := c.Group(shard)
	if g == nil || !g.up.Load() || g.epoch.Load() == 0 {
		c.note(shard, nil)
		return 0
	}
	voters, _, err := g.members()
	if err != nil || len(voters) < 2 {
		return 0
	}
	within, cancel := context.WithTimeout(ctx, compareWithin)
	defer cancel()
	entry, answers := c.compare(within, g, voters)
	for _, node := range voters {
		if answers[node].Sum == "" {
			if ctx.Err() == nil {
				c.count(func(n *Comparisons) { n.Unknown++ })
				c.Logger.Debug("the replicas of a shard were not compared", "shard", shard, "entry", entry, "answers", answers)
			}
			return c.Every / compareSoon
		}
	}
	differ := outvoted(answers)
	c.note(shard, differ)
	if len(differ) == 0 {
		c.count(func(n *Comparisons) { n.Equal++ })
		return c.Every
	}
	c.count(func(n *Comparisons) { n.Different++ })
	prints := map[string]string{}
	for node, a := range answers {
		prints[node] = a.print()
	}
	c.Logger.Error("the replicas of a shard differ", "shard", shard, "entry", entry, "nodes", differ, "fingerprints", prints)
	return c.Every / compareSoon
}

// compare returns what the voters answered, and the entry. While entries are applied, replicas pass the
// one that they are asked for before the request arrives, so a later one is tried.
func (c *comparer) compare(ctx context.Context, g *group, voters []string) (entry uint64, answers map[string]compareAnswer) {
	ahead := uint64(0)
	for range compareTries {
		now := g.machine.applied.Load()
		entry = now + ahead
		answers = c.askAll(ctx, compareRequest{g.shard, entry}, voters)
		if !slices.ContainsFunc(voters, func(node string) bool { return answers[node].Missed }) {
			break
		}
		ahead = 2 * (g.machine.applied.Load() - now)
	}
	return entry, answers
}

// askAll asks the voters until all have answered, one has failed, or ctx ends.
func (c *comparer) askAll(ctx context.Context, in compareRequest, voters []string) map[string]compareAnswer {
	tick := time.NewTicker(comparePoll)
	defer tick.Stop()
	answers := map[string]compareAnswer{}
	for {
		next := make([]compareAnswer, len(voters))
		var asked sync.WaitGroup
		for i, node := range voters {
			if next[i] = answers[node]; next[i] == (compareAnswer{}) || next[i].Pending {
				asked.Go(func() { next[i] = c.ask(ctx, node, in) })
			}
		}
		asked.Wait()
		for i, node := range voters {
			answers[node] = next[i]
		}
		pending := false
		for _, a := range answers {
			if a.Missed || a.Failed != "" {
				return answers
			}
			pending = pending || a.Pending
		}
		if !pending {
			return answers
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return answers
		}
	}
}

func (c *comparer) ask(ctx context.Context, node string, in compareRequest) compareAnswer {
	if node == c.Self {
		return c.Own.ask(in)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return compareAnswer{Failed: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, compareCall)
	defer cancel()
	var a compareAnswer
	reply, err := c.Calls.call(ctx, node, rpcCompare, body)
	if err == nil {
		err = json.Unmarshal(reply, &a)
	}
	if err != nil {
		return compareAnswer{Failed: err.Error()}
	}
	return a
}

// outvoted returns the nodes whose replicas differ from those of the majority, or all nodes if no
// majority is equal. None if all are equal.
func outvoted(answers map[string]compareAnswer) (nodes []string) {
	votes := map[string]int{}
	for _, a := range answers {
		votes[a.print()]++
	}
	if len(votes) < 2 {
		return nil
	}
	for node, a := range answers {
		if 2*votes[a.print()] <= len(answers) {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// Comparisons returns how often this node compared replicas since its start, as the owner of their
// shards.
func (n *Node) Comparisons() Comparisons {
	if n.peering == nil || !n.peering.started.Load() || n.peering.comparer == nil {
		return Comparisons{}
	}
	return n.peering.comparer.counted()
}

// Differing returns the nodes whose replicas of a shard differed when this node last compared them as
// its owner. The result is shared and must not be changed.
func (n *Node) Differing(shard storage.Shard) []string {
	if n.peering == nil || !n.peering.started.Load() || n.peering.comparer == nil {
		return nil
	}
	return n.peering.comparer.differing(shard)
}

func (c *comparer) counted() Comparisons {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

func (c *comparer) count(add func(*Comparisons)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.counts)
}

// note records which replicas of a shard differ.
func (c *comparer) note(shard storage.Shard, differ []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.differ, shard); len(differ) > 0 {
		c.differ[shard] = differ
	}
}

func (c *comparer) differing(shard storage.Shard) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.differ[shard]
}
