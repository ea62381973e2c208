package cluster

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// A follower whose disk has no room takes no entries, so the removal of the third member is not
// committed. Until it is, that member is neither dropped nor released: it may be the only one that can
// follow the leader.
func TestReport_RemovalThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a, b, c := w.owner(t, 0, "a"), w.nodes["b"], w.nodes["c"]
	w.owner(t, 1, "a")
	remove := replicaChange{replicaRemove, "c"}
	w.removeVoter(t, a, 0, "c")
	if err := c.dropReplica(0); err != nil {
		t.Fatal(err)
	}
	orphan := placement.Replica{Shard: 1, Node: "c"}
	found := func() (orphans map[placement.Replica]bool, released []string, changing bool) {
		state := placement.State{Shards: 1, Reports: map[string][]placement.GroupReport{}}
		for _, r := range []*running{a, b, c} {
			state.Members = append(state.Members, placement.Member{Name: r.Name(), State: membership.NodeAlive, Removed: r == c})
			state.Reports[r.Name()] = r.report()
		}
		i := slices.IndexFunc(state.Reports["a"], func(r placement.GroupReport) bool { return r.Shard == 1 })
		return placement.Orphans(state), placement.Releasable(state), state.Reports["a"][i].Changing
	}
	if orphans, released, changing := found(); len(orphans)+len(released) != 0 || changing {
		t.Fatalf("orphans %v, released %v, changing: %t", orphans, released, changing)
	}

	b.spent.Store(true)
	a.mustPropose(t, 1, "acknowledged by a and c")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed := make(chan error, 1)
	testkit.Eventually(t, "b follows", func() bool {
		_, follows := a.group(1).tracking.followerProgress(a.group(1).raft.CurrentTerm(), "b", electionTimeout)
		return follows
	})
	go func() { changed <- a.changeReplica(ctx, 1, remove) }()
	testkit.Eventually(t, "the removal is in the leader's log", func() bool {
		voters, _, err := a.group(1).members()
		return err == nil && !slices.Contains(voters, "c")
	})
	if orphans, released, changing := found(); len(orphans)+len(released) != 0 || !changing {
		t.Errorf("before the removal is committed: orphans %v, released %v, changing: %t", orphans, released, changing)
	}
	cancel()
	if err := <-changed; err == nil {
		t.Fatal("the removal was committed without b")
	}

	b.spent.Store(false)
	testkit.Eventually(t, "the removal is committed", func() bool {
		orphans, released, changing := found()
		return orphans[orphan] && slices.Equal(released, []string{"c"}) && !changing
	})
	w.same(t, storage.Shard(1), "a", "b")
}

// A leader reports about how much a copy of its replica takes, and looks again some time after the replica
// has grown.
func TestReport_Size(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "data", shards: 1})
	r.mustPropose(t, 1, "first")
	size := func() uint64 {
		t.Helper()
		reports := r.report()
		i := slices.IndexFunc(reports, func(g placement.GroupReport) bool { return g.Shard == 1 })
		return reports[i].Bytes
	}
	before := size()
	if before == 0 || before > 64<<10 {
		t.Errorf("a new shard has %d bytes", before)
	}
	const grown = 1 << 20
	random, row := rand.New(rand.NewPCG(1, 2)), make([]byte, grown/16)
	for range 16 { // in the log they are compressed
		for i := range row {
			row[i] = byte(random.Uint32())
		}
		r.mustPropose(t, 1, string(row))
	}
	if now := size(); now != before {
		t.Errorf("%d bytes, a moment after there were %d", now, before)
	}
	r.group(1).size.at -= int64(sizeAge)
	if now := size(); now < before+grown {
		t.Errorf("%d bytes after %d more than %d were written", now, grown, before)
	}
}
