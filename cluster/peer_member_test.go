package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/membership"
	"switchyard/internal/testkit"
)

// listOf is the node list of a peer port, which a test replaces.
type listOf struct {
	atomic.Pointer[membership.List]
}

func (l *listOf) set(version uint64, nodes ...membership.Record) {
	l.Store(&membership.List{ListHead: membership.ListHead{Version: version}, Nodes: nodes})
}

func (l *listOf) config() peerConfig {
	return peerConfig{Keys: [][]byte{nil}, Members: l.Load}
}

// memberRecord is the record of a peerNetwork's node.
func memberRecord(name string) membership.Record {
	return membership.Record{Name: name, Instance: name + "-instance"}
}

// A node that was removed while it was cut off is refused connections of all kinds. By control requests
// it may ask whether it is a member, and nothing else.
func TestPeerPort_RefusesRemovedNodes(t *testing.T) {
	t.Parallel()
	member, other, released := memberRecord("a"), memberRecord("a"), memberRecord("a")
	other.Instance, released.Removed, released.Released = "another", true, true
	for name, test := range map[string]struct {
		rec     membership.Record
		known   uint64 // version of the node's own list; that of the other node is 5
		refused bool
	}{
		"a member":                    {member, 4, false},
		"released":                    {released, 4, true},
		"its name is another node's":  {other, 4, true},
		"an older program, released":  {released, 0, true},
		"let back since":              {released, 6, false},
		"joined since under the name": {other, 6, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPeerNetwork(t)
			var aList, bList listOf
			aList.set(test.known, memberRecord("a"), memberRecord("b"))
			bList.set(5, test.rec, memberRecord("b"))
			a := w.addWith("a", "one", aList.config())
			w.addWith("b", "one", bList.config())
			for _, kind := range []byte{kindRaft, kindHTTP, kindGroups, kindEntries} {
				conn, err := a.dial(t.Context(), kind, "b", w.at["b"], 0)
				if err == nil {
					a.closeConn(conn)
				}
				var refused *refusedError
				if got := errors.As(err, &refused) && refused.status == statusNoMember; got != test.refused {
					t.Errorf("a connection of kind %q: %v", kind, err)
				}
			}
			if _, err := a.call(t.Context(), "b", rpcReport, nil); errors.Is(err, errNoMember) != test.refused {
				t.Errorf("a request: %v", err)
			}
			if answer, err := a.call(t.Context(), "b", rpcJoin, nil); err != nil || string(answer) != "from <a>" {
				t.Errorf("the question whether it is a member: %q, %v", answer, err)
			}
		})
	}
}

// Requests on a connection that was open before are refused as well. A node that hears of its
// membership later gets on by a new connection.
func TestPeerPort_RefusesOnOpenConnections(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	var aList, bList listOf
	aList.set(4, memberRecord("a"), memberRecord("b"))
	bList.set(4, memberRecord("a"), memberRecord("b"))
	a := w.addWith("a", "one", aList.config())
	w.addWith("b", "one", bList.config())
	released := memberRecord("a")
	released.Removed, released.Released = true, true
	for _, step := range []struct {
		name    string
		change  func()
		refused bool
	}{
		{"at first", func() {}, false},
		{"released", func() { bList.set(5, released, memberRecord("b")) }, true},
		{"let back", func() { aList.set(6, memberRecord("a"), memberRecord("b")) }, false},
	} {
		step.change()
		if _, err := a.call(t.Context(), "b", rpcReport, nil); errors.Is(err, errNoMember) != step.refused || !step.refused && err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

// An earlier node of a name takes no connections for the one that has the name now, unless the dialing
// node's list is the older one.
func TestPeerPort_ConnectionsForAnotherInstance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dialer, acceptor uint64 // versions of their lists
		refused          bool
	}{{5, 4, true}, {5, 5, true}, {4, 5, false}} {
		w := newPeerNetwork(t)
		var aList, bList listOf
		other := memberRecord("b")
		other.Instance = "another"
		aList.set(test.dialer, memberRecord("a"), other)
		bList.set(test.acceptor, memberRecord("a"), memberRecord("b"))
		a := w.addWith("a", "one", aList.config())
		w.addWith("b", "one", bList.config())
		_, err := a.call(t.Context(), "b", rpcReport, nil)
		var refused *refusedError
		if got := errors.As(err, &refused) && refused.status == statusOtherData; got != test.refused {
			t.Errorf("lists %d and %d: %v", test.dialer, test.acceptor, err)
		}
	}
}

// The generation of a removed node does not take the place of that of the node with its name.
func TestPeerPort_RemovedNodeLeavesGenerations(t *testing.T) {
	t.Parallel()
	store := openStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	var list listOf
	list.set(5, membership.Record{Name: "a", Instance: "new"})
	seen, err := newGenerations(store.Raft(), func() string { return "b-instance" }, list.Load())
	if err != nil {
		t.Fatal(err)
	}
	cfg := list.config()
	cfg.Generations = seen
	b := newPeerNetwork(t).addWith("b", "one", cfg)
	now := generation{Instance: "new", Count: 9, Start: "x"}
	for _, h := range []peerHello{
		{Instance: "new", Generation: now}, {Instance: "old", Generation: generation{Instance: "old", Count: 99, Start: "y"}},
	} {
		h.Cluster, h.From, h.To = "one", "a", "b"
		if status, reason := b.checkHello(kindControl, &h); status != statusWelcome {
			t.Fatal(reason)
		}
	}
	if got := seen.seen.of["a"]; got != now {
		t.Errorf("%+v", got)
	}
}

// A heartbeat that is refused makes a node ask the one that refused it, which may be the only one that
// knows the owner of the directory, whether it is a member.
func TestHeartbeat_RefusedAsNoMember(t *testing.T) {
	t.Parallel()
	var refusedBy []string
	p := newHeartbeat(heartbeatConfig{
		Owned: func() []ownedShard { return nil }, Clock: time.Now, Refused: func(node string) { refusedBy = append(refusedBy, node) },
		Send: func(context.Context, string, []byte) ([]byte, error) { return nil, errNoMember },
	})
	if _, err := p.exchange("b"); !errors.Is(err, errNoMember) || !slices.Equal(refusedBy, []string{"b"}) {
		t.Errorf("refused by %v: %v", refusedBy, err)
	}
}

func TestRegistry_NodeThatWasRefused(t *testing.T) {
	t.Parallel()
	directory, nodes := testRegistries(t, "a", "b", "c")
	directory.give("a")
	for _, name := range []string{"b", "c"} {
		if _, err := nodes["a"].serve(t.Context(), rpcJoin, &joinRequest{Node: nodes[name].cfg.Self()}); err != nil {
			t.Fatal(err)
		}
	}
	fatal := make(chan error, 1)
	c := nodes["c"]
	c.cfg.Owner = func() string { return "" } // it hears of none
	c.cfg.Fatal = func(err error) { fatal <- err }
	c.run()
	c.refusedBy("b") // since b has not heard of c
	testkit.Eventually(t, "c has registered", func() bool { _, ok := c.list().Node("c"); return ok })
	if err := nodes["a"].remove(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if err := nodes["a"].release(t.Context(), []string{"c"}); err != nil {
		t.Fatal(err)
	}
	c.refusedBy("b")
	if err := <-fatal; !strings.Contains(err.Error(), "was removed") {
		t.Error(err)
	}
}
