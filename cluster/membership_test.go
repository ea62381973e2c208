package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/cluster/gossip"
	"switchyard/cluster/membership"
	"switchyard/internal/testkit"
)

// grown starts a cluster of n nodes, n1 bootstrap it alone.
func grown(t *testing.T, n int, keys [][]byte) []*testMember {
	t.Helper()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	nodes := []*testMember{newTestMember(t, testMemberConfig{name: "n1", keys: keys, directory: directory, wires: w}).mustRun(t)}
	for i := 2; i <= n; i++ {
		nodes = append(nodes, newTestMember(t, testMemberConfig{
			name: fmt.Sprintf("n%d", i), seeds: []string{nodes[0].gossip.Addr}, keys: keys, directory: directory, wires: w,
		}).mustRun(t))
	}
	for _, s := range nodes {
		nodes[0].spread(t, nodes...)
		s.seesAlive(t, n)
	}
	return nodes
}

// seesAlive waits until a node sees so many nodes alive, itself among them.
func (s *testMember) seesAlive(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, s.name+" sees all alive", func() bool {
		states := s.states()
		return len(states) == n && !slices.ContainsFunc(states, func(state string) bool { return !strings.HasSuffix(state, " alive") })
	})
}

// spread hands the owner's registry to the others, as reports do.
func (s *testMember) spread(t *testing.T, to ...*testMember) {
	t.Helper()
	for _, other := range to {
		if err := other.registry.adopt(s.registry.list()); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *testMember) wantStates(t *testing.T, state string) {
	t.Helper()
	testkit.Eventually(t, s.name+" sees "+state, func() bool { return slices.Contains(s.states(), state) })
}

func TestMembership_JoinLeaveAndCrash(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 5, [][]byte{[]byte("0123456789abcdef")})
	if id := nodes[4].bootstrap.identity(); id.Cluster != nodes[0].bootstrap.identity().Cluster || id.Shards != DefaultShards {
		t.Fatalf("the fifth node is %+v", id)
	}
	if !nodes[0].registry.list().HadThree {
		t.Error("the registry does not know that there were three nodes")
	}
	nodes[4].seesAlive(t, 5) // the fifth node takes leave of those that it sees
	nodes[4].end(false)
	nodes[3].end(true)
	for _, s := range nodes[:3] {
		s.wantStates(t, "n5 left")
		s.wantStates(t, "n4 dead")
	}
	if addr, ok := nodes[0].gossip.Resolve("n2"); !ok || addr != nodes[1].registry.cfg.Self().Peer {
		t.Errorf("n2 is at %q, %v", addr, ok)
	}
}

func TestMembership_RestartAtAnotherPortIsFollowed(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 3, nil)
	old := nodes[2]
	old.end(true)
	// No seeds: it finds its cluster by the addresses it remembers.
	again := newTestMember(t, testMemberConfig{name: "n3", fs: old.fs, directory: old.directory, wires: old.wires}).mustRun(t)
	if again.gossip.Addr == old.gossip.Addr {
		t.Fatal("it took the same port")
	}
	if now, before := again.bootstrap.identity(), old.bootstrap.identity(); now.Instance != before.Instance || now.Cluster != before.Cluster {
		t.Error("it is another node now")
	}
	for _, s := range nodes[:2] {
		testkit.Eventually(t, s.name+" knows the new port", func() bool {
			return slices.ContainsFunc(s.gossip.Alive(), func(seen gossip.Node) bool {
				return seen.Node == "n3" && seen.Addr == again.gossip.Addr
			})
		})
	}
	testkit.Eventually(t, "the registry has the new address", func() bool {
		rec, _ := nodes[0].registry.list().Node("n3")
		return rec.Gossip == again.gossip.Addr
	})
	again.wantStates(t, "n1 alive")
}

func TestMembership_AreFoundAgainAfterACrash(t *testing.T) {
	t.Parallel()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	first := newTestMember(t, testMemberConfig{name: "n1", directory: directory, wires: w}).mustRun(t)
	// On an address that no other test uses, which could take the port before the restart.
	second := newTestMember(t, testMemberConfig{name: "n2", gossip: "127.0.0.2:0", seeds: []string{first.gossip.Addr}, directory: directory, wires: w}).mustRun(t)
	first.spread(t, second)
	first.wantStates(t, "n2 alive")
	second.end(true)
	first.wantStates(t, "n2 dead")
	// It restarts without a list of members, and n1 connects to it.
	m, err := gossip.New(gossip.Config{
		Bind: second.gossip.Addr, Self: second.meta, Known: func() []membership.Record { return nil }, Logger: quiet(), Tune: fastGossip,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Shutdown(); err != nil {
			t.Error(err)
		}
	}()
	first.wantStates(t, "n2 alive")
}

func TestMembership_RefusedWithAMessage(t *testing.T) {
	t.Parallel()
	keys, other := [][]byte{[]byte("0123456789abcdef")}, [][]byte{[]byte("fedcba9876543210")}
	tests := map[string]struct {
		change func(t *testing.T, first *testMember, cfg *testMemberConfig)
		reason string
		says   string
	}{
		"other gossip key": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.keys = other },
			reason: membership.ReasonOtherGossipKey, says: "another --gossip-key",
		},
		"no gossip key": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.keys = nil },
			reason: membership.ReasonOtherGossipKey, says: "another --gossip-key",
		},
		"name of a running node": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.name = "n1" },
			reason: membership.ReasonNameTaken, says: "--node-name",
		},
		"other shards": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.shards = 4 },
			reason: membership.ReasonOtherShards, says: "start it without --shards",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory, w := newMemoryDirectory(t), newFakeCalls()
			first := newTestMember(t, testMemberConfig{name: "n1", keys: keys, directory: directory, wires: w}).mustRun(t)
			cfg := testMemberConfig{name: "n2", seeds: []string{first.gossip.Addr}, keys: keys, directory: directory, wires: w}
			test.change(t, first, &cfg)
			if cfg.name == "n1" { // its wires would replace the other's
				cfg.wires = newFakeCalls()
				cfg.wires.byAddr = w.byAddr
			}
			wantRefusal(t, newTestMember(t, cfg).tryRun(t), test.reason, test.says)
		})
	}
}

