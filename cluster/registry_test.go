package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/membership"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

func wantRefusal(t *testing.T, err error, reason, says string) {
	t.Helper()
	var refused *membership.PermanentError
	if !errors.As(err, &refused) {
		t.Fatalf("not refused: %v", err)
	}
	if refused.Reason != reason || !strings.Contains(err.Error(), says) {
		t.Errorf("refused for %s: %v; want %s, saying %q", refused.Reason, err, reason, says)
	}
}

// testRegistries are registries of several nodes over one directory, without gossip.
func testRegistries(t *testing.T, names ...string) (*memoryDirectory, map[string]*registry) {
	t.Helper()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	out := map[string]*registry{}
	for _, name := range names {
		store := openStore(t, vfs.NewMem(), "data")
		row := &identityRow{db: store.Raft(), id: identity{Cluster: "c", Node: name, Shards: 16}}
		formats, err := newFormats(storage.FormatNewest, store, row, quiet())
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRegistry(registryConfig{
			Identity: row.get, Formats: formats,
			Self:      func() membership.Record { return membership.Record{Name: name, Instance: "1", Peer: name + ":1"} },
			Directory: directoryOf{directory, name}, Owner: directory.who, Calls: w.from(name),
			Raft: store.Raft(), Now: time.Now, Logger: quiet(), Fatal: func(error) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.attach(name, name+":1", func(ctx context.Context, from string, body []byte) ([]byte, error) {
			return r.answer(ctx, ctx.Value(kindKey{}).(rpcKind), body)
		})
		t.Cleanup(func() {
			r.close()
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		out[name] = r
	}
	return directory, out
}

// Of removals at the same time, the one that would leave no node is refused, whichever comes last.
func TestRegistry_RemovalsAtTheSameTime(t *testing.T) {
	t.Parallel()
	directory, nodes := testRegistries(t, "a")
	directory.give("a")
	a := nodes["a"]
	for _, name := range []string{"b", "c"} {
		if _, err := a.serve(t.Context(), rpcJoin, &joinRequest{Node: membership.Record{Name: name, Instance: "1"}}); err != nil {
			t.Fatal(err)
		}
	}
	outcomes := make(chan error, 3)
	for _, name := range []string{"a", "b", "c"} {
		go func() { outcomes <- a.remove(t.Context(), name) }()
	}
	var refusals []error
	for range 3 {
		if err := <-outcomes; err != nil {
			refusals = append(refusals, err)
		}
	}
	if len(refusals) != 1 {
		t.Fatalf("%d refusals: %v", len(refusals), refusals)
	}
	wantRefusal(t, refusals[0], membership.ReasonLastNode, "is the only node that could serve")
	if members := a.list().Members(); len(members) != 1 {
		t.Errorf("the members are %+v", members)
	}
}

// A change whose outcome is not known in time, as that of a directory without a quorum, is not waited for, and
// neither are those behind it. None of them begins before the outcome is known, so that none is lost.
func TestRegistry_AChangeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		directory, nodes := testRegistries(t, "a")
		directory.give("a")
		a := nodes["a"]
		for _, name := range []string{"b", "c"} {
			if _, err := a.serve(t.Context(), rpcJoin, &joinRequest{Node: membership.Record{Name: name, Instance: "1"}}); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-a.wake:
		default:
		}
		writes := make(chan func(), 2)
		directory.late = writes
		for _, name := range []string{"b", "c"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := a.setDraining(ctx, name, true); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the drain of %s: %v", name, err)
			}
			cancel()
		}
		if len(writes) != 1 {
			t.Errorf("%d writes", len(writes))
		}
		drained := make(chan error, 1)
		go func() { drained <- a.setDraining(t.Context(), "c", true) }()
		synctest.Wait()
		if len(writes) != 1 {
			t.Errorf("%d writes before the outcome of the first is known", len(writes))
		}
		(<-writes)()
		(<-writes)()
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b", "c"} {
			if rec, _ := a.list().Node(name); !rec.Draining {
				t.Errorf("%s is not draining", name)
			}
		}
		if len(a.wake) != 1 {
			t.Error("the node does not look for the list that was written")
		}
	})
}

