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

// caller sends control requests; *peerPort implements it.
type caller interface {
	call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error)
	callAddr(ctx context.Context, addr string, kind rpcKind, body []byte) ([]byte, error)
}

// directory is the directory shard as the registry uses it.
type directory interface {
	// owned returns the epoch in which this node owns the directory.
	owned() (epoch uint64, ok bool)
	// barrier returns when a read of state sees every write acknowledged before.
	barrier(ctx context.Context) error
	state() *pebble.DB
	// propose has the batch written. The channel, which has room for it, gets the outcome.
	propose(epoch uint64, batch []byte) <-chan error
}

type registryConfig struct {
	// Identity returns the node's identity. A node without a cluster answers no requests.
	Identity func() identity
	// Self returns this node's current record.
	Self      func() membership.Record
	Directory directory
	Formats   *formats
	// Owner returns the node that owns the directory; empty if it is not known.
	Owner func() string
	Calls caller
	// Raft stores the newest node list that this node has received.
	Raft *pebble.DB
	// IsReachable reports whether a node answers. Nil counts as no.
	IsReachable func(node string) bool
	// IsDown reports whether a node has left or is dead. Nil counts as no.
	IsDown func(node string) bool
	Now    func() time.Time
	Logger *slog.Logger
	// Fatal is called once if this node must stop, from the registry's goroutine. It must not wait
	// for close.
	Fatal func(error)
}

// registry keeps the list of the cluster's nodes: rows of the directory shard that only that
// shard's owner writes. Each node keeps the newest list that it has received, in memory and on
// disk.
type registry struct {
	cfg registryConfig

	// writing has room for one change. It serializes changes, on the directory's owner: of two at the same
	// time one would be lost.
	writing chan struct{}

	mu      sync.Mutex
	known   *membership.List
	changed chan struct{} // closed when known is replaced
	refuser string        // a node that has refused this one since it last registered; empty: none

	wake chan struct{} // capacity 1: check whether the registry has this node's current record
	stop context.CancelFunc
	done sync.WaitGroup
}

// newRegistry starts from the list on disk.
func newRegistry(cfg registryConfig) (*registry, error) {
	known, err := lastKnown(cfg.Raft)
	if err != nil {
		return nil, err
	}
	return &registry{cfg: cfg, writing: make(chan struct{}, 1), known: known, changed: make(chan struct{}), wake: make(chan struct{}, 1)}, nil
}

// lastKnown reads the newest node list that this node has received.
func lastKnown(db *pebble.DB) (*membership.List, error) {
	known := &membership.List{}
	row, err := raftstore.ReadRow(db, raftstore.Key(0, raftstore.KindMembers, nil))
	if err == nil && row != nil {
		err = json.Unmarshal(row, known)
	}
	if err != nil {
		return nil, fmt.Errorf("read the last known nodes: %w", err)
	}
	return known, nil
}

// list returns the newest list that this node has received. It is shared and must not be changed.
func (r *registry) list() *membership.List {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

// adopt stores a list from the directory's owner, unless it is older than the stored one.
func (r *registry) adopt(list *membership.List) error {
	if err := list.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if list.Version <= r.known.Version {
		return nil
	}
	// The data directory promises a format before the other nodes can hear of it.
	if err := r.cfg.Formats.adopt(list); err != nil {
		return err
	}
	row, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("store the nodes: %w", err)
	}
	// The write is not synced: after a crash an older list serves as well.
	if err := r.cfg.Raft.Set(raftstore.Key(0, raftstore.KindMembers, nil), row, pebble.NoSync); err != nil {
		return fmt.Errorf("store the nodes: %w", err)
	}
	r.known = list
	close(r.changed)
	r.changed = make(chan struct{})
	self := r.cfg.Self()
	if rec, ok := list.Node(self.Name); !ok || rec.Removed || !sameNode(rec, self) {
		r.wakeEnroll()
	}
	return nil
}

// reload reads the list from this node's own replica of the directory when the node becomes the
// directory's owner.
func (r *registry) reload() error {
	list, err := membership.ReadList(r.cfg.Directory.state())
	if err != nil {
		return err
	}
	r.wakeEnroll()
	return r.adopt(list)
}

