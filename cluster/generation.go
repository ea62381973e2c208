package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster/membership"
	"switchyard/cluster/raftstore"
)

// A data directory can come back older than its node left it: from a copy, or from a snapshot of its
// disk. Then it has forgotten entries that the node acknowledged, and with its vote they could be
// lost. So each data directory counts its starts, and the minutes that its node runs. The other nodes
// keep the newest count that they have seen of each node, on disk, and refuse connections of a node
// that comes with less. That node ends.
//
// A directory that is older by less than generationEvery is not found out. Nor is one that no node has
// seen newer which answers when it starts.

// generation tells two states of a data directory apart. The zero one is that of a version without
// generations.
type generation struct {
	Instance string `json:"instance,omitempty"`
	Count    uint64 `json:"count,omitempty"`
	// Start is made at each start: a state of the same count from another start is another one.
	Start string `json:"start,omitempty"`
}

// older reports whether a node that comes with g has lost what it had at seen.
func (g generation) older(seen generation) bool {
	if g.Count == 0 || g.Instance != seen.Instance {
		return false
	}
	return g.Count < seen.Count || g.Count == seen.Count && g.Start != seen.Start
}

const (
	// generationEvery is the time after which a running node counts on.
	generationEvery = time.Minute
	// generationCheck is how long a starting node waits for the others' word on its data directory.
	generationCheck = time.Second
)

// errOlderData is the error of a node that others have seen with newer data.
var errOlderData = errors.New("the node's data directory is older than another node has seen it: it has forgotten what the node acknowledged since. " +
	"Was it restored from a copy? Remove the node from the cluster (switchyard cluster remove), and start it again with an empty data directory: it gets its replicas from the others")

// ownGeneration is the generation of this node's data directory.
type ownGeneration struct {
	db       *pebble.DB
	instance func() string

	counting sync.Mutex // held while a count is written; taken before mu

	mu  sync.Mutex
	now generation // on disk
}

// beginGeneration counts a start.
func beginGeneration(db *pebble.DB, instance func() string) (*ownGeneration, error) {
	row, err := raftstore.ReadRow(db, raftstore.Key(0, raftstore.KindGeneration, nil))
	o := &ownGeneration{db: db, instance: instance}
	if err == nil && row != nil {
		err = json.Unmarshal(row, &o.now)
	}
	if err == nil {
		o.now.Start, err = randomID()
	}
	if err != nil {
		return nil, fmt.Errorf("read the generation of the data directory: %w", err)
	}
	if err := o.next(); err != nil {
		return nil, err
	}
	return o, nil
}

// next counts on. No other node hears of a count that is not on disk. Heartbeats and dials don't wait
// for the disk: they carry the count before.
func (o *ownGeneration) next() error {
	o.counting.Lock()
	defer o.counting.Unlock()
	o.mu.Lock()
	next := o.now
	o.mu.Unlock()
	next.Count++
	row, err := json.Marshal(next)
	if err == nil {
		err = o.db.Set(raftstore.Key(0, raftstore.KindGeneration, nil), row, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("write the generation of the data directory: %w", err)
	}
	o.mu.Lock()
	o.now = next
	o.mu.Unlock()
	return nil
}

func (o *ownGeneration) get() generation {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.now
	g.Instance = o.instance()
	return g
}

// run counts on until ctx ends.
func (o *ownGeneration) run(ctx context.Context, logger *slog.Logger) {
	ticker := time.NewTicker(generationEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := o.next(); err != nil {
			logger.Warn("could not count on", "error", err)
		}
	}
}

// seenGenerations are the newest generations that this node has seen of the others.
type seenGenerations struct {
	db *pebble.DB

	mu sync.Mutex
	of map[string]generation // by node
}

func newSeenGenerations(db *pebble.DB) (*seenGenerations, error) {
	s := &seenGenerations{db: db, of: map[string]generation{}}
	row, err := raftstore.ReadRow(db, raftstore.Key(0, raftstore.KindSeen, nil))
	if err == nil && row != nil {
		err = json.Unmarshal(row, &s.of)
	}
	if err != nil {
		return nil, fmt.Errorf("read the generations of other nodes: %w", err)
	}
	return s, nil
}

// note keeps the generation that a node comes with, and reports whether it is the newest one seen.
func (s *seenGenerations) note(node string, g generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.of[node]
	if g.older(seen) {
		return false
	}
	if g.Count == 0 || g == seen {
		return true
	}
	s.of[node] = g
	s.store()
	return true
}

// forget drops a node that is not a member any more.
func (s *seenGenerations) forget(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.of[node]; known {
		delete(s.of, node)
		s.store()
	}
}

// keep drops the nodes that are not in a list.
func (s *seenGenerations) keep(list *membership.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.of)
	for node := range s.of {
		if _, ok := list.Node(node); !ok {
			delete(s.of, node)
		}
	}
	if len(s.of) != before {
		s.store()
	}
}

// store writes the generations. They are not synced: a node that forgets some after a crash refuses
// less. A failure shows at the next write that is.
func (s *seenGenerations) store() {
	if row, err := json.Marshal(s.of); err == nil {
		_ = s.db.Set(raftstore.Key(0, raftstore.KindSeen, nil), row, pebble.NoSync)
	}
}

// generations are this node's own generation and those that it has seen. Nil has none, and refuses
// nobody.
type generations struct {
	own  *ownGeneration
	seen *seenGenerations
}

func newGenerations(db *pebble.DB, instance func() string, members *membership.List) (*generations, error) {
	own, err := beginGeneration(db, instance)
	if err != nil {
		return nil, err
	}
	seen, err := newSeenGenerations(db)
	if err != nil {
		return nil, err
	}
	seen.keep(members)
	return &generations{own, seen}, nil
}

// current returns the generation of this node's data directory.
func (g *generations) current() generation {
	if g == nil {
		return generation{}
	}
	return g.own.get()
}

// accepts notes a node's generation, and reports whether it is the newest one seen.
func (g *generations) accepts(node string, of generation) bool {
	return g == nil || g.seen.note(node, of)
}

func (g *generations) forget(node string) {
	if g != nil {
		g.seen.forget(node)
	}
}

// checkGeneration asks the other nodes, before this one takes part in any vote, whether they have
// seen its data directory newer. Nodes that do not answer in time have no say.
func (l *peering) checkGeneration(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, generationCheck)
	defer cancel()
	message, err := l.heartbeat.message()
	if err != nil {
		return err
	}
	others := l.otherNodes()
	refusals := make([]error, len(others))
	var asked sync.WaitGroup
	for i, node := range others {
		asked.Go(func() {
			if _, err := l.port.call(ctx, node, rpcHeartbeat, message); refusesData(err) {
				refusals[i] = fmt.Errorf("node %q: %w", node, errOlderData)
			}
		})
	}
	asked.Wait()
	return errors.Join(refusals...)
}

// refusesData reports whether another node has refused a connection since it has seen newer data.
func refusesData(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && refused.status == statusOlderData
}