func TestRegistry_ThroughAnyMember(t *testing.T) {
	t.Parallel()
	directory, nodes := testRegistries(t, "a", "b", "c")
	join := func(by, name string) (*joinReply, error) {
		return sendJoin(t.Context(), &joinRequest{Node: membership.Record{Name: name, Instance: "1"}}, func(ctx context.Context, body []byte) ([]byte, error) {
			return nodes["a"].cfg.Calls.callAddr(ctx, by+":1", rpcJoin, body)
		})
	}
	if _, err := join("a", "b"); err == nil || !strings.Contains(err.Error(), errNoDirectory.Error()) {
		t.Fatalf("without an owner: %v", err)
	}
	directory.give("a")
	for _, name := range []string{"b", "c"} {
		reply, err := join("b", name) // which passes it on
		if err != nil || reply.Refusal != nil || reply.Cluster != "c" || reply.Shards != 16 {
			t.Fatalf("join by a member: %+v, %v", reply, err)
		}
		if err := nodes[name].adopt(reply.List); err != nil {
			t.Fatal(err)
		}
	}
	if rec, ok := nodes["c"].list().Node("a"); !ok || rec.Peer != "a:1" {
		t.Errorf("the owner did not vouch for itself: %+v", rec)
	}
	if err := nodes["c"].register(t.Context(), nodes["c"].cfg.Self()); err != nil {
		t.Fatal(err)
	}
	if rec, _ := nodes["a"].list().Node("c"); rec.Peer != "c:1" {
		t.Errorf("c registered as %+v", rec)
	}
	before := nodes["a"].list().Version
	if err := nodes["c"].register(t.Context(), nodes["c"].cfg.Self()); err != nil {
		t.Fatal(err)
	}
	if after := nodes["a"].list().Version; after != before {
		t.Error("saying the same again wrote the registry")
	}

	// The directory moves: its new owner has the same rows, and the old one writes no
	// more.
	directory.give("c")
	if err := nodes["c"].reload(); err != nil {
		t.Fatal(err)
	}
	if err := nodes["a"].setDraining(t.Context(), "b", true); !errors.Is(err, errNotOwner) {
		t.Errorf("on a former owner: %v", err)
	}
	if err := nodes["c"].setDraining(t.Context(), "b", true); err != nil {
		t.Fatal(err)
	}
	if rec, _ := nodes["c"].list().Node("b"); !rec.Draining {
		t.Error("b is not draining")
	}
	if report, err := storage.Verify(t.Context(), directory.store.State(), Schema()); err != nil || len(report.Problems) > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

func TestRegistry_RefusesOthers(t *testing.T) {
	t.Parallel()
	directory, nodes := testRegistries(t, "a")
	directory.give("a")
	tests := map[string]struct {
		kind    rpcKind
		request joinRequest
		reason  string
	}{
		"other cluster":       {rpcRegister, joinRequest{Cluster: "d", Node: membership.Record{Name: "b", Instance: "1"}}, membership.ReasonOtherCluster},
		"other cluster, join": {rpcJoin, joinRequest{Cluster: "d", Node: membership.Record{Name: "b", Instance: "1"}}, membership.ReasonOtherCluster},
		"no cluster":          {rpcRegister, joinRequest{Node: membership.Record{Name: "b", Instance: "1"}}, membership.ReasonUnknownNode},
		"other shards":        {rpcJoin, joinRequest{Shards: 5, Node: membership.Record{Name: "b", Instance: "1"}}, membership.ReasonOtherShards},
		"the owner's name":    {rpcJoin, joinRequest{Node: membership.Record{Name: "a", Instance: "2"}}, membership.ReasonNameTaken},
	}
	for name, test := range tests {
		reply, err := nodes["a"].serve(t.Context(), test.kind, &test.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if reply.Refusal == nil || reply.Refusal.Reason != test.reason {
			t.Errorf("%s: %+v", name, reply.Refusal)
		}
	}
	for name, rec := range map[string]membership.Record{
		"bad name":     {Name: "a/b", Instance: "1"},
		"no instance":  {Name: "b"},
		"long address": {Name: "b", Instance: "1", Peer: strings.Repeat("x", 300)},
	} {
		if _, err := nodes["a"].serve(t.Context(), rpcJoin, &joinRequest{Node: rec}); err == nil {
			t.Errorf("%s was let in", name)
		}
	}
}

func TestRegistry_KeepsTheNewestList(t *testing.T) {
	t.Parallel()
	_, nodes := testRegistries(t, "a")
	r := nodes["a"]
	_, changed := r.changes()
	newer := &membership.List{ListHead: membership.ListHead{Version: 5, HadThree: true}, Nodes: []membership.Record{{Name: "b", Instance: "1", Gossip: "b:2"}}}
	if err := r.adopt(newer); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody was told of the list")
	}
	if err := r.adopt(&membership.List{ListHead: membership.ListHead{Version: 4}}); err != nil {
		t.Fatal(err)
	}
	if r.list() != newer {
		t.Error("an old list was taken")
	}
	if err := r.adopt(&membership.List{ListHead: membership.ListHead{Version: 6}, Nodes: []membership.Record{{Name: "b", Instance: "1"}, {Name: "a", Instance: "1"}}}); err == nil {
		t.Error("a list out of order was taken")
	}
	again, err := newRegistry(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.list(); got.Version != 5 || !got.HadThree || len(got.Nodes) != 1 || got.Nodes[0].Gossip != "b:2" {
		t.Errorf("after a restart: %+v", got)
	}
}

// A node alone registers itself once it owns the directory. Its row survives a restart.
func TestRegistry_OfANodeAlone(t *testing.T) {
	t.Parallel()
	s := settings{fs: vfs.NewMem(), dir: "data", shards: 1}
	var version uint64
	for range 2 {
		n := start(t, s)
		self := membership.Record{Name: n.Name(), Instance: n.id.Instance, Peer: "127.0.0.1:7947", Newest: storage.FormatNewest, Format: storage.FormatNewest}
		r, err := newRegistry(registryConfig{
			Identity: n.identity.get, Self: func() membership.Record { return self }, Formats: n.formats, Directory: ownDirectory{n.Node},
			Owner: func() string { return "" }, Raft: n.store.Raft(), Now: time.Now, Logger: quiet(),
			Fatal: func(err error) { t.Error(err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r.run()
		testkit.Eventually(t, "it is in the registry", func() bool {
			rec, ok := r.list().Node(n.Name())
			return ok && sameNode(rec, self)
		})
		if err := r.register(t.Context(), self); err != nil {
			t.Fatal(err)
		}
		if version == 0 {
			version = r.list().Version
		}
		if got := r.list().Version; got != version {
			t.Errorf("a restart wrote the registry: version %d, then %d", version, got)
		}
		if report, err := storage.Verify(t.Context(), n.store.State(), Schema()); err != nil || len(report.Problems) > 0 {
			t.Errorf("verify: %+v, %v", report, err)
		}
		r.close()
		n.stop()
	}
}

// A node answers its port before it has opened its groups: until then it owns no directory, and requests
// to register are refused.
func TestRegistry_WhileTheNodeOpens(t *testing.T) {
	t.Parallel()
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	store := openStore(t, vfs.NewMem(), "data")
	n, err := New(Config{Store: store, Peer: peer, Gossip: "127.0.0.1:0", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(joinRequest{Cluster: n.id.Cluster, Node: membership.Record{Name: "b", Instance: "1", Peer: "b:1"}})
	if err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	asked, opened := make(chan struct{}), make(chan struct{})
	asking.Go(func() {
		once := sync.OnceFunc(func() { close(asked) })
		for open := false; !open; {
			select {
			case <-opened:
				open = true
			default:
			}
			if _, err := n.peering.registry.handleRegister(t.Context(), "b", body); !errors.Is(err, errNoDirectory) {
				t.Errorf("a request to register: %v", err)
			}
			once()
		}
	})
	<-asked
	if err := n.Open(t.Context()); err != nil {
		t.Error(err)
	}
	close(opened)
	asking.Wait()
	if err := errors.Join(n.Close(t.Context()), store.Close()); err != nil {
		t.Error(err)
	}
}

// changes returns the list and a channel that is closed when a newer one replaces it.
func (r *registry) changes() (*membership.List, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known, r.changed
}