// change writes a new list. It works on the directory's owner only and returns errNotOwner
// elsewhere. If ctx ends before the outcome of the write is known, change returns without it. The next
// change begins when it is known.
func (r *registry) change(ctx context.Context, edit func(*membership.List) error) (*membership.List, error) {
	select {
	case r.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another change of the registry: %w", ctx.Err())
	}
	pending := false
	defer func() {
		if !pending {
			<-r.writing
		}
	}()
	// The epoch is read first: if the directory changes hands after the read, the batch is refused.
	epoch, ok := r.cfg.Directory.owned()
	if !ok {
		return nil, errNotOwner
	}
	if err := r.cfg.Directory.barrier(ctx); err != nil {
		return nil, err
	}
	old, err := membership.ReadList(r.cfg.Directory.state())
	if err != nil {
		return nil, err
	}
	list := old.Clone()
	// The owner adds itself: it may get a request before it has registered.
	if self := r.cfg.Self(); self.Name != "" {
		if _, ok := list.Node(self.Name); !ok {
			self.FirstSeen = r.cfg.Now().UTC().Round(0)
			list.Add(self)
		}
	}
	refused := edit(list)
	if refused != nil {
		return nil, refused
	}
	list.RaiseFormat(r.cfg.Formats.current())
	batch, err := membership.ListBatch(r.cfg.Directory.state(), old, list)
	if err != nil {
		return nil, err
	}
	if batch != nil {
		list.Version++
		if batch, err = membership.ListBatch(r.cfg.Directory.state(), old, list); err != nil {
			return nil, err
		}
		outcome := r.cfg.Directory.propose(epoch, batch)
		select {
		case err := <-outcome:
			if err != nil {
				return nil, fmt.Errorf("write the registry: %w", err)
			}
		case <-ctx.Done():
			pending = true
			go r.awaitOutcome(outcome)
			return nil, fmt.Errorf("write the registry, which may still succeed: %w", ctx.Err())
		}
	}
	return list, r.adopt(list)
}

// awaitOutcome lets the next change begin when the outcome of a write is known. It ends with the node's groups
// at the latest. The node then registers again, and gets the list that was written.
func (r *registry) awaitOutcome(outcome <-chan error) {
	if err := <-outcome; err != nil {
		r.cfg.Logger.Warn("write the registry", "error", err)
	}
	<-r.writing
	r.wakeEnroll()
}

// setDraining starts or ends the drain of a member. It works on the directory's owner only.
func (r *registry) setDraining(ctx context.Context, name string, draining bool) error {
	_, err := r.change(ctx, func(l *membership.List) error {
		if draining {
			return l.Drain(name, r.ruleInput())
		}
		return l.Undrain(name)
	})
	return err
}

// remove removes a member. It works on the directory's owner only.
func (r *registry) remove(ctx context.Context, name string) error {
	_, err := r.change(ctx, func(l *membership.List) error { return l.Remove(name, r.ruleInput()) })
	return err
}

// ruleInput returns the facts that the rules of the list use.
func (r *registry) ruleInput() membership.RuleInput {
	return membership.RuleInput{IsReachable: r.cfg.IsReachable, IsDown: r.cfg.IsDown, Now: r.cfg.Now()}
}

// release records that no group counts removed nodes any more. It works on the directory's owner
// only.
func (r *registry) release(ctx context.Context, names []string) error {
	_, err := r.change(ctx, func(l *membership.List) error {
		for _, name := range names {
			l.Release(name)
		}
		return nil
	})
	return err
}

// wakeEnroll makes keepRegistered send this node's record again.
func (r *registry) wakeEnroll() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// refusedBy makes keepRegistered ask a node that refuses this one as no member.
func (r *registry) refusedBy(node string) {
	r.mu.Lock()
	r.refuser = node
	r.mu.Unlock()
	r.wakeEnroll()
}

// takeRefuser returns a node that has refused this one, once.
func (r *registry) takeRefuser() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	node := r.refuser
	r.refuser = ""
	return node
}

// sameNode reports whether a record in the registry agrees with the node's own.
func sameNode(rec, self membership.Record) bool {
	self.Draining, self.Removed, self.FirstSeen = rec.Draining, rec.Removed, rec.FirstSeen
	return rec == self // false for a released node, which is told so when it registers
}

// run keeps this node's record in the registry, until close.
func (r *registry) run() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() { r.keepRegistered(ctx) })
}

// close ends run.
func (r *registry) close() {
	if r.stop != nil {
		r.stop()
	}
	r.done.Wait()
}

// Pauses between the tries of keepRegistered.
const (
	registerRetryFirst = 50 * time.Millisecond
	registerRetryLast  = 5 * time.Second
	// registerRemoved is how often a removed node asks whether its groups still need it: the others
	// have no reason to tell it.
	registerRemoved = time.Second
)

// keepRegistered registers the node when it starts, and again whenever the registry's record of it
// differs from its own or another node refuses it.
func (r *registry) keepRegistered(ctx context.Context) {
	wait, said := registerRetryFirst, ""
	for {
		err := r.register(ctx, r.cfg.Self())
		var refused *membership.PermanentError
		if errors.As(err, &refused) {
			r.cfg.Fatal(fmt.Errorf("register with the cluster: %w", refused))
			return
		}
		var again <-chan time.Time
		if err != nil {
			if text := err.Error(); text != said && wait > time.Second { // a start has many short waits
				said = text
				r.cfg.Logger.Warn("register this node with the cluster", "error", err)
			}
			again = time.After(wait)
			wait = min(2*wait, registerRetryLast)
		} else {
			wait, said = registerRetryFirst, ""
			if rec, ok := r.list().Node(r.cfg.Self().Name); ok && rec.Removed {
				again = time.After(registerRemoved)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-r.wake:
		}
	}
}
