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
)

// caller sends control requests; *peers is one.
type caller interface {
	call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error)
	callAddr(ctx context.Context, addr string, kind rpcKind, body []byte) ([]byte, error)
}

// directory is the directory shard as the registry uses it.
type directory interface {
	// owned gives the epoch in which this node owns the directory.
	owned() (epoch uint64, ok bool)
	// barrier returns when a read of state sees every write acknowledged before.
	barrier(ctx context.Context) error
	state() *pebble.DB
	// propose returns when the outcome of the batch is known, whatever it takes: two
	// changes at once would lose one.
	propose(epoch uint64, batch []byte) error
}

type registryConfig struct {
	// Identity gives the cluster's id and shards; a node that has not joined answers
	// nobody.
	Identity func() identity
	// Self is this node's record as it is now.
	Self      func() record
	Directory directory
	// Owner names the node that owns the directory; empty when that is not known.
	Owner func() string
	Calls caller
	// Raft keeps the last node list heard of.
	Raft *pebble.DB
	// IsReachable tells whether a node answers right now, Held whether some shard's group
	// still has it as a member. Nil: unknown, taken as no.
	IsReachable, IsGroupMember func(node string) bool
	Now                        func() time.Time
	Logger                     *slog.Logger
	// Fatal is told, once, that this node must not go on, from the registry's
	// goroutine. It must not wait for close.
	Fatal func(error)
}

// registry is the list of the cluster's nodes: rows of the directory shard,
// written by that shard's owner only. Each node keeps the newest list it heard of,
// in memory and on disk.
type registry struct {
	cfg registryConfig

	writing sync.Mutex // one change after another, on the directory's owner

	mu      sync.Mutex
	known   *nodeList
	changed chan struct{} // closed when known is replaced

	wake chan struct{} // capacity 1: this node's record may have to be told
	stop context.CancelFunc
	done sync.WaitGroup
}

// newRegistry starts from the list that the node heard of last.
func newRegistry(cfg registryConfig) (*registry, error) {
	known, err := lastKnown(cfg.Raft)
	if err != nil {
		return nil, err
	}
	return &registry{cfg: cfg, known: known, changed: make(chan struct{}), wake: make(chan struct{}, 1)}, nil
}

// lastKnown reads the list of nodes that this node last heard of.
func lastKnown(db *pebble.DB) (*nodeList, error) {
	known := &nodeList{}
	row, err := readRow(db, raftKey(0, kindMembers, nil))
	if err == nil && row != nil {
		err = json.Unmarshal(row, known)
	}
	if err != nil {
		return nil, fmt.Errorf("read the nodes last heard of: %w", err)
	}
	return known, nil
}

// list is the newest list this node heard of. It is shared: change nothing in
// it.
func (r *registry) list() *nodeList {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

// changes gives the list and a channel that is closed when there is a newer one.
func (r *registry) changes() (*nodeList, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known, r.changed
}

// adopt takes a list that the directory's owner sent, unless it is old.
func (r *registry) adopt(list *nodeList) error {
	if err := list.check(); err != nil {
		return err
	}
	self := r.cfg.Self()
	r.mu.Lock()
	defer r.mu.Unlock()
	if list.Version <= r.known.Version {
		return nil
	}
	row, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("remember the nodes: %w", err)
	}
	// Not synced: a crash brings back an older list, which is as good to begin with.
	if err := r.cfg.Raft.Set(raftKey(0, kindMembers, nil), row, pebble.NoSync); err != nil {
		return fmt.Errorf("remember the nodes: %w", err)
	}
	r.known = list
	close(r.changed)
	r.changed = make(chan struct{})
	if rec, ok := list.node(self.Name); !ok || !sameNode(rec, self) {
		r.wakeEnroll()
	}
	return nil
}

// reload takes the list from this node's own replica of the directory, when it
// becomes its owner.
func (r *registry) reload() error {
	list, err := readNodeList(r.cfg.Directory.state())
	if err != nil {
		return err
	}
	r.wakeEnroll()
	return r.adopt(list)
}

// change writes a new list. It works on the directory's owner only, and gives
// errNotOwner elsewhere.
func (r *registry) change(ctx context.Context, edit func(*nodeList) error) (*nodeList, error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	// The epoch comes first: were the directory to change hands after the read, the
	// batch would be refused.
	epoch, ok := r.cfg.Directory.owned()
	if !ok {
		return nil, errNotOwner
	}
	if err := r.cfg.Directory.barrier(ctx); err != nil {
		return nil, err
	}
	old, err := readNodeList(r.cfg.Directory.state())
	if err != nil {
		return nil, err
	}
	list := old.clone()
	// The owner vouches for itself: it may be asked before it registered.
	if self := r.cfg.Self(); self.Name != "" {
		if _, ok := list.node(self.Name); !ok {
			self.FirstSeen = r.cfg.Now().UTC().Round(0)
			list.addMember(self)
		}
	}
	refused := edit(list)
	if refused != nil {
		return nil, refused
	}
	batch, err := nodeListBatch(r.cfg.Directory.state(), old, list)
	if err != nil {
		return nil, err
	}
	if batch != nil {
		list.Version++
		if batch, err = nodeListBatch(r.cfg.Directory.state(), old, list); err != nil {
			return nil, err
		}
		if err := r.cfg.Directory.propose(epoch, batch); err != nil {
			return nil, fmt.Errorf("write the registry: %w", err)
		}
	}
	return list, r.adopt(list)
}

// setDraining marks a member as one to be emptied, or takes that back. It works on
// the directory's owner only.
func (r *registry) setDraining(ctx context.Context, name string, draining bool) error {
	_, err := r.change(ctx, func(l *nodeList) error { return l.setDraining(name, draining) })
	return err
}

// remove takes a member out for good. It works on the directory's owner only.
func (r *registry) remove(ctx context.Context, name string) error {
	_, err := r.change(ctx, func(l *nodeList) error { return l.remove(name) })
	return err
}

// wakeEnroll has the node's record told again.
func (r *registry) wakeEnroll() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// sameNode tells whether a record says of a node what the node says itself.
func sameNode(rec, self record) bool {
	self.Draining, self.Removed, self.FirstSeen = rec.Draining, rec.Removed, rec.FirstSeen
	return rec == self
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

// How long enroll waits between tries.
const (
	registerRetryMin = 50 * time.Millisecond
	registerRetryMax = 5 * time.Second
)

// keepRegistered registers the node when it starts, and whenever what the registry says
// of it is not what it is.
func (r *registry) keepRegistered(ctx context.Context) {
	wait, said := registerRetryMin, ""
	for {
		err := r.register(ctx, r.cfg.Self())
		var refused *permanentError
		if errors.As(err, &refused) {
			r.cfg.Fatal(fmt.Errorf("register with the cluster: %w", refused))
			return
		}
		var again <-chan time.Time
		if err != nil {
			if text := err.Error(); text != said && wait > time.Second { // a start is full of short waits
				said = text
				r.cfg.Logger.Warn("register this node with the cluster", "error", err)
			}
			again = time.After(wait)
			wait = min(2*wait, registerRetryMax)
		} else {
			wait, said = registerRetryMin, ""
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-r.wake:
		}
	}
}
