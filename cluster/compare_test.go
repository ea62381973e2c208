package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// readers are the replicas of a network's nodes, for comparisons. They implement nodeCaller.
type readers map[string]*replicaReader

var errGone = errors.New("the node is gone")

func (r readers) call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error) {
	if r[node] == nil || kind != rpcCompare {
		return nil, errGone
	}
	return r[node].handle(ctx, "a", body)
}

// comparing returns the comparer of node a, and the readers of all nodes.
func (w *network) comparing(t *testing.T) (*comparer, readers) {
	t.Helper()
	all := readers{}
	for name, r := range w.nodes {
		reader := newReplicaReader(r.group, nil)
		t.Cleanup(reader.close)
		all[name] = reader
	}
	a := w.nodes["a"]
	return newComparer(comparerConfig{
		Self: "a", Shards: 1, Every: time.Hour, Group: a.group, Own: all["a"], Calls: all, Logger: quiet(),
	}), all
}

// Equal replicas are found equal while entries are applied, and one that differs is found.
func TestComparer(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	w.tune = soonCommitted
	w.growToThree(t, 1)
	a := w.nodes["a"]
	c, _ := w.comparing(t)

	a.mustPropose(t, 1, "row")
	if next := c.look(t.Context(), 1); next != time.Hour || c.counted() != (Comparisons{Equal: 1}) {
		t.Fatalf("replicas at rest: %+v, again after %v", c.counted(), next)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				epoch, ok := a.Owner(1)
				if ok {
					_ = a.propose(1, epoch, write(t, a.store, 1, fmt.Sprint(n)))
				}
			}
		}
	}()
	testkit.Eventually(t, "replicas that change are compared", func() bool {
		c.look(t.Context(), 1)
		return c.counted().Equal > 1
	})
	close(stop)
	<-ended
	if n := c.counted(); n.Different > 0 {
		t.Fatalf("equal replicas differ: %+v", n)
	}

	changed := w.nodes["c"].store.State()
	if err := changed.Set(testKey(1, "row"), []byte("other"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the difference is found", func() bool {
		return c.look(t.Context(), 1) == time.Hour/compareSoon && slices.Equal(c.differing(1), []string{"c"})
	})
	if err := changed.Set(testKey(1, "row"), []byte("value of row"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the replicas are equal again", func() bool {
		return c.look(t.Context(), 1) == time.Hour && c.differing(1) == nil
	})
}

// Without an answer of each voter nothing is said, and nothing that was found is forgotten. Only the
// owner compares.
func TestComparer_WithoutAVoter(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	w.tune = soonCommitted
	w.growToThree(t, 1)
	c, all := w.comparing(t)
	c.note(1, []string{"c"})
	gone := all["b"]
	delete(all, "b")
	if next := c.look(t.Context(), 1); next != time.Hour/compareSoon || c.counted() != (Comparisons{Unknown: 1}) || len(c.differing(1)) != 1 {
		t.Errorf("without b: %+v, %v differ, again after %v", c.counted(), c.differing(1), next)
	}
	all["b"] = gone
	gone.close()
	if c.look(t.Context(), 1); c.counted() != (Comparisons{Unknown: 2}) {
		t.Errorf("b has no replica: %+v", c.counted())
	}
	if _, err := all["c"].handle(t.Context(), "a", []byte("{")); err == nil {
		t.Error("half a request is taken")
	}
	testkit.Eventually(t, "a owns it no more", func() bool {
		return w.nodes["a"].group(1).handOver(brief(t), "c", false) == nil
	})
	if next := c.look(t.Context(), 1); next != 0 || c.differing(1) != nil {
		t.Errorf("as a follower: %v differ, again after %v", c.differing(1), next)
	}
}

func TestOutvoted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sums, want string }{
		{"x", ""}, {"xx", ""}, {"xxx", ""}, {"xxy", "c"}, {"yxx", "a"}, {"xy", "ab"}, {"xyz", "abc"}, {"xxyy", "abcd"}, {"xxxyy", "de"},
	} {
		answers, got := map[string]compareAnswer{}, ""
		for i, sum := range c.sums {
			answers[string(rune('a'+i))] = compareAnswer{Sum: string(sum), Rows: 3}
		}
		for _, node := range outvoted(answers) {
			got += node
		}
		if got != c.want {
			t.Errorf("of %s %q differ, want %q", c.sums, got, c.want)
		}
	}
}

// A reading that nobody asks for any more ends, and a node reads few replicas at the same time.
func TestReplicaReader_Bounds(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	g := &group{shard: shard1, machine: mt.m}
	g.up.Store(true)
	synctest.Test(t, func(t *testing.T) {
		reader := newReplicaReader(func(shard storage.Shard) *group {
			if shard == shard1 {
				return g
			}
			return nil
		}, nil)
		if got := reader.ask(compareRequest{shard1 + 1, 1}); got.Failed == "" {
			t.Errorf("a replica that is not here: %+v", got)
		}
		for entry := range uint64(maxReadings) {
			if got := reader.ask(compareRequest{shard1, 100 + entry}); !got.Pending {
				t.Fatalf("a first request: %+v", got)
			}
		}
		if got := reader.ask(compareRequest{shard1, 200}); got.Failed == "" {
			t.Errorf("one reading too many: %+v", got)
		}
		time.Sleep(readingKept * 2 / 3) // one of them has waited for its entry in vain, the others for their turn
		missed, failed := 0, 0
		for entry := range uint64(maxReadings) {
			switch got := reader.ask(compareRequest{shard1, 100 + entry}); {
			case got.Missed:
				missed++
			case got.Failed != "":
				failed++
			}
		}
		if missed != 1 || failed != maxReadings-1 {
			t.Errorf("%d missed their entry, %d failed", missed, failed)
		}
		// Their answers were fetched, so there is room for others. Nobody asks for these again.
		for entry := range uint64(maxReadings) {
			if got := reader.ask(compareRequest{shard1, 100 + entry}); !got.Pending {
				t.Errorf("after the answers were fetched: %+v", got)
			}
		}
		time.Sleep(readingKept)
		synctest.Wait()
		if got := reader.ask(compareRequest{shard1, 200}); !got.Pending {
			t.Errorf("after the others were forgotten: %+v", got)
		}
		reader.close()
		if got := reader.ask(compareRequest{shard1, 200}); got.Failed == "" {
			t.Errorf("after the end: %+v", got)
		}
	})
}
