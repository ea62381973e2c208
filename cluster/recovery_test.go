package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// remains reads a replica as the recovery does; nil if there is none.
func remains(t *testing.T, store *storage.Store, shard storage.Shard) *Replica {
	t.Helper()
	all, err := ReadRemains(store)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all.Replicas, func(r Replica) bool { return r.Shard == shard })
	if i < 0 {
		return nil
	}
	return &all.Replicas[i]
}

// c, whose replica came back and is being filled, has not the entry that a and d acknowledged, and counts
// itself among the voters by the entries that it has. b, which was away meanwhile, does so too.
func TestRecovery_TellsWhatIsBeingFilled(t *testing.T) {
	t.Parallel()
	w, a := moveAway(t)
	defer w.mend()
	w.fill(t, a, 1, "c")
	b, c := w.nodes["b"], w.nodes["c"]
	for name, r := range map[string]*Replica{"a": remains(t, a.store, 1), "b": remains(t, b.store, 1), "c's directory": remains(t, c.store, 0)} {
		if r == nil || r.Filling {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := remains(t, c.store, 1); r == nil || !r.Filling {
		t.Errorf("the replica is not being filled: %+v", r)
	}
	w.isolate(false, "c", "a")
	testkit.Eventually(t, "c is a voter", func() bool {
		return a.changeReplica(t.Context(), 1, replicaChange{replicaPromote, "c"}) == nil
	})
	testkit.Eventually(t, "c knows it", func() bool {
		r := remains(t, c.store, 1)
		return !r.Filling && slices.Equal(slices.Sorted(slices.Values(r.Voters)), []string{"a", "b", "c", "d"})
	})
}

// A replica whose state came from another node may not know the voters of that state yet.
func TestRecovery_StateAheadOfTheLog(t *testing.T) {
	t.Parallel()
	f, from := newFollower(t, vfs.NewMem()), leader(t)
	if err := f.take(from); err != nil {
		t.Fatal(err)
	}
	for f.index = from.meta.Index; ; f.follow(f.batch(3, "row")) {
		filling := f.index < f.m.at.applied
		r, err := readReplica(f.store, shard1)
		if err != nil || r == nil || r.Filling != filling {
			t.Errorf("with entry %d of %d: %+v, %v", f.index, f.m.at.applied, r, err)
		}
		if !filling {
			return
		}
	}
}

// A replica that its group has sent nothing yet is not one from which a shard can be made.
func TestRecovery_EmptyReplica(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	a := w.boot(t, "a", vfs.NewMem(), true, 1)
	b := w.boot(t, "b", vfs.NewMem(), false, 1)
	w.owner(t, 1, "a")
	a.mustPropose(t, 1, "row")
	if err := b.hostReplica(1, a.newest(t, 1)); err != nil {
		t.Fatal(err)
	}
	if r := remains(t, b.store, 1); r != nil {
		t.Errorf("it is %+v", r)
	}
}

// The verifier is told the shards of which a node has nothing, and not those whose rows are lost.
func TestReadPart(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	a := w.boot(t, "a", vfs.NewMem(), true, 2)
	b := w.boot(t, "b", vfs.NewMem(), false, 2)
	w.owner(t, 2, "a")
	a.mustPropose(t, 2, "row")
	if err := b.hostReplica(1, a.newest(t, 1)); err != nil {
		t.Fatal(err)
	}
	lacks := func(store *storage.Store, want ...storage.Shard) {
		t.Helper()
		if part, err := ReadPart(store); err != nil || part.Shards != 2 || !slices.Equal(part.Lacks, want) {
			t.Errorf("%+v, %v, want %v", part, err, want)
		}
	}
	lacks(b.store, 0, 1, 2)
	lacks(a.store)
	if err := a.store.Raft().Set(raftstore.Key(2, raftstore.KindDropping, nil), nil, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	lacks(a.store, 2)

	f := newFollower(t, vfs.NewMem())
	log := []*raft.Log{{Index: 1, Term: 1, Type: raft.LogNoop}, {Index: 2, Term: 1, Type: raft.LogNoop}}
	if err := f.log.StoreLogs(log); err != nil {
		t.Fatal(err)
	}
	if has, err := hasRows(f.store, shard1); err != nil || has {
		t.Errorf("a replica that has applied nothing: %t, %v", has, err)
	}
	if err := f.log.DeleteRange(1, 1); err != nil {
		t.Fatal(err)
	}
	if has, err := hasRows(f.store, shard1); err != nil || !has {
		t.Errorf("rows are lost: %t, %v", has, err)
	}
}

// A state without its rows, or an older one, is refused as it is at a start, although the log is empty. An install
// that a crash interrupted is finished or undone by the next start.
func TestReadPart_StateThatDoesNotBelongToTheLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		applied, covered, installing uint64
		refused                      bool
	}{
		"all of it":               {applied: 5, covered: 5},
		"lost":                    {covered: 5, refused: true},
		"older":                   {applied: 4, covered: 5, refused: true},
		"before an install":       {applied: 5, covered: 5, installing: 9},
		"after an install":        {applied: 9, covered: 5, installing: 9},
		"further than an install": {applied: 12, covered: 5, installing: 9},
		"lost before an install":  {covered: 5, installing: 9, refused: true},
	} {
		f := newFollower(t, vfs.NewMem())
		if err := f.m.snapshots.Adopt(raftstore.SnapshotRow{SnapshotMeta: raft.SnapshotMeta{Index: c.covered, Term: 1}}); err != nil {
			t.Fatal(err)
		}
		if c.installing > 0 {
			if err := f.m.snapshots.Mark(raftstore.SnapshotRow{SnapshotMeta: raft.SnapshotMeta{Index: c.installing, Term: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		if c.applied > 0 {
			if err := f.store.State().Set(positionKey(shard1), position{applied: c.applied, epoch: 1}.append(nil), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		has, err := hasRows(f.store, shard1)
		if (err != nil) != c.refused || has == c.refused || err != nil && !strings.Contains(err.Error(), "do not belong together") {
			t.Errorf("%s: %t, %v", name, has, err)
		}
	}
}

// A replica whose log ends before the first owner's claim has no rows. Its shard is made empty.
func TestRecovery_LogWithoutAClaim(t *testing.T) {
	t.Parallel()
	for name, applied := range map[string]bool{"applied": true, "in the log": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, vfs.NewMem())
			alone := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}
			entries := []*raft.Log{
				{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(alone)},
				{Index: 2, Term: 2, Type: raft.LogNoop},
			}
			if err := f.log.StoreLogs(entries); err != nil {
				t.Fatal(err)
			}
			if applied {
				f.m.ApplyBatch(entries)
			}
			if r, err := readReplica(f.store, shard1); err != nil || r == nil || r.Last != 2 || r.Term != 2 {
				t.Fatalf("%+v, %v", r, err)
			}
			old := start(t, settings{fs: vfs.NewMem(), dir: "old", shards: 1})
			fs := vfs.NewMem()
			store := openStore(t, fs, "new")
			c, err := NewCreation(store, "", 1, storage.FormatNewest)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.TakeReplica(t.Context(), old.store, storage.DirectoryShard)
			if err == nil {
				_, err = c.TakeReplica(t.Context(), f.store, shard1)
			}
			if err == nil {
				_, err = c.Finish()
			}
			if err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil || t.Failed() {
				t.Fatal(err)
			}
			start(t, settings{fs: fs, dir: "new"}).mustPropose(t, shard1, "row")
		})
	}
}
