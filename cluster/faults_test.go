package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/placement"
	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// kill ends a node as a crash does: unsynced writes are lost. Its successor runs on the
// file system that is returned.
func (w *network) kill(t testing.TB, name string, disk *vfs.MemFS, others ...string) *vfs.MemFS {
	t.Helper()
	w.isolate(true, name, others...)
	left := disk.CrashClone(vfs.CrashCloneCfg{})
	w.nodes[name].stop()
	w.isolate(false, name, others...)
	return left
}

// crashable starts a shard on nodes whose file systems lose unsynced writes in a crash.
func crashable(t testing.TB, names ...string) (*network, map[string]*vfs.MemFS) {
	t.Helper()
	w := newNetwork()
	disks := w.growCrashable(t, names...)
	return w, disks
}

// growCrashable boots the nodes of crashable, and returns their disks.
func (w *network) growCrashable(t testing.TB, names ...string) map[string]*vfs.MemFS {
	t.Helper()
	disks := map[string]*vfs.MemFS{}
	for i, name := range names {
		disks[name] = vfs.NewCrashableMem()
		w.boot(t, name, disks[name], i == 0, 1)
	}
	first := w.nodes[names[0]]
	for shard := range storage.Shard(2) {
		w.owner(t, shard, names[0])
		for _, name := range names[1:] {
			w.addVoter(t, first, shard, name)
		}
	}
	return disks
}

func namesBut(names []string, one string) (rest []string) {
	for _, name := range names {
		if name != one {
			rest = append(rest, name)
		}
	}
	return rest
}

func TestFaults_OwnersDieOneAfterAnother(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e"}
	w, disks := crashable(t, names...)
	var acked []string
	for round := range 3 {
		var owner *running
		for i := range 20 {
			row := fmt.Sprintf("%d-%d", round, i)
			owner = w.keep(t, 1, row, names...)
			acked = append(acked, row)
		}
		dead := owner.Name()
		rest := namesBut(names, dead)
		disks[dead] = w.kill(t, dead, disks[dead], rest...)
		next := w.owner(t, 1, rest...)
		for _, row := range acked {
			if !next.has(t, 1, row) {
				t.Fatalf("%s was acknowledged and is gone with %s", row, dead)
			}
		}
		w.boot(t, dead, disks[dead], dead == "a", 1)
	}
	w.keep(t, 1, "last", names...)
	w.same(t, 1, names...)
}

// Links that carry one direction only must not leave a shard without an owner, nor
// with an owner that answers from an old state.
func TestFaults_OneWayCuts(t *testing.T) {
	t.Parallel()
	for what, ways := range map[string][][2]string{
		"the owner is not heard": {{"a", "b"}, {"a", "c"}},
		"the owner hears nobody": {{"b", "a"}, {"c", "a"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, _ := threeNodes(t, 1)
			a := w.nodes["a"]
			a.mustPropose(t, 1, "before")
			for _, way := range ways {
				w.set(true, way[0], way[1])
			}
			w.keep(t, 1, "after", "b", "c")
			if err := a.ReadBarrier(1, time.Now().Add(time.Second)); err == nil {
				t.Error("who was cut off answers reads")
			}
			testkit.Eventually(t, "a gave up", func() bool { _, ok := a.Owner(1); return !ok })
			for _, way := range ways {
				w.set(false, way[0], way[1])
			}
			w.owner(t, 1, "a", "b", "c")
			w.same(t, 1, "a", "b", "c")
		})
	}
}

