package cluster

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/membership"
	"switchyard/internal/testkit"
)

func TestGeneration_Older(t *testing.T) {
	t.Parallel()
	seen := generation{Instance: "i", Count: 5, Start: "s"}
	for name, c := range map[string]struct {
		now   generation
		older bool
	}{
		"the same":                       {seen, false},
		"it counted on":                  {generation{"i", 6, "s"}, false},
		"it was started again":           {generation{"i", 6, "other"}, false},
		"an earlier state":               {generation{"i", 4, "s"}, true},
		"an earlier state that was used": {generation{"i", 5, "other"}, true},
		"another directory":              {generation{"wiped", 1, "other"}, false},
		"a version without generations":  {generation{}, false},
	} {
		if got := c.now.older(seen); got != c.older {
			t.Errorf("%s: older is %v", name, got)
		}
	}
	if seen.older(generation{}) {
		t.Error("a node that was never seen is refused")
	}
}

func TestGenerations_AreKept(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	store := openStore(t, fs, "node")
	members := &membership.List{Nodes: []membership.Record{{Name: "b"}}}
	instance := func() string { return "i" }
	g, err := newGenerations(store.Raft(), instance, members)
	if err != nil {
		t.Fatal(err)
	}
	first := g.current()
	if err := g.own.next(); err != nil {
		t.Fatal(err)
	}
	if now := g.current(); first.Count != 1 || now.Count != 2 || now.Start != first.Start || now.Instance != "i" {
		t.Errorf("%+v, then %+v", first, now)
	}
	for node, of := range map[string]generation{"b": {"i", 9, "s"}, "gone": {"i", 9, "s"}} {
		for range 2 {
			if !g.accepts(node, of) {
				t.Errorf("node %s is refused", node)
			}
		}
		if g.accepts(node, generation{"i", 8, "s"}) {
			t.Errorf("node %s is accepted with an earlier state", node)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = openStore(t, fs, "node")
	t.Cleanup(func() { _ = store.Close() })
	if g, err = newGenerations(store.Raft(), instance, members); err != nil {
		t.Fatal(err)
	}
	if now := g.current(); now.Count != 3 || now.Start == first.Start {
		t.Errorf("%+v after a restart", now)
	}
	if g.accepts("b", generation{"i", 8, "s"}) || !g.accepts("gone", generation{"i", 1, "x"}) {
		t.Error("after a restart other generations are refused than before")
	}
	g.forget("b")
	if !g.accepts("b", generation{"i", 1, "s"}) {
		t.Error("a node that was forgotten is refused")
	}
}

// The node counts on once a minute. A disk that takes long for it stops neither heartbeats nor dials.
func TestGeneration_SlowDisk(t *testing.T) {
	t.Parallel()
	disk := &hangingDisk{dir: "raft"}
	store := openStore(t, disk.fs(), "node")
	t.Cleanup(func() { _ = store.Close() })
	g, err := newGenerations(store.Raft(), func() string { return "i" }, &membership.List{})
	if err != nil {
		t.Fatal(err)
	}
	before := g.current()
	resume := sync.OnceFunc(disk.hang())
	t.Cleanup(resume)
	counted := make(chan error, 1)
	go func() { counted <- g.own.next() }()
	testkit.Eventually(t, "the write waits", func() bool { return disk.waits.Load() > 0 })
	p := newHeartbeat(heartbeatConfig{Owned: func() []ownedShard { return nil }, Clock: time.Now, Generations: g})
	var message atomic.Pointer[[]byte]
	go func() {
		b, _ := p.message()
		message.Store(&b)
	}()
	testkit.Eventually(t, "a heartbeat is written", func() bool { return message.Load() != nil })
	var said heartbeatMessage
	if err := json.Unmarshal(*message.Load(), &said); err != nil || said.Generation != before {
		t.Errorf("%+v, not %+v, while the next count is not on disk; %v", said.Generation, before, err)
	}
	resume()
	if err := <-counted; err != nil || g.current().Count != before.Count+1 {
		t.Errorf("%+v after %+v, %v", g.current(), before, err)
	}
}

// A node ends if another one has seen it with newer data. It does not end if it has counted on while
// the refused connection was made: the other node knew the new count first.
func TestGeneration_CountedOnWhileADialIsRefused(t *testing.T) {
	t.Parallel()
	store := openStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	g, err := newGenerations(store.Raft(), func() string { return "i" }, &membership.List{})
	if err != nil {
		t.Fatal(err)
	}
	for _, counts := range []bool{true, false} {
		ended := false
		p := newHeartbeat(heartbeatConfig{
			Owned: func() []ownedShard { return nil }, Clock: time.Now, Generations: g, Fatal: func(error) { ended = true },
			Send: func(context.Context, string, []byte) ([]byte, error) {
				if counts {
					if err := g.own.next(); err != nil {
						return nil, err
					}
				}
				return nil, &refusedError{statusOlderData, "older"}
			},
		})
		if _, err := p.exchange("b"); !refusesData(err) {
			t.Errorf("error %v", err)
		}
		if ended == counts {
			t.Errorf("the count went on: %v; the node ended: %v", counts, ended)
		}
	}
}
