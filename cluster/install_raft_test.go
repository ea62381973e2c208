package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// learner is a member of a group that is added to a running leader.
type learner struct {
	*group
	store *storage.Store
	end   func()
}

// newLearner opens a shard on a store and connects it with the leader.
func newLearner(t *testing.T, fs vfs.FS, leader *group) *learner {
	t.Helper()
	l := &learner{store: openStore(t, fs, "learner")}
	n, err := New(Config{Store: l.store, Shards: 1, NodeName: "learner", Logger: quiet()})
	if err != nil {
		_ = l.store.Close()
		t.Fatal(err)
	}
	if err := n.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.group = n.group(leader.shard)
	l.machine.grown = func(int64, int64) {}
	_, transport := raft.NewInmemTransport("learner")
	transport.Connect(raft.ServerAddress(leader.node), leader.transport)
	leader.transport.(raft.WithPeers).Connect("learner", transport)
	stable := l.log.Stable()
	if l.raft, err = raft.NewRaft(l.raftConfig(), l.machine, l.log, stable, l.snapshots, transport); err != nil {
		_ = l.store.Close()
		t.Fatal(err)
	}
	l.end = sync.OnceFunc(func() {
		if err := l.raft.Shutdown().Error(); err != nil {
			t.Error(err)
		}
		if failed := l.failed.Load(); failed != nil {
			t.Error(*failed)
		}
		if err := l.store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(l.end)
	return l
}

// catchUp returns when the learner's state has an entry. Raft pauses for up to 10 s before it tries again to reach a
// member that was away.
func (l *learner) catchUp(t *testing.T, index uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	testkit.Await(ctx, t, fmt.Sprintf("the learner has entry %d", index), func() bool { return l.machine.applied.Load() >= index })
}

func TestInstall_ANewMemberCatchesUpWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "leader", shards: 1, node: "leader", tune: func(t *tuning) {
		t.snapshotBytes, t.totalBytes, t.trailing = 16<<10, 16<<10, 2
		t.keepPrevious = false
	}})
	leader := r.group(shard1)
	load := startLoad(r, 4, nil)
	load.await(400)
	if err := leader.snapshot(false); err != nil {
		t.Fatal(err)
	}
	if first, _ := leader.log.Bounds(); first <= 1 {
		t.Fatal("the log was not truncated")
	}
	fs := vfs.NewMem()
	l := newLearner(t, fs, leader)
	if err := leader.raft.AddNonvoter("learner", "learner", 0, 0).Error(); err != nil {
		t.Fatal(err)
	}
	load.await(1000)
	l.catchUp(t, leader.machine.applied.Load())
	load.await(500)
	load.stop()
	same := func() {
		t.Helper()
		for _, without := range [][][]byte{nil, {positionKey(shard1)}} {
			for at := uint64(0); at != leader.machine.applied.Load(); { // it may append an empty entry meanwhile
				at = leader.machine.applied.Load()
				l.catchUp(t, at)
				want, err := storage.FingerprintOf(t.Context(), r.store.State(), shard1, without...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := storage.FingerprintOf(t.Context(), l.store.State(), shard1, without...)
				if err != nil {
					t.Fatal(err)
				}
				if got != want && at == leader.machine.applied.Load() {
					t.Errorf("the learner's state is %s, the leader's %s", got, want)
				}
			}
		}
	}
	same()
	newest, err := l.snapshots.Latest()
	if err != nil || newest == nil {
		t.Fatalf("no snapshot was installed, %v", err)
	}
	if first, _ := l.log.Bounds(); first <= newest.Index {
		t.Errorf("the log begins at %d, the snapshot ends at %d", first, newest.Index)
	}

	// Absent while the leader truncates once more, it is sent the state again.
	l.end()
	load = startLoad(r, 4, load.acknowledged())
	load.await(400)
	if err := leader.snapshot(false); err != nil {
		t.Fatal(err)
	}
	l = newLearner(t, fs, leader)
	load.await(400)
	load.stop()
	same()
	if again, err := l.snapshots.Latest(); err != nil || again.Index <= newest.Index {
		t.Errorf("the snapshot is %+v, %v", again, err)
	}
	if l.machine.pending.Load() < 0 {
		t.Errorf("%d bytes are pending", l.machine.pending.Load())
	}
}

// A replica that was away while its leader truncated the log once gets entries, and not the state.
func TestInstall_AReplicaThatWasAwayGetsEntries(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "leader", shards: 1, node: "leader", tune: func(t *tuning) {
		t.trailing = 2
	}})
	leader := r.group(shard1)
	load := startLoad(r, 4, nil)
	load.await(400)
	if err := leader.snapshot(false); err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	l := newLearner(t, fs, leader)
	if err := leader.raft.AddNonvoter("learner", "learner", 0, 0).Error(); err != nil {
		t.Fatal(err)
	}
	l.catchUp(t, leader.machine.applied.Load())
	before, err := l.snapshots.Latest()
	if err != nil {
		t.Fatal(err)
	}
	l.end()
	load.await(400)
	if err := leader.snapshot(false); err != nil {
		t.Fatal(err)
	}
	load.await(400)
	load.stop()
	l = newLearner(t, fs, leader)
	l.catchUp(t, leader.machine.applied.Load())
	after, err := l.snapshots.Latest()
	if err != nil {
		t.Fatal(err)
	}
	if (before == nil) != (after == nil) || before != nil && before.Index != after.Index {
		t.Errorf("the replica was sent the state: its snapshot was %+v and is %+v", before, after)
	}
}