// A replica that was removed while its node was down campaigns after the restart. The
// others ignore it.
func TestFaults_RemovedReplicaDisturbsNobody(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	epoch, _ := a.Owner(1)
	w.isolate(true, "c", "a", "b")
	w.removeVoter(t, a, 1, "c")
	testkit.Eventually(t, "c misses its leader", func() bool { return c.group(1).raft.State() == raft.Candidate })
	w.isolate(false, "c", "a", "b")
	for i := range 3 { // it campaigns again and again
		testkit.Eventually(t, "c gives up a campaign", func() bool { return c.group(1).raft.State() == raft.Candidate })
		a.mustPropose(t, 1, fmt.Sprint(i))
		if err := a.ReadBarrier(1, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if now, _ := a.Owner(1); now != epoch {
		t.Errorf("epoch %d became %d", epoch, now)
	}
	if err := c.dropReplica(1); err != nil {
		t.Fatal(err)
	}
	if err := a.dropReplica(1); err == nil {
		t.Error("the leader's replica was dropped")
	}
	// It may come back as an empty one.
	w.addVoter(t, a, 1, "c")
	w.same(t, 1, "a", "b", "c")
}

// The leader and a new voter commit the growth, and the leader dies before the third
// member has heard of it. The remaining two elect an owner.
func TestFaults_OwnerDiesWhileItsGroupGrows(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	for _, name := range []string{"a", "b", "c"} {
		w.boot(t, name, vfs.NewMem(), name == "a", 1)
	}
	a, b, c := w.nodes["a"], w.nodes["b"], w.nodes["c"]
	w.owner(t, 1, "a")
	w.addVoter(t, a, 1, "b")
	if err := c.hostReplica(1, logPoint{}); err != nil {
		t.Fatal(err)
	}
	if err := a.changeReplica(t.Context(), 1, replicaChange{replicaAdd, "c"}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "both follow", func() bool {
		_, others, _ := b.group(1).members()
		lag, follows := a.group(1).tracking.followerProgress(a.group(1).raft.CurrentTerm(), "c", electionTimeout)
		return len(others) == 1 && follows && lag == 0
	})
	w.set(true, "a", "b")
	if err := a.changeReplica(t.Context(), 1, replicaChange{replicaPromote, "c"}); err != nil {
		t.Fatal(err)
	}
	w.isolate(true, "a", "b", "c")
	if _, others, _ := b.group(1).members(); len(others) != 1 {
		t.Fatal("b heard of it")
	}
	w.keep(t, 1, "on", "c", "b")
}

// A follower that is far behind in a shard without writes is sent all missing entries at
// once, and not one request in each of Raft's rounds.
func TestFaults_FollowerCatchesUpInIdleShard(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	release := w.hold("a", "b")
	for i := range 600 {
		a.mustPropose(t, 1, fmt.Sprint(i))
	}
	release()
	w.same(t, 1, "a", "b", "c")
}

// A follower whose disk has no room takes no changes, and the others go on without it. It stays a
// follower, and has everything once there is room again.
func TestFaults_FollowerWithoutRoom(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a, b := w.owner(t, 1, "a"), w.nodes["b"]
	epoch, _ := a.Owner(1)
	a.mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	b.spent.Store(true)
	for i := range 50 {
		a.mustPropose(t, 1, fmt.Sprint(i))
	}
	w.same(t, 1, "a", "c")
	if reports := b.report(); !slices.ContainsFunc(reports, func(r placement.GroupReport) bool { return r.Shard == 1 && r.NoRoom }) {
		t.Errorf("b reports %+v", reports)
	}
	if b.has(t, 1, "0") {
		t.Error("a node without room took a change")
	}
	if heard := b.group(1).raft.LastContact(); b.group(1).raft.State() != raft.Follower || time.Since(heard) > time.Minute {
		t.Errorf("the node without room is %s and heard from its leader at %s", b.group(1).raft.State(), heard)
	}
	b.spent.Store(false)
	a.mustPropose(t, 1, "after")
	w.same(t, 1, "a", "b", "c")
	if now, _ := a.Owner(1); now != epoch {
		t.Errorf("a owned the shard in epoch %d, and does in %d", epoch, now)
	}
}

// Where two of three disks have no room and the third node dies, the shard gets an owner all the same. It
// answers reads.
func TestFaults_OwnerAmongNodesWithoutRoom(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	w.owner(t, 1, "a").mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	for _, name := range []string{"b", "c"} {
		w.nodes[name].spent.Store(true)
	}
	w.isolate(true, "a", "b", "c")
	if err := w.owner(t, 1, "b", "c").ReadBarrier(1, time.Now().Add(10*time.Second)); err != nil {
		t.Error(err)
	}
}

// Nor does a follower without room take a snapshot.
func TestFaults_FollowerWithoutRoomForASnapshot(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	b := w.nodes["b"]
	answer := make(chan raft.RPCResponse, 1)
	rows := bytes.NewReader(make([]byte, 1<<20))
	rpc := raft.RPC{Command: &raft.InstallSnapshotRequest{Size: rows.Size()}, Reader: rows, RespChan: answer}
	if b.group(1).intercept(&rpc) {
		t.Fatal("a snapshot was refused although there is room")
	}
	b.spent.Store(true)
	if !b.group(1).intercept(&rpc) {
		t.Fatal("a node without room takes a snapshot")
	}
	if r := <-answer; !errors.Is(r.Error, errNoRoom) || rows.Len() != 0 {
		t.Errorf("refused with %v, %d bytes are left in the stream", r.Error, rows.Len())
	}
}

// A replica that can't follow its log leads no longer, and never serves again.
func TestFaults_FailedLeaderHandsOver(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	a.mustPropose(t, 1, "before")
	a.group(1).fail(errors.New("a bad entry"))
	w.keep(t, 1, "after", "b", "c")
	reports := a.report()
	if i := slices.IndexFunc(reports, func(r placement.GroupReport) bool { return r.Shard == 1 }); i < 0 || !strings.Contains(reports[i].Failed, "a bad entry") {
		t.Errorf("a reports %+v", reports)
	}
	// The others elect it, since they don't know of the fault.
	testkit.Eventually(t, "a is elected", func() bool { // it may not follow yet
		return w.owner(t, 1, "b", "c").changeReplica(t.Context(), 1, replicaChange{replicaTransfer, "a"}) == nil
	})
	w.keep(t, 1, "again", "b", "c")
	if _, owns := a.Owner(1); owns {
		t.Error("the failed replica serves")
	}
}

// A leader that can't read a part of its state hands over. A group's only member goes on.
func TestFaults_DamagedLeaderHandsOver(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	a.Damaged(1, errors.New("a bad block"))
	w.keep(t, 1, "after", "b", "c")

	alone := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1})
	alone.Damaged(1, errors.New("a bad block"))
	alone.mustPropose(t, 1, "after")
}

