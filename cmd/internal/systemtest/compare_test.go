package systemtest

import (
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

var comparisons = regexp.MustCompile(`(?m)^switchyard_replica_comparisons_total\{result="(\w+)"\} (\d+)$`)

// TestCompare_NamesTheReplicaThatDiffers takes a row away from one of three replicas while its node is
// stopped. The owner of the shard compares equal replicas before, under writes, and finds that one
// after.
func TestCompare_NamesTheReplicaThatDiffers(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "1", "--compare-every", "1s")
	c := f.members[0].Client("")
	o, err := c.Onboard(ctx, "Compare", "compare")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	create := func() {
		t.Helper()
		if a, err := c.Do(ctx, "POST", "/workspaces/"+o.Workspace.ID+"/issues", map[string]any{"teamId": o.Workspace.DefaultTeamID, "title": "A row of a shard"}); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("create: %+v, %v", a, err)
		}
	}
	// Each node that owns a shard compares; the two shards have two owners.
	compared := func(result string) (n int) {
		t.Helper()
		for _, m := range f.members {
			a, err := (&Client{URL: "http://" + f.address(m.n, 9090) + "/metrics", HTTP: http.DefaultClient}).Do(ctx, "GET", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range comparisons.FindAllStringSubmatch(string(a.Body), -1) {
				if found[1] == result && found[2] != "0" {
					n++
				}
			}
		}
		return n
	}
	for compared("equal") < 2 {
		if create(); !pause(ctx, 20*time.Millisecond) {
			t.Fatal("replicas are not compared")
		}
	}
	if compared("different") > 0 {
		t.Fatal("equal replicas differ")
	}

	changed := f.members[2]
	if err := changed.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	takeRow(t, changed.Data, 1)
	if err := changed.Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.members[0].Await(ctx, "the replica that differs is named", func(v ClusterView) bool {
		for _, s := range v.Shards {
			if s.ID == 0 && len(s.Differing) > 0 {
				t.Fatalf("of the other shard differ %v", s.Differing)
			}
			if s.ID == 1 && slices.Equal(s.Differing, []string{changed.Name}) {
				return true
			}
		}
		return false
	}); err != nil {
		t.Fatal(err)
	}
}

// takeRow deletes the last row of a shard in the data of a node that does not run.
func takeRow(t *testing.T, data string, shard storage.Shard) {
	t.Helper()
	store, err := storage.Open(storage.Config{Dir: data, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	start, end := storage.ShardRange(shard)
	it, err := store.State().NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		t.Fatal(err)
	}
	if !it.Last() {
		t.Error("the shard has no rows")
	}
	err = store.State().Delete(slices.Clone(it.Key()), pebble.NoSync)
	if err = errors.Join(err, it.Close(), store.FlushState(), store.Close()); err != nil {
		t.Fatal(err)
	}
}
