package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/memberlist"

	"switchyard/cluster/gossip"
	"switchyard/cluster/membership"
	"switchyard/storage"
)

// memoryDirectory is a directory shard of one copy, which any of several
// registries may own.
type memoryDirectory struct {
	store *storage.Store

	mu    sync.Mutex
	owner string
	epoch uint64
	late  chan func() // gets the writes, which the test makes; nil: they are made at once
}

func newMemoryDirectory(t testing.TB) *memoryDirectory {
	t.Helper()
	store := openStore(t, vfs.NewMem(), "directory")
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &memoryDirectory{store: store}
}

func (d *memoryDirectory) give(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owner = node
	d.epoch++
}

func (d *memoryDirectory) who() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owner
}

// directoryOf is the directory as one node sees it.
type directoryOf struct {
	*memoryDirectory
	node string
}

func (d directoryOf) owned() (uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.epoch, d.owner == d.node
}

func (d directoryOf) barrier(context.Context) error { return nil }
func (d directoryOf) state() *pebble.DB             { return d.store.State() }

func (d directoryOf) propose(epoch uint64, batch []byte) <-chan error {
	outcome := make(chan error, 1)
	if write := func() { outcome <- d.write(epoch, batch) }; d.late != nil {
		d.late <- write
	} else {
		write()
	}
	return outcome
}

func (d directoryOf) write(epoch uint64, batch []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if epoch != d.epoch {
		return errFenced
	}
	b := d.store.State().NewBatch()
	if err := b.SetRepr(append([]byte(nil), batch...)); err != nil {
		return err
	}
	return b.Commit(pebble.NoSync)
}

// fakeCalls carries control requests between the nodes of a test.
type fakeCalls struct {
	mu     sync.Mutex
	byAddr map[string]rpcHandler // by peer address; of rpcJoin and rpcRegister
	byName map[string]rpcHandler
}

func newFakeCalls() *fakeCalls {
	return &fakeCalls{byAddr: map[string]rpcHandler{}, byName: map[string]rpcHandler{}}
}

// attach gives a node's requests to h until detach, which waits for those under way, as a peer port
// does that is closed.
func (w *fakeCalls) attach(name, addr string, h rpcHandler) (detach func()) {
	var mu sync.Mutex
	var running sync.WaitGroup
	detached := false
	begin := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if !detached {
			running.Add(1)
		}
		return !detached
	}
	guarded := func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if !begin() {
			return nil, errors.New("connection refused")
		}
		defer running.Done()
		return h(ctx, from, body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byName[name], w.byAddr[addr] = guarded, guarded
	return func() {
		mu.Lock()
		detached = true
		mu.Unlock()
		running.Wait()
	}
}

// from is the caller of a node. It hands requests of both kinds to one handler,
// which distinguishes them by their content, see testMember.handle.
func (w *fakeCalls) from(node string) caller { return wireCaller{w, node} }

type wireCaller struct {
	w    *fakeCalls
	from string
}

type kindKey struct{}

func (c wireCaller) do(ctx context.Context, to map[string]rpcHandler, key string, kind rpcKind, body []byte) ([]byte, error) {
	c.w.mu.Lock()
	h := to[key]
	c.w.mu.Unlock()
	if h == nil {
		return nil, errors.New("connection refused")
	}
	return h(context.WithValue(ctx, kindKey{}, kind), c.from, body)
}

func (c wireCaller) call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error) {
	return c.do(ctx, c.w.byName, node, kind, body)
}

func (c wireCaller) callAddr(ctx context.Context, addr string, kind rpcKind, body []byte) ([]byte, error) {
	return c.do(ctx, c.w.byAddr, addr, kind, body)
}

// testMember is a node of these tests: gossip, bootstrap and registry, with fakeCalls as its
// peer port. All nodes share one directory shard; the node that forms the cluster owns it.
type testMember struct {
	name      string
	store     *storage.Store
	fs        vfs.FS
	directory *memoryDirectory
	wires     *fakeCalls
	gossip    *gossip.Gossip
	meta      gossip.Meta
	bootstrap *bootstrap
	registry  *registry
	fatal     chan error
	end       func(crash bool)
}

type testMemberConfig struct {
	name      string
	seeds     []string
	expect    int
	shards    int
	keys      [][]byte
	gossip    string
	fs        vfs.FS // nil: a new disk
	directory *memoryDirectory
	wires     *fakeCalls
	reachable func(string) bool
	maxFormat storage.Format
}

// fastGossip finds a dead node soon. A node that has no processor for a moment must not be taken for dead.
func fastGossip(conf *memberlist.Config, times *gossip.Times) {
	conf.ProbeInterval, conf.ProbeTimeout = 300*time.Millisecond, 150*time.Millisecond
	conf.GossipInterval = 10 * time.Millisecond
	conf.SuspicionMult = 2
	conf.GossipToTheDeadTime = time.Second
	times.RejoinEvery, times.StatusEvery = 100*time.Millisecond, 50*time.Millisecond
}