// Where the state is damaged again after a replica was replaced, another replacement would not help.
func TestFaults_DamageThatStays(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	b := w.nodes["b"]
	for range 2 {
		if reports := b.report(); reports[0].Full {
			t.Error("the node is to lead nothing although its replica can be replaced")
		}
		testkit.Eventually(t, "b knows the others", b.group(1).hasOthers) // it may have been added just now
		b.Damaged(1, errors.New("a bad block"))
		testkit.Eventually(t, "b is removed", func() bool {
			return w.owner(t, 1, "a", "c").changeReplica(t.Context(), 1, replicaChange{replicaRemove, "b"}) == nil
		})
		if err := b.dropReplica(1); err != nil {
			t.Fatal(err)
		}
		if !b.spoiled.Load() {
			w.addVoter(t, w.owner(t, 1, "a", "c"), 1, "b")
		}
	}
	if reports := b.report(); !reports[0].Full {
		t.Error("the node is to lead")
	}
	if err := b.hostReplica(1, logPoint{}); !errors.Is(err, errSpoiled) {
		t.Errorf("it takes a replica: %v", err)
	}
}

// A member is not removed if no quorum would be left, and a member that does not follow is
// not promoted.
func TestFaults_MembersAreChangedWithCare(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.nodes["a"]
	w.boot(t, "d", vfs.NewMem(), false, 1)
	if err := a.changeReplica(t.Context(), 1, replicaChange{replicaAdd, "d"}); err != nil {
		t.Fatal(err)
	}
	// d hosts nothing yet.
	if err := a.changeReplica(t.Context(), 1, replicaChange{replicaPromote, "d"}); err == nil {
		t.Error("a member that does not follow was promoted")
	}
	w.isolate(true, "b", "a", "c")
	testkit.Eventually(t, "b counts as silent", func() bool {
		err := a.changeReplica(t.Context(), 1, replicaChange{replicaTransfer, "b"})
		return err != nil && bytes.Contains([]byte(err.Error()), []byte("not a voter"))
	})
	owner := w.owner(t, 1, "a", "c")
	other := namesBut([]string{"a", "c"}, owner.Name())[0]
	if err := owner.changeReplica(t.Context(), 1, replicaChange{replicaRemove, other}); err == nil {
		t.Error("the quorum was removed")
	}
	w.removeVoter(t, owner, 1, "b")
	owner.mustPropose(t, 1, "on")
}

