package cluster

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/membership"
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
