package gossip

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"switchyard/cluster/membership"
)

func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newTestGossip(t *testing.T, name string, reachable func(string) bool) *Gossip {
	t.Helper()
	m, err := New(Config{
		Bind: "127.0.0.1:0", Self: Meta{Node: name, Instance: name, Cluster: "c"}, Logger: quietLogger(), Reachable: reachable,
		Known: func() []membership.Record { return []membership.Record{{Name: "a"}, {Name: "b"}} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestStatus_SuspectWhileThePeerPortIsSilent(t *testing.T) {
	t.Parallel()
	answers := true
	a := newTestGossip(t, "a", func(string) bool { return answers })
	b := newTestGossip(t, "b", nil)
	if met := a.Contact(t.Context(), []string{b.Addr}); len(met) != 1 || met[0].Outcome != ContactOK {
		t.Fatalf("contacts %+v", met)
	}
	look := func() membership.NodeState { return a.Status()[1].State }
	if got := look(); got != membership.NodeAlive {
		t.Errorf("answers: %s", got)
	}
	answers = false
	if got := look(); got != membership.NodeSuspect {
		t.Errorf("does not answer: %s", got)
	}
	a.times.deadAfter = 0
	if got := look(); got != membership.NodeDead {
		t.Errorf("has not answered for long: %s", got)
	}
	answers = true
	if got := look(); got != membership.NodeAlive {
		t.Errorf("answers again: %s", got)
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
		if got, err := AdvertisedAddr(test.advertise, bound); err != nil || got != test.want {
			t.Errorf("%q bound to %s: %q, %v; want %s", test.advertise, test.bound, got, err, test.want)
		}
	}
}

func TestNew_RefusesSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for says, cfg := range map[string]Config{
		"is not host:port": {Bind: "nowhere"},
		"has no port":      {Bind: "127.0.0.1:http"},
		"shorten --zone":   {Bind: "127.0.0.1:0", Self: Meta{Zone: strings.Repeat("z", 500)}},
	} {
		cfg.Logger = quietLogger()
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