// A crash anywhere in a deletion resumes it.
func TestFaults_CrashWhileDropping(t *testing.T) {
	t.Parallel()
	w, disks := crashable(t, "a", "b")
	w.nodes["a"].mustPropose(t, 1, "row")
	w.same(t, 1, "a", "b")
	// On a busy machine the ownership may move.
	var owner, gone string
	testkit.Eventually(t, "the owner removes the other", func() bool {
		owner = w.owner(t, 1, "a", "b").Name()
		gone = namesBut([]string{"a", "b"}, owner)[0]
		return w.nodes[owner].changeReplica(t.Context(), 1, replicaChange{replicaRemove, gone}) == nil
	})
	// Up to the marker, and with the state on disk.
	b := w.nodes[gone]
	if err := b.store.FlushState(); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Raft().Set(raftstore.Key(1, raftstore.KindDropping, nil), nil, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	disks[gone] = w.kill(t, gone, disks[gone], owner)
	b = w.boot(t, gone, disks[gone], false, 1)
	if b.group(1) != nil || len(shardRows(t, b, 1)) != 0 {
		t.Fatal("the replica came back")
	}
	disks[gone] = w.kill(t, gone, disks[gone], owner) // the deletion survives
	w.boot(t, gone, disks[gone], false, 1)
	w.addVoter(t, w.nodes[owner], 1, gone)
	w.same(t, 1, "a", "b")
}

// BenchmarkFailover measures how long a shard has no owner when its owner dies.
// Run it with -benchtime 20x.
func BenchmarkFailover(b *testing.B) {
	w, _ := threeNodes(b, 1)
	names := []string{"a", "b", "c"}
	var all []time.Duration
	for b.Loop() {
		owner := w.owner(b, 1, names...)
		for _, name := range namesBut(names, owner.Name()) {
			testkit.Eventually(b, "all follow", func() bool { return len(owner.group(1).successors(name)) == 1 })
		}
		rest := namesBut(names, owner.Name())
		began := time.Now()
		w.isolate(true, owner.Name(), rest...)
		w.owner(b, 1, rest...)
		all = append(all, time.Since(began))
		testkit.Eventually(b, "it gave up", func() bool { _, ok := owner.Owner(1); return !ok })
		w.isolate(false, owner.Name(), rest...)
	}
	b.ReportMetric(float64(quantile(all, 50).Milliseconds()), "ms-median")
	b.ReportMetric(float64(quantile(all, 100).Milliseconds()), "ms-max")
}

func quantile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)*percent/100]
}

// BenchmarkStart measures a node alone, from New to ready.
func BenchmarkStart(b *testing.B) {
	disk := vfs.NewMem()
	start(b, settings{fs: disk, dir: "node"}).stop()
	for b.Loop() {
		r := start(b, settings{fs: disk, dir: "node"})
		b.StopTimer()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = r.Close(ctx)
		cancel()
		r.stop()
		b.StartTimer()
	}
}