func fastBootstrap(times *bootstrapTimes) {
	times.retryMin, times.retryMax, times.settle = 10*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond
}

func newTestMember(t testing.TB, cfg testMemberConfig) *testMember {
	t.Helper()
	s := &testMember{name: cfg.name, fs: cfg.fs, directory: cfg.directory, wires: cfg.wires, fatal: make(chan error, 1)}
	if s.fs == nil {
		s.fs = vfs.NewMem()
	}
	if cfg.gossip == "" {
		cfg.gossip = "127.0.0.1:0"
	}
	s.store = openStore(t, s.fs, "data")
	id, err := identify(Config{Store: s.store, NodeName: cfg.name, Shards: cfg.shards, Join: cfg.seeds, BootstrapExpect: cfg.expect, MaxFormat: cfg.maxFormat})
	if err != nil {
		t.Fatal(err)
	}
	row := &identityRow{db: s.store.Raft(), id: id}
	formats, err := newFormats(cmp.Or(cfg.maxFormat, storage.FormatNewest), s.store, row, quiet())
	if err != nil {
		t.Fatal(err)
	}
	peer := "peer-of-" + id.Instance[:8] + ":1"
	self := func() membership.Record {
		rec := membership.Record{
			Name: id.Node, Instance: id.Instance, Peer: peer, Version: "test",
			Oldest: storage.FormatOldest, Newest: formats.newest, Format: row.get().promised(),
		}
		if s.gossip != nil {
			rec.Gossip = s.gossip.Addr
		}
		return rec
	}
	s.meta = gossip.Meta{Node: id.Node, Instance: id.Instance, Cluster: id.Cluster, Peer: peer, Version: "test"}
	s.gossip, err = gossip.New(gossip.Config{
		Bind: cfg.gossip, Keys: cfg.keys, Seeds: cfg.seeds,
		Self:      s.meta,
		Known:     func() []membership.Record { return s.registry.list().Peers() },
		Reachable: cfg.reachable, Logger: quiet(), Tune: fastGossip,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.bootstrap = newBootstrap(bootstrapConfig{
		Identity: row, Expect: cfg.expect, Gossip: s.gossip, Calls: s.wires.from(id.Node), Self: self,
		AdoptList: func(r *membership.List) error { return s.registry.adopt(r) }, Logger: quiet(), tune: fastBootstrap,
	})
	s.registry, err = newRegistry(registryConfig{
		Identity: s.bootstrap.identity, Self: self, Formats: formats, Directory: directoryOf{s.directory, id.Node}, Owner: s.directory.who,
		Calls: s.wires.from(id.Node), Raft: s.store.Raft(), Now: time.Now, Logger: quiet(),
		IsReachable: func(node string) bool {
			return slices.ContainsFunc(s.gossip.Alive(), func(seen gossip.Node) bool {
				return seen.Node == node && seen.Cluster == s.bootstrap.identity().Cluster
			})
		},
		Fatal: func(err error) { s.fatal <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	join := answerJoin(s.bootstrap, s.registry)
	detach := s.wires.attach(id.Node, peer, func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if ctx.Value(kindKey{}) == rpcRegister {
			return s.registry.handleRegister(ctx, from, body)
		}
		return join(ctx, from, body)
	})
	var once sync.Once
	s.end = func(crash bool) {
		once.Do(func() {
			s.registry.close()
			detach()
			if crash {
				err = s.gossip.Shutdown()
			} else {
				err = s.gossip.Close()
			}
			if err := errors.Join(err, s.store.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { s.end(true) })
	s.gossip.Run()
	return s
}

// run joins or forms, and then registers.
func (s *testMember) run(ctx context.Context) error {
	fresh := !s.bootstrap.identity().joined()
	id, err := s.bootstrap.run(ctx)
	if err != nil {
		return err
	}
	if fresh {
		s.meta.Cluster = id.Cluster
		if err := s.gossip.Update(s.meta); err != nil {
			return err
		}
	}
	if s.directory.who() == "" {
		s.directory.give(s.name)
	}
	s.registry.run()
	return nil
}

// brief returns a context for operations of a few seconds.
func brief(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// tryRun runs a node that may be refused.
func (s *testMember) tryRun(t testing.TB) error {
	t.Helper()
	return s.run(brief(t))
}

// mustRun runs a node and expects success.
func (s *testMember) mustRun(t testing.TB) *testMember {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.run(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// states lists the members' states, as "name state".
func (s *testMember) states() (out []string) {
	for _, m := range s.gossip.Status() {
		out = append(out, fmt.Sprintf("%s %s", m.Name, m.State))
	}
	return out
}
