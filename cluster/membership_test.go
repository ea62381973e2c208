package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// grown starts a cluster of n nodes, n1 bootstrap it alone.
func grown(t *testing.T, n int, key []byte) []*testMember {
	t.Helper()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	nodes := []*testMember{newTestMember(t, testMemberConfig{name: "n1", key: key, directory: directory, wires: w}).mustRun(t)}
	for i := 2; i <= n; i++ {
		nodes = append(nodes, newTestMember(t, testMemberConfig{
			name: fmt.Sprintf("n%d", i), seeds: []string{nodes[0].gossip.addr}, key: key, directory: directory, wires: w,
		}).mustRun(t))
	}
	for _, s := range nodes {
		nodes[0].spread(t, nodes...)
		eventually(t, s.name+" sees all alive", func() bool {
			states := s.states()
			return len(states) == n && !slices.ContainsFunc(states, func(state string) bool { return !strings.HasSuffix(state, " alive") })
		})
	}
	return nodes
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
	eventually(t, s.name+" sees "+state, func() bool { return slices.Contains(s.states(), state) })
}

func TestMembership_JoinLeaveAndCrash(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 5, []byte("0123456789abcdef"))
	if id := nodes[4].bootstrap.identity(); id.Cluster != nodes[0].bootstrap.identity().Cluster || id.Shards != DefaultShards {
		t.Fatalf("the fifth node is %+v", id)
	}
	if !nodes[0].registry.list().HadThree {
		t.Error("the registry does not know that there were three nodes")
	}
	nodes[4].end(false)
	nodes[3].end(true)
	for _, s := range nodes[:3] {
		s.wantStates(t, "n5 left")
		s.wantStates(t, "n4 dead")
	}
	if addr, ok := nodes[0].gossip.resolve("n2"); !ok || addr != nodes[1].registry.cfg.Self().Peer {
		t.Errorf("n2 is at %q, %v", addr, ok)
	}
}

func TestMembership_SuspectWhileThePeerPortIsSilent(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 2, nil)
	nodes[0].gossip.cfg.Reachable = nil
	m := nodes[0].gossip
	answers := true
	probe := &gossip{cfg: m.cfg, times: m.times, state: m.state, observed: map[string]observation{}}
	probe.cfg.Reachable = func(string) bool { return answers }
	look := func() NodeState { return probe.status()[1].State }
	if got := look(); got != NodeAlive {
		t.Errorf("answers: %s", got)
	}
	answers = false
	if got := look(); got != NodeSuspect {
		t.Errorf("does not answer: %s", got)
	}
	probe.times.deadAfter = 0
	if got := look(); got != NodeDead {
		t.Errorf("has not answered for long: %s", got)
	}
	answers = true
	if got := look(); got != NodeAlive {
		t.Errorf("answers again: %s", got)
	}
}

func TestMembership_RestartAtAnotherPortIsFollowed(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 3, nil)
	old := nodes[2]
	old.end(true)
	// No seeds: it finds its cluster by the addresses it remembers.
	again := newTestMember(t, testMemberConfig{name: "n3", fs: old.fs, directory: old.directory, wires: old.wires}).mustRun(t)
	if again.gossip.addr == old.gossip.addr {
		t.Fatal("it took the same port")
	}
	if again.bootstrap.identity() != old.bootstrap.identity() {
		t.Error("it is another node now")
	}
	for _, s := range nodes[:2] {
		eventually(t, s.name+" knows the new port", func() bool {
			seen, ok := s.gossip.state.latest("n3", again.bootstrap.identity().Cluster)
			return ok && seen.state == NodeAlive && seen.addr == again.gossip.addr
		})
	}
	eventually(t, "the registry has the new address", func() bool {
		rec, _ := nodes[0].registry.list().node("n3")
		return rec.Gossip == again.gossip.addr
	})
	again.wantStates(t, "n1 alive")
}

func TestMembership_AreFoundAgainAfterACrash(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 2, nil)
	gossip := nodes[1].gossip.addr
	nodes[1].end(true)
	nodes[0].wantStates(t, "n2 dead")
	// It comes back knowing nobody: n1 keeps reaching for it.
	m, err := newGossip(gossipConfig{
		Bind: gossip, Self: nodes[1].gossip.state.self, Known: func() []record { return nil }, Logger: quiet(), tune: fastGossip,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.shutdown(); err != nil {
			t.Error(err)
		}
	}()
	nodes[0].wantStates(t, "n2 alive")
}

