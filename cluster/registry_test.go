package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

func wantRefusal(t *testing.T, err error, reason, says string) {
	t.Helper()
	var refused *permanentError
	if !errors.As(err, &refused) {
		t.Fatalf("not refused: %v", err)
	}
	if refused.Reason != reason || !strings.Contains(err.Error(), says) {
		t.Errorf("refused for %s: %v; want %s, saying %q", refused.Reason, err, reason, says)
	}
}

// TestNodeList_Rules: what comes of a request, given how the name stands.
func TestNodeList_Rules(t *testing.T) {
	t.Parallel()
	yes := func(string) bool { return true }
	member := record{Name: "a", Instance: "1", Peer: "old:1", FirstSeen: time.Unix(1, 0).UTC()}
	draining, removed := member, member
	draining.Draining, removed.Removed = true, true
	now := time.Unix(9, 0).UTC()
	moved := func(instance string) record { return record{Name: "a", Instance: instance, Peer: "new:1"} }
	tests := map[string]struct {
		have   []record
		around ruleInput
		do     func(*nodeList, ruleInput) error
		want   record // of "a"
		reason string // of the refusal
		fails  string // of another error
	}{
		"join, new name":           {do: joins(moved("1")), want: record{Name: "a", Instance: "1", Peer: "new:1", FirstSeen: now}},
		"join again":               {have: []record{member}, do: joins(moved("1")), want: record{Name: "a", Instance: "1", Peer: "new:1", FirstSeen: member.FirstSeen}},
		"join, name in use":        {have: []record{member}, around: ruleInput{isReachable: yes}, do: joins(moved("2")), want: member, reason: refusedName},
		"join, wiped":              {have: []record{member}, do: joins(moved("2")), want: member, reason: refusedName},
		"join, removed itself":     {have: []record{removed}, do: joins(moved("1")), want: removed, reason: refusedRemoved},
		"join, name free again":    {have: []record{removed}, do: joins(moved("2")), want: record{Name: "a", Instance: "2", Peer: "new:1", FirstSeen: now}},
		"join, name not yet free":  {have: []record{removed}, around: ruleInput{isGroupMember: yes}, do: joins(moved("2")), want: removed, fails: "still being replaced"},
		"register moved":           {have: []record{draining}, do: registers(moved("1")), want: record{Name: "a", Instance: "1", Peer: "new:1", Draining: true, FirstSeen: member.FirstSeen}},
		"register unknown":         {do: registers(moved("1")), reason: refusedUnknown},
		"register other instance":  {have: []record{member}, do: registers(moved("2")), want: member, reason: refusedName},
		"register removed":         {have: []record{removed}, do: registers(moved("1")), want: removed, reason: refusedRemoved},
		"register taken over":      {have: []record{{Name: "a", Instance: "2", Removed: true}}, do: registers(moved("1")), want: record{Name: "a", Instance: "2", Removed: true}, reason: refusedName},
		"drain":                    {have: []record{member}, do: func(r *nodeList, _ ruleInput) error { return r.setDraining("a", true) }, want: draining},
		"undrain":                  {have: []record{draining}, do: func(r *nodeList, _ ruleInput) error { return r.setDraining("a", false) }, want: member},
		"drain a removed one":      {have: []record{removed}, do: func(r *nodeList, _ ruleInput) error { return r.setDraining("a", true) }, want: removed, fails: `no node named "a"`},
		"remove a draining one":    {have: []record{draining}, do: func(r *nodeList, _ ruleInput) error { return r.remove("a") }, want: removed},
		"remove nobody":            {do: func(r *nodeList, _ ruleInput) error { return r.remove("a") }, fails: `no node named "a"`},
		"remove one removed again": {have: []record{removed}, do: func(r *nodeList, _ ruleInput) error { return r.remove("a") }, want: removed, fails: `no node named "a"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.around.now = now
			r := &nodeList{Nodes: test.have}
			err := test.do(r, test.around)
			switch {
			case test.reason != "":
				wantRefusal(t, err, test.reason, `"a"`)
			case test.fails != "":
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%v, want %q", err, test.fails)
				}
			case err != nil:
				t.Error(err)
			}
			if got, _ := r.node("a"); got != test.want {
				t.Errorf("the record is\n%+v, want\n%+v", got, test.want)
			}
		})
	}
}

func joins(rec record) func(*nodeList, ruleInput) error {
	return func(r *nodeList, input ruleInput) error { return r.join(rec, input) }
}

func registers(rec record) func(*nodeList, ruleInput) error {
	return func(r *nodeList, _ ruleInput) error { return r.register(rec) }
}

func TestNodeList_ThreeOnceIsThreeForGood(t *testing.T) {
	t.Parallel()
	r := &nodeList{}
	join := func(name string) {
		t.Helper()
		if err := r.join(record{Name: name, Instance: name}, ruleInput{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if err := r.remove(name); err != nil {
			t.Fatal(err)
		}
	}
	join("a")
	join("b")
	remove("b")
	join("c")
	if r.HadThree {
		t.Fatal("a removed node counts")
	}
	join("d")
	remove("c")
	remove("d")
	if !r.HadThree {
		t.Fatal("there were three")
	}
	for i := range 2 * keptRemoved {
		name := fmt.Sprintf("m%d", i)
		join(name)
		remove(name)
	}
	if len(r.Nodes) != 1+keptRemoved {
		t.Errorf("%d rows", len(r.Nodes))
	}
}

// testRegistries are registries of several nodes over one directory, without gossip.
func testRegistries(t *testing.T, names ...string) (*memoryDirectory, map[string]*registry) {
	t.Helper()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	out := map[string]*registry{}
	for _, name := range names {
		store := openStore(t, vfs.NewMem(), "data")
		r, err := newRegistry(registryConfig{
			Identity:  func() identity { return identity{Cluster: "c", Node: name, Shards: 16} },
			Self:      func() record { return record{Name: name, Instance: "1", Peer: name + ":1"} },
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

func TestRegistry_ThroughAnyMember(t *testing.T) {
	t.Parallel()
	directory, nodes := testRegistries(t, "a", "b", "c")
	join := func(by, name string) (*joinReply, error) {
		return sendJoin(t.Context(), &joinRequest{Node: record{Name: name, Instance: "1"}}, func(ctx context.Context, body []byte) ([]byte, error) {
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
	if rec, ok := nodes["c"].list().node("a"); !ok || rec.Peer != "a:1" {
		t.Errorf("the owner did not vouch for itself: %+v", rec)
	}
	if err := nodes["c"].register(t.Context(), nodes["c"].cfg.Self()); err != nil {
		t.Fatal(err)
	}
	if rec, _ := nodes["a"].list().node("c"); rec.Peer != "c:1" {
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
	if rec, _ := nodes["c"].list().node("b"); !rec.Draining {
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
		"other cluster":       {rpcRegister, joinRequest{Cluster: "d", Node: record{Name: "b", Instance: "1"}}, refusedCluster},
		"other cluster, join": {rpcJoin, joinRequest{Cluster: "d", Node: record{Name: "b", Instance: "1"}}, refusedCluster},
		"no cluster":          {rpcRegister, joinRequest{Node: record{Name: "b", Instance: "1"}}, refusedUnknown},
		"other shards":        {rpcJoin, joinRequest{Shards: 5, Node: record{Name: "b", Instance: "1"}}, refusedShards},
		"the owner's name":    {rpcJoin, joinRequest{Node: record{Name: "a", Instance: "2"}}, refusedName},
	}
	for name, test := range tests {
		reply, err := nodes["a"].serve(t.Context(), test.kind, &test.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if reply.Refusal == nil || reply.Refusal.Reason != test.reason {
			t.Errorf("%s: %+v", name, reply.Refusal)
		}
	}
	for name, rec := range map[string]record{
		"bad name":     {Name: "a/b", Instance: "1"},
		"no instance":  {Name: "b"},
		"long address": {Name: "b", Instance: "1", Peer: strings.Repeat("x", maxAddress+1)},
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
	newer := &nodeList{nodeListHead: nodeListHead{Version: 5, HadThree: true}, Nodes: []record{{Name: "b", Instance: "1", Gossip: "b:2"}}}
	if err := r.adopt(newer); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody was told of the list")
	}
	if err := r.adopt(&nodeList{nodeListHead: nodeListHead{Version: 4}}); err != nil {
		t.Fatal(err)
	}
	if r.list() != newer {
		t.Error("an old list was taken")
	}
	if err := r.adopt(&nodeList{nodeListHead: nodeListHead{Version: 6}, Nodes: []record{{Name: "b", Instance: "1"}, {Name: "a", Instance: "1"}}}); err == nil {
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

// TestRegistry_OfANodeAlone: a node registers itself when it has the directory,
// and its row outlives it.
func TestRegistry_OfANodeAlone(t *testing.T) {
	t.Parallel()
	s := settings{fs: vfs.NewMem(), dir: "data", shards: 1}
	var version uint64
	for range 2 {
		n := start(t, s)
		self := record{Name: n.Name(), Instance: n.id.Instance, Peer: "127.0.0.1:7947"}
		r, err := newRegistry(registryConfig{
			Identity: func() identity { return n.id }, Self: func() record { return self }, Directory: ownDirectory{n.Node},
			Owner: func() string { return "" }, Raft: n.store.Raft(), Now: time.Now, Logger: quiet(),
			Fatal: func(err error) { t.Error(err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r.run()
		eventually(t, "it is in the registry", func() bool {
			rec, ok := r.list().node(n.Name())
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
