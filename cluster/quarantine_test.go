package cluster

import (
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/placement"
	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// A damaged entry in one shard's log stops neither the node nor its other shards. The replica
// is replaced like an empty one.
func TestFaults_DamagedEntryOfOneShard(t *testing.T) {
	t.Parallel()
	w, disks := crashable(t, "a", "b", "c")
	a := w.owner(t, 1, "a")
	a.mustPropose(t, 1, "row")
	w.same(t, 1, "a", "b", "c")
	b := w.nodes["b"]
	damage(t, b.store, 1)
	disks["b"] = w.kill(t, "b", disks["b"], "a", "c")
	b = w.boot(t, "b", disks["b"], false, 1)
	b.compactor.reclaimNow.Store(true)
	b.compactor.compact() // leaves the replica alone that could not be opened
	reported := func(shard storage.Shard) placement.GroupReport {
		reports := b.report()
		i := slices.IndexFunc(reports, func(r placement.GroupReport) bool { return r.Shard == shard })
		if i < 0 {
			t.Fatalf("shard %d is not in %+v", shard, reports)
		}
		return reports[i]
	}
	if failed := reported(1).Failed; !strings.Contains(failed, "damaged log entry") {
		t.Errorf("failed for %q", failed)
	}
	if err := b.ShardStats(1).Failed; err == nil {
		t.Error("the metrics show no failure")
	}
	if failed := reported(0).Failed; failed != "" {
		t.Errorf("the directory failed: %s", failed)
	}
	testkit.Eventually(t, "the other shard is followed", func() bool { return b.group(0).raft.State() == raft.Follower && reported(0).Leader != "" })
	// As placement does.
	if err := b.hostReplica(1, logPoint{}); err == nil {
		t.Error("the failed replica was taken for a new one")
	}
	testkit.Eventually(t, "b is removed", func() bool {
		return w.owner(t, 1, "a", "c").changeReplica(t.Context(), 1, replicaChange{replicaRemove, "b"}) == nil
	})
	if err := b.dropReplica(1); err != nil {
		t.Fatal(err)
	}
	w.addVoter(t, w.owner(t, 1, "a", "c"), 1, "b")
	w.same(t, 1, "a", "b", "c")
}

// Nor does a damaged block of the files that the log lies in.
func TestFaults_DamagedBlockOfTheLog(t *testing.T) {
	t.Parallel()
	w, disks := crashable(t, "a", "b", "c")
	a := w.owner(t, 1, "a")
	for range 40 {
		var noise strings.Builder // that can't be compressed
		for range 100 {
			noise.WriteString(rand.Text())
		}
		a.mustPropose(t, 1, noise.String())
	}
	w.same(t, 1, "a", "b", "c")
	if err := w.nodes["b"].store.Raft().Flush(); err != nil {
		t.Fatal(err)
	}
	disks["b"] = w.kill(t, "b", disks["b"], "a", "c")
	damageTable(t, disks["b"], "b/raft")
	b := w.boot(t, "b", disks["b"], false, 1)
	if err := b.ShardStats(1).Failed; err == nil {
		t.Error("the replica with the damaged block did not fail")
	}
	if err := b.ShardStats(0).Failed; err != nil {
		t.Errorf("the directory failed: %v", err)
	}
	testkit.Eventually(t, "b is removed", func() bool {
		return w.owner(t, 1, "a", "c").changeReplica(t.Context(), 1, replicaChange{replicaRemove, "b"}) == nil
	})
	if err := b.dropReplica(1); err != nil {
		t.Fatal(err)
	}
	w.addVoter(t, w.owner(t, 1, "a", "c"), 1, "b")
	w.same(t, 1, "a", "b", "c")
}

// damageTable changes a byte in the middle of the largest table of an instance. The rows of the highest
// shard lie there.
func damageTable(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var largest string
	var text []byte
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := fs.Open(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if len(found) > len(text) {
			largest, text = name, found
		}
	}
	if text == nil {
		t.Fatal("there are no tables")
	}
	text[len(text)/2] ^= 1
	f, err := fs.Create(fs.PathJoin(dir, largest), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A leader that can't read an entry which a follower needs would send it nothing more. Another voter leads
// from then on.
func TestFaults_DamagedEntryOfTheLeader(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	a.mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	damage(t, a.store, 1)
	w.keep(t, 1, "after", "b", "c")
	if err := a.ShardStats(1).Failed; err == nil {
		t.Error("the replica did not fail")
	}
}

// damage changes a byte of the newest entry of a shard's log.
func damage(t *testing.T, store *storage.Store, shard storage.Shard) {
	t.Helper()
	it, err := store.Raft().NewIter(&pebble.IterOptions{
		LowerBound: raftstore.Key(shard, raftstore.KindLog, nil), UpperBound: raftstore.Key(shard, raftstore.KindLog+1, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = it.Close() }()
	if !it.Last() {
		t.Fatal("the log is empty")
	}
	value := slices.Clone(it.Value())
	value[len(value)-1] ^= 1
	if err := store.Raft().Set(it.Key(), value, pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

// A node alone does not start on a damaged log: there is no other copy.
func TestNode_AloneRefusesADamagedLog(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	r := start(t, settings{fs: fs, dir: "node", shards: 1})
	r.mustPropose(t, 1, "row")
	damage(t, r.store, 1)
	r.stop()
	store := openStore(t, fs, "node")
	defer func() { _ = store.Close() }()
	n, err := New(Config{Store: store, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if err = n.Open(t.Context()); err == nil {
		err = n.Start(t.Context(), newRecorder())
	}
	if err == nil || !strings.Contains(err.Error(), "damaged log entry") {
		t.Errorf("it started: %v", err)
	}
	_ = n.Close(t.Context())
}