func TestMembership_RefusedWithAMessage(t *testing.T) {
	t.Parallel()
	key, other := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	tests := map[string]struct {
		change func(t *testing.T, first *testMember, cfg *testMemberConfig)
		reason string
		says   string
	}{
		"other gossip key": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.key = other },
			reason: refusedKey, says: "another --gossip-key",
		},
		"no gossip key": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.key = nil },
			reason: refusedKey, says: "another --gossip-key",
		},
		"name of a running node": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.name = "n1" },
			reason: refusedName, says: "--node-name",
		},
		"other shards": {
			change: func(_ *testing.T, _ *testMember, cfg *testMemberConfig) { cfg.shards = 4 },
			reason: refusedShards, says: "start it without --shards",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory, w := newMemoryDirectory(t), newFakeCalls()
			first := newTestMember(t, testMemberConfig{name: "n1", key: key, directory: directory, wires: w}).mustRun(t)
			cfg := testMemberConfig{name: "n2", seeds: []string{first.gossip.addr}, key: key, directory: directory, wires: w}
			test.change(t, first, &cfg)
			if cfg.name == "n1" { // its wires would take the other's place
				cfg.wires = newFakeCalls()
				cfg.wires.byAddr = w.byAddr
			}
			wantRefusal(t, newTestMember(t, cfg).tryRun(t), test.reason, test.says)
		})
	}
}

func TestMembership_WipedDirectoryUnderAnOldName(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 3, nil)
	nodes[2].end(true)
	nodes[0].wantStates(t, "n3 dead")
	wiped := testMemberConfig{name: "n3", seeds: []string{nodes[0].gossip.addr}, directory: nodes[0].directory, wires: nodes[0].wires}
	s := newTestMember(t, wiped)
	wantRefusal(t, s.tryRun(t), refusedName, "switchyard cluster remove n3")
	s.end(true)
	if err := nodes[0].registry.remove(t.Context(), "n3"); err != nil {
		t.Fatal(err)
	}
	newTestMember(t, wiped).mustRun(t)
	nodes[0].wantStates(t, "n3 alive")

	// The old directory turns up again.
	old := newTestMember(t, testMemberConfig{name: "n3", fs: nodes[2].fs, directory: nodes[0].directory, wires: nodes[0].wires}).mustRun(t)
	select {
	case err := <-old.fatal:
		wantRefusal(t, err, refusedName, "empty data directory")
	case <-time.After(20 * time.Second):
		t.Fatal("the old directory was let in")
	}
}

func TestMembership_DataOfAnotherCluster(t *testing.T) {
	t.Parallel()
	one := newTestMember(t, testMemberConfig{name: "n1", directory: newMemoryDirectory(t), wires: newFakeCalls()}).mustRun(t)
	two := newTestMember(t, testMemberConfig{name: "n2", directory: newMemoryDirectory(t), wires: newFakeCalls()}).mustRun(t)
	two.end(true)
	again := newTestMember(t, testMemberConfig{name: "n2", fs: two.fs, seeds: []string{one.gossip.addr}, directory: two.directory, wires: two.wires}).mustRun(t)
	wantRefusal(t, again.bootstrap.check(brief(t)), refusedCluster, "correct --join")
	if live := one.gossip.alive(); len(live) != 0 {
		t.Errorf("the clusters mixed: %+v", live)
	}
}

func TestMembership_JoinByANameWithSeveralAddresses(t *testing.T) {
	t.Parallel()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	first := newTestMember(t, testMemberConfig{name: "n1", directory: directory, wires: w}).mustRun(t)
	_, port, _ := strings.Cut(first.gossip.addr, ":")
	second := newTestMember(t, testMemberConfig{name: "n2", seeds: []string{"localhost:" + port}, directory: directory, wires: w})
	second.mustRun(t)
	if got := second.gossip.contact(t.Context(), []string{second.gossip.addr}); len(got) != 0 {
		t.Errorf("it reached for itself: %+v", got)
	}
}

func TestMembership_BootstrapTogether(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			directory, w := newMemoryDirectory(t), newFakeCalls()
			// Each is told of the first, which comes up last or first.
			hub := newTestMember(t, testMemberConfig{name: fmt.Sprintf("n%d", round%3), seeds: []string{"127.0.0.1:1"}, expect: 3, directory: directory, wires: w})
			nodes := []*testMember{hub}
			for i := range 3 {
				if i != round%3 {
					nodes = append(nodes, newTestMember(t, testMemberConfig{
						name: fmt.Sprintf("n%d", i), seeds: []string{hub.gossip.addr}, expect: 3, directory: directory, wires: w,
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

func TestAdvertised(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ advertise, bound, want string }{
		{"", "127.0.0.1:7947", "127.0.0.1:7947"},
		{"", "[::1]:7947", "[::1]:7947"},
		{"n1.yard", "0.0.0.0:7947", "n1.yard:7947"},
		{"10.0.0.7", "127.0.0.1:7947", "10.0.0.7:7947"},
	} {
		bound, err := net.ResolveTCPAddr("tcp", test.bound)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := advertised(test.advertise, bound); err != nil || got != test.want {
			t.Errorf("%q bound to %s: %q, %v; want %s", test.advertise, test.bound, got, err, test.want)
		}
	}
}

func TestMembership_RefusesSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for says, cfg := range map[string]gossipConfig{
		"is not host:port": {Bind: "nowhere"},
		"has no port":      {Bind: "127.0.0.1:http"},
		"shorten --zone":   {Bind: "127.0.0.1:0", Self: nodeMeta{Zone: strings.Repeat("z", 500)}},
	} {
		cfg.Logger = quiet()
		if _, err := newGossip(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
