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

// grown starts a cluster of n nodes, n1 forming it alone.
func grown(t *testing.T, n int, key []byte) []*station {
	t.Helper()
	directory, w := newMemoryDirectory(t), newWires()
	nodes := []*station{newStation(t, stationConfig{name: "n1", key: key, directory: directory, wires: w}).mustRun(t)}
	for i := 2; i <= n; i++ {
		nodes = append(nodes, newStation(t, stationConfig{
			name: fmt.Sprintf("n%d", i), seeds: []string{nodes[0].members.gossip}, key: key, directory: directory, wires: w,
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
func (s *station) spread(t *testing.T, to ...*station) {
	t.Helper()
	for _, other := range to {
		if err := other.registry.adopt(s.registry.list()); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *station) stands(t *testing.T, state string) {
	t.Helper()
	eventually(t, s.name+" sees "+state, func() bool { return slices.Contains(s.states(), state) })
}

func TestMembers_JoinLeaveAndCrash(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 5, []byte("0123456789abcdef"))
	if id := nodes[4].forming.identity(); id.Cluster != nodes[0].forming.identity().Cluster || id.Shards != DefaultShards {
		t.Fatalf("the fifth node is %+v", id)
	}
	if !nodes[0].registry.list().Three {
		t.Error("the registry does not know that there were three nodes")
	}
	nodes[4].end(false)
	nodes[3].end(true)
	for _, s := range nodes[:3] {
		s.stands(t, "n5 left")
		s.stands(t, "n4 dead")
	}
	if addr, ok := nodes[0].members.resolve("n2"); !ok || addr != nodes[1].registry.cfg.Self().Peer {
		t.Errorf("n2 is at %q, %v", addr, ok)
	}
}

func TestMembers_SuspectWhileThePeerPortIsSilent(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 2, nil)
	nodes[0].members.cfg.Reachable = nil
	m := nodes[0].members
	answers := true
	probe := &members{cfg: m.cfg, times: m.times, heard: m.heard, standing: map[string]standing{}}
	probe.cfg.Reachable = func(string) bool { return answers }
	look := func() NodeState { return probe.status()[1].State }
	if got := look(); got != NodeAlive {
		t.Errorf("answers: %s", got)
	}
	answers = false
	if got := look(); got != NodeSuspect {
		t.Errorf("does not answer: %s", got)
	}
	probe.times.suspect = 0
	if got := look(); got != NodeDead {
		t.Errorf("has not answered for long: %s", got)
	}
	answers = true
	if got := look(); got != NodeAlive {
		t.Errorf("answers again: %s", got)
	}
}

func TestMembers_RestartAtAnotherPortIsFollowed(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 3, nil)
	old := nodes[2]
	old.end(true)
	// No seeds: it finds its cluster by the addresses it remembers.
	again := newStation(t, stationConfig{name: "n3", fs: old.fs, directory: old.directory, wires: old.wires}).mustRun(t)
	if again.members.gossip == old.members.gossip {
		t.Fatal("it took the same port")
	}
	if again.forming.identity() != old.forming.identity() {
		t.Error("it is another node now")
	}
	for _, s := range nodes[:2] {
		eventually(t, s.name+" knows the new port", func() bool {
			seen, ok := s.members.heard.node("n3", again.forming.identity().Cluster)
			return ok && seen.state == NodeAlive && seen.gossip == again.members.gossip
		})
	}
	eventually(t, "the registry has the new address", func() bool {
		rec, _ := nodes[0].registry.list().node("n3")
		return rec.Gossip == again.members.gossip
	})
	again.stands(t, "n1 alive")
}

func TestMembers_AreFoundAgainAfterACrash(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 2, nil)
	gossip := nodes[1].members.gossip
	nodes[1].end(true)
	nodes[0].stands(t, "n2 dead")
	// It comes back knowing nobody: n1 keeps reaching for it.
	m, err := newMembers(membersConfig{
		Bind: gossip, Self: nodes[1].members.heard.self, Known: func() []record { return nil }, Logger: quiet(), tune: hurry,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.crash(); err != nil {
			t.Error(err)
		}
	}()
	nodes[0].stands(t, "n2 alive")
}

func TestMembers_RefusedWithAMessage(t *testing.T) {
	t.Parallel()
	key, other := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	tests := map[string]struct {
		change func(t *testing.T, first *station, cfg *stationConfig)
		reason string
		says   string
	}{
		"other gossip key": {
			change: func(_ *testing.T, _ *station, cfg *stationConfig) { cfg.key = other },
			reason: refusedKey, says: "another --gossip-key",
		},
		"no gossip key": {
			change: func(_ *testing.T, _ *station, cfg *stationConfig) { cfg.key = nil },
			reason: refusedKey, says: "another --gossip-key",
		},
		"name of a running node": {
			change: func(_ *testing.T, _ *station, cfg *stationConfig) { cfg.name = "n1" },
			reason: refusedName, says: "--node-name",
		},
		"other shards": {
			change: func(_ *testing.T, _ *station, cfg *stationConfig) { cfg.shards = 4 },
			reason: refusedShards, says: "start it without --shards",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory, w := newMemoryDirectory(t), newWires()
			first := newStation(t, stationConfig{name: "n1", key: key, directory: directory, wires: w}).mustRun(t)
			cfg := stationConfig{name: "n2", seeds: []string{first.members.gossip}, key: key, directory: directory, wires: w}
			test.change(t, first, &cfg)
			if cfg.name == "n1" { // its wires would take the other's place
				cfg.wires = newWires()
				cfg.wires.byAddr = w.byAddr
			}
			wantRefusal(t, newStation(t, cfg).tryRun(t), test.reason, test.says)
		})
	}
}

func TestMembers_WipedDirectoryUnderAnOldName(t *testing.T) {
	t.Parallel()
	nodes := grown(t, 3, nil)
	nodes[2].end(true)
	nodes[0].stands(t, "n3 dead")
	wiped := stationConfig{name: "n3", seeds: []string{nodes[0].members.gossip}, directory: nodes[0].directory, wires: nodes[0].wires}
	s := newStation(t, wiped)
	wantRefusal(t, s.tryRun(t), refusedName, "switchyard cluster remove n3")
	s.end(true)
	if err := nodes[0].registry.remove(t.Context(), "n3"); err != nil {
		t.Fatal(err)
	}
	newStation(t, wiped).mustRun(t)
	nodes[0].stands(t, "n3 alive")

	// The old directory turns up again.
	old := newStation(t, stationConfig{name: "n3", fs: nodes[2].fs, directory: nodes[0].directory, wires: nodes[0].wires}).mustRun(t)
	select {
	case err := <-old.fatal:
		wantRefusal(t, err, refusedName, "empty data directory")
	case <-time.After(20 * time.Second):
		t.Fatal("the old directory was let in")
	}
}

func TestMembers_DataOfAnotherCluster(t *testing.T) {
	t.Parallel()
	one := newStation(t, stationConfig{name: "n1", directory: newMemoryDirectory(t), wires: newWires()}).mustRun(t)
	two := newStation(t, stationConfig{name: "n2", directory: newMemoryDirectory(t), wires: newWires()}).mustRun(t)
	two.end(true)
	again := newStation(t, stationConfig{name: "n2", fs: two.fs, seeds: []string{one.members.gossip}, directory: two.directory, wires: two.wires}).mustRun(t)
	wantRefusal(t, again.forming.check(brief(t)), refusedCluster, "correct --join")
	if live := one.members.live(); len(live) != 0 {
		t.Errorf("the clusters mixed: %+v", live)
	}
}

func TestMembers_JoinByANameWithSeveralAddresses(t *testing.T) {
	t.Parallel()
	directory, w := newMemoryDirectory(t), newWires()
	first := newStation(t, stationConfig{name: "n1", directory: directory, wires: w}).mustRun(t)
	_, port, _ := strings.Cut(first.members.gossip, ":")
	second := newStation(t, stationConfig{name: "n2", seeds: []string{"localhost:" + port}, directory: directory, wires: w})
	second.mustRun(t)
	if got := second.members.contact(t.Context(), []string{second.members.gossip}); len(got) != 0 {
		t.Errorf("it reached for itself: %+v", got)
	}
}

func TestMembers_BootstrapTogether(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			directory, w := newMemoryDirectory(t), newWires()
			// Each is told of the first, which comes up last or first.
			hub := newStation(t, stationConfig{name: fmt.Sprintf("n%d", round%3), seeds: []string{"127.0.0.1:1"}, expect: 3, directory: directory, wires: w})
			nodes := []*station{hub}
			for i := range 3 {
				if i != round%3 {
					nodes = append(nodes, newStation(t, stationConfig{
						name: fmt.Sprintf("n%d", i), seeds: []string{hub.members.gossip}, expect: 3, directory: directory, wires: w,
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
				if got, want := s.forming.identity().Cluster, hub.forming.identity().Cluster; got != want {
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

func TestMembers_RefusesSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for says, cfg := range map[string]membersConfig{
		"is not host:port": {Bind: "nowhere"},
		"has no port":      {Bind: "127.0.0.1:http"},
		"shorten --zone":   {Bind: "127.0.0.1:0", Self: card{Zone: strings.Repeat("z", 500)}},
	} {
		cfg.Logger = quiet()
		if _, err := newMembers(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
