package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/memberlist"

	"switchyard/storage"
)

// memoryDirectory is a directory shard of one copy, which any of several
// registries may own.
type memoryDirectory struct {
	store *storage.Store

	mu    sync.Mutex
	owner string
	epoch uint64
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

func (d directoryOf) propose(epoch uint64, batch []byte) error {
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

// wires carry control requests between the nodes of a test.
type wires struct {
	mu     sync.Mutex
	byAddr map[string]rpcHandler // by peer address; of rpcJoin and rpcRegister
	byName map[string]rpcHandler
}

func newWires() *wires {
	return &wires{byAddr: map[string]rpcHandler{}, byName: map[string]rpcHandler{}}
}

func (w *wires) attach(name, addr string, h rpcHandler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byName[name], w.byAddr[addr] = h, h
}

// from is the caller of a node. It hands requests of both kinds to one handler,
// which tells them apart by their content, see station.handle.
func (w *wires) from(node string) caller { return wireCaller{w, node} }

type wireCaller struct {
	w    *wires
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

// station is a node of these tests: members, forming and registry, with wires for
// a peer port and one shared directory shard, which whoever forms owns.
type station struct {
	name      string
	store     *storage.Store
	fs        vfs.FS
	directory *memoryDirectory
	wires     *wires
	members   *members
	forming   *forming
	registry  *registry
	fatal     chan error
	end       func(crash bool)
}

type stationConfig struct {
	name      string
	seeds     []string
	expect    int
	shards    int
	key       []byte
	gossip    string
	fs        vfs.FS // nil: a new disk
	directory *memoryDirectory
	wires     *wires
	reachable func(string) bool
}

func hurry(conf *memberlist.Config, times *memberTimes) {
	conf.ProbeInterval, conf.ProbeTimeout = 100*time.Millisecond, 50*time.Millisecond
	conf.GossipInterval = 10 * time.Millisecond
	conf.SuspicionMult = 2
	conf.GossipToTheDeadTime = time.Second
	times.rejoin, times.look = 100*time.Millisecond, 50*time.Millisecond
}

func hurryForming(times *formingTimes) {
	times.first, times.most, times.settle = 10*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond
}

func newStation(t testing.TB, cfg stationConfig) *station {
	t.Helper()
	s := &station{name: cfg.name, fs: cfg.fs, directory: cfg.directory, wires: cfg.wires, fatal: make(chan error, 1)}
	if s.fs == nil {
		s.fs = vfs.NewMem()
	}
	if cfg.gossip == "" {
		cfg.gossip = "127.0.0.1:0"
	}
	s.store = openStore(t, s.fs, "data")
	id, err := identify(Config{Store: s.store, NodeName: cfg.name, Shards: cfg.shards, Join: cfg.seeds, BootstrapExpect: cfg.expect})
	if err != nil {
		t.Fatal(err)
	}
	peer := "peer-of-" + id.Instance[:8] + ":1"
	self := func() record {
		rec := record{Name: id.Node, Instance: id.Instance, Peer: peer, Version: "test"}
		if s.members != nil {
			rec.Gossip = s.members.gossip
		}
		return rec
	}
	s.members, err = newMembers(membersConfig{
		Bind: cfg.gossip, Key: cfg.key, Seeds: cfg.seeds,
		Self:      card{Node: id.Node, Instance: id.Instance, Cluster: id.Cluster, Peer: peer, Version: "test"},
		Known:     func() []record { return s.registry.list().members() },
		Reachable: cfg.reachable, Logger: quiet(), tune: hurry,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.forming = newForming(id, formingConfig{
		Raft: s.store.Raft(), Expect: cfg.expect, Gossip: s.members, Calls: s.wires.from(id.Node), Self: self,
		Adopt: func(r *roster) error { return s.registry.adopt(r) }, Logger: quiet(), tune: hurryForming,
	})
	s.registry, err = newRegistry(registryConfig{
		Identity: s.forming.identity, Self: self, Directory: directoryOf{s.directory, id.Node}, Owner: s.directory.who,
		Calls: s.wires.from(id.Node), Raft: s.store.Raft(), Now: time.Now, Logger: quiet(),
		Alive: func(node string) bool {
			seen, ok := s.members.heard.node(node, s.members.heard.cluster())
			return ok && seen.state == NodeAlive
		},
		Fatal: func(err error) { s.fatal <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	join := answerJoin(s.forming, s.registry)
	s.wires.attach(id.Node, peer, func(ctx context.Context, from string, body []byte) ([]byte, error) {
		if ctx.Value(kindKey{}) == rpcRegister {
			return s.registry.handleRegister(ctx, from, body)
		}
		return join(ctx, from, body)
	})
	var once sync.Once
	s.end = func(crash bool) {
		once.Do(func() {
			s.registry.close()
			if crash {
				err = s.members.crash()
			} else {
				err = s.members.close()
			}
			if err := errors.Join(err, s.store.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { s.end(true) })
	s.members.run()
	return s
}

// run joins or forms, and then registers.
func (s *station) run(ctx context.Context) error {
	fresh := !s.forming.identity().joined()
	id, err := s.forming.run(ctx)
	if err != nil {
		return err
	}
	if fresh {
		c := s.members.cfg.Self
		c.Cluster = id.Cluster
		if err := s.members.update(c); err != nil {
			return err
		}
	}
	if s.directory.who() == "" {
		s.directory.give(s.name)
	}
	s.registry.run()
	return nil
}

// brief is a context for what takes seconds at most.
func brief(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// tryRun is run for nodes that are refused.
func (s *station) tryRun(t testing.TB) error {
	t.Helper()
	return s.run(brief(t))
}

// mustRun is run for nodes that nothing stops.
func (s *station) mustRun(t testing.TB) *station {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.run(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits for what other goroutines bring about over sockets.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within 20 s: %s", what)
		case <-tick.C:
		}
	}
}

// states lists how the members stand, as "name state".
func (s *station) states() (out []string) {
	for _, m := range s.members.status() {
		out = append(out, fmt.Sprintf("%s %s", m.Name, m.State))
	}
	return out
}