// While the key is replaced, a node with the old key first and one with the new key first find each
// other.
func TestMembership_KeyIsReplaced(t *testing.T) {
	t.Parallel()
	before, after := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	directory, w := newMemoryDirectory(t), newFakeCalls()
	first := newTestMember(t, testMemberConfig{name: "n1", keys: [][]byte{before, after}, directory: directory, wires: w}).mustRun(t)
	second := newTestMember(t, testMemberConfig{name: "n2", seeds: []string{first.gossip.Addr}, keys: [][]byte{after, before}, directory: directory, wires: w}).mustRun(t)
	first.spread(t, second)
	for _, m := range []*testMember{first, second} {
		m.wantStates(t, "n1 alive")
		m.wantStates(t, "n2 alive")
	}
}

func TestMembership_WipedDirectoryUnderAnOldName(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 3, nil)
	nodes[2].end(true)
	nodes[0].wantStates(t, "n3 dead")
	wiped := testMemberConfig{name: "n3", seeds: []string{nodes[0].gossip.Addr}, directory: nodes[0].directory, wires: nodes[0].wires}
	s := newTestMember(t, wiped)
	wantRefusal(t, s.tryRun(t), membership.ReasonNameTaken, "switchyard cluster remove n3")
	s.end(true)
	if err := nodes[0].registry.remove(t.Context(), "n3"); err != nil {
		t.Fatal(err)
	}
	// It waits while the groups may need the vote of the old one.
	again := newTestMember(t, wiped)
	waits := again.bootstrap.cfg.Gossip
	if reason, err := again.bootstrap.join(brief(t), waits.Alive()); err != nil || again.bootstrap.identity().joined() {
		t.Fatalf("%q, %v", reason, err)
	}
	if err := nodes[0].registry.release(t.Context(), []string{"n3"}); err != nil {
		t.Fatal(err)
	}
	again.mustRun(t)
	nodes[0].wantStates(t, "n3 alive")

	// The old data directory is started again.
	old := newTestMember(t, testMemberConfig{name: "n3", fs: nodes[2].fs, directory: nodes[0].directory, wires: nodes[0].wires}).mustRun(t)
	select {
	case err := <-old.fatal:
		wantRefusal(t, err, membership.ReasonNameTaken, "empty data directory")
	case <-time.After(20 * time.Second):
		t.Fatal("the old directory was let in")
	}
}

func TestMembership_DataOfAnotherCluster(t *testing.T) {
	t.Parallel()
	one := newTestMember(t, testMemberConfig{name: "n1", directory: newMemoryDirectory(t), wires: newFakeCalls()}).mustRun(t)
	two := newTestMember(t, testMemberConfig{name: "n2", directory: newMemoryDirectory(t), wires: newFakeCalls()}).mustRun(t)
	two.end(true)
	again := newTestMember(t, testMemberConfig{name: "n2", fs: two.fs, seeds: []string{one.gossip.Addr}, directory: two.directory, wires: two.wires}).mustRun(t)
	wantRefusal(t, again.bootstrap.check(brief(t)), membership.ReasonOtherCluster, "correct --join")
	if live := one.gossip.Alive(); len(live) != 0 {
		t.Errorf("the clusters mixed: %+v", live)
	}
}

func TestMembership_JoinByANameWithSeveralAddresses(t *testing.T) {
	t.Parallel()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	first := newTestMember(t, testMemberConfig{name: "n1", directory: directory, wires: w}).mustRun(t)
	_, port, _ := strings.Cut(first.gossip.Addr, ":")
	second := newTestMember(t, testMemberConfig{name: "n2", seeds: []string{"localhost:" + port}, directory: directory, wires: w})
	second.mustRun(t)
	if got := second.gossip.Contact(t.Context(), []string{second.gossip.Addr}); len(got) != 0 {
		t.Errorf("it reached for itself: %+v", got)
	}
}

func TestMembership_BootstrapTogether(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			directory, w := newMemoryDirectory(t), newFakeCalls()
			// Each has the address of the first node, which starts last or first.
			hub := newTestMember(t, testMemberConfig{name: fmt.Sprintf("n%d", round%3), seeds: []string{"127.0.0.1:1"}, expect: 3, directory: directory, wires: w})
			nodes := []*testMember{hub}
			for i := range 3 {
				if i != round%3 {
					nodes = append(nodes, newTestMember(t, testMemberConfig{
						name: fmt.Sprintf("n%d", i), seeds: []string{hub.gossip.Addr}, expect: 3, directory: directory, wires: w,
					}))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			errs := make(chan error, len(nodes))
			for _, s := range nodes {
				go func() { errs <- s.run(ctx) }()
			}
			for range nodes {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range nodes {
				if got, want := s.bootstrap.identity().Cluster, hub.bootstrap.identity().Cluster; got != want {
					t.Errorf("%s is of cluster %s, %s of %s", s.name, got, hub.name, want)
				}
			}
		})
	}
}
