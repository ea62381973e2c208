package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

func TestNode_ServesEveryShardAndReopens(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	// A start that waited for a lease would take longer than start allows.
	s := settings{fs: fs, dir: "node", tune: func(tu *tuning) { tu.lease = 3 * startWithin }}
	var cluster string
	epochs := map[storage.Shard]uint64{}
	for life := range 3 {
		r := start(t, s)
		if r.Shards() != DefaultShards || r.Name() != DefaultNodeName || r.ClusterID() == "" {
			t.Fatalf("%d shards, node %q, cluster %q", r.Shards(), r.Name(), r.ClusterID())
		}
		if life > 0 && r.ClusterID() != cluster {
			t.Fatal("another cluster id")
		}
		cluster = r.ClusterID()
		for shard := range storage.Shard(DefaultShards + 1) {
			epoch, ok := r.Owner(shard)
			if !ok || epoch <= epochs[shard] {
				t.Fatalf("shard %d: epoch %d after %d, %v", shard, epoch, epochs[shard], ok)
			}
			epochs[shard] = epoch
			if err := r.ReadBarrier(shard, time.Now().Add(5*time.Second)); err != nil {
				t.Fatal(err)
			}
			for before := range life {
				if !r.has(t, shard, fmt.Sprint(before)) {
					t.Fatalf("shard %d lost what life %d wrote", shard, before)
				}
			}
			r.mustPropose(t, shard, fmt.Sprint(life))
		}
		r.stop()
		rpcErr := map[string]int{}
		for i, what := range r.watcher.all() {
			rpcErr[what] = i + 1
		}
		for shard, epoch := range epochs {
			gained, lost := rpcErr[fmt.Sprintf("gained %d/%d", shard, epoch)], rpcErr[fmt.Sprintf("lost %d/%d", shard, epoch)]
			if gained == 0 || lost < gained {
				t.Fatalf("shard %d: told %v", shard, r.watcher.all())
			}
		}
	}
}

// A node that was killed while it created its groups goes on at the next start, also with a group of
// which only the term was written.
func TestNode_CreationCutOff(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	store := openStore(t, fs, "node")
	n, err := New(Config{Store: store, Shards: 2, Logger: quiet()}) // writes the identity
	if err != nil {
		t.Fatal(err)
	}
	log, err := raftstore.OpenLog(store.Raft(), 1)
	if err == nil {
		err = log.Stable().SetTerm(1)
	}
	if err := errors.Join(err, n.Close(t.Context()), store.Close()); err != nil {
		t.Fatal(err)
	}
	start(t, settings{fs: fs, dir: "node", shards: 2}) // returns when every shard has an owner
}

func TestNode_ClosedAnswersNothing(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1})
	epoch, _ := r.Owner(1)
	batch := write(t, r.store, 1, "row")
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var refused interface{ NotApplied() bool }
	if err := r.propose(1, epoch, batch); !errors.As(err, &refused) || !refused.NotApplied() {
		t.Errorf("a proposal: %v", err)
	}
	if err := r.ReadBarrier(1, time.Time{}); !errors.As(err, &refused) || !refused.NotApplied() {
		t.Errorf("a read: %v", err)
	}
	if _, ok := r.Owner(1); ok || r.Ready() == nil {
		t.Error("it still owns the shard")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	r.stop()
	again := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1})
	if err := again.propose(2, 1, batch); !errors.Is(err, errNoShard) {
		t.Errorf("a shard that is not there: %v", err)
	}
	if err := again.ReadBarrier(2, time.Time{}); !errors.Is(err, errNoShard) {
		t.Errorf("a shard that is not there: %v", err)
	}
}

func TestNew_RefusesWhatContradictsTheStore(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	start(t, settings{fs: fs, dir: "node", shards: 2, node: "north"}).stop()
	store := openStore(t, fs, "node")
	t.Cleanup(func() { _ = store.Close() })
	for want, cfg := range map[string]Config{
		`belongs to node "north"`: {NodeName: "south"},
		"has 2 shards":            {Shards: 3},
	} {
		cfg.Store = store
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	fresh := openStore(t, fs, "fresh")
	t.Cleanup(func() { _ = fresh.Close() })
	for _, shards := range []int{-1, MaxShards + 1} {
		if _, err := New(Config{Store: fresh, Shards: shards}); err == nil {
			t.Errorf("%d shards were accepted", shards)
		}
	}
}

func TestNew_RefusesInstancesThatDoNotBelongTogether(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	copyTo := func(from, to string) {
		t.Helper()
		for _, instance := range []string{"raft", "state"} {
			if err := fs.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := vfs.Clone(fs, fs, fs.PathJoin(from, instance), fs.PathJoin(to, instance)); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(rows int) {
		r := start(t, settings{fs: fs, dir: "node", shards: 1, tune: func(tu *tuning) { tu.trailing, tu.keepPrevious = 0, false }})
		for i := range rows {
			r.mustPropose(t, 1, fmt.Sprint(i))
		}
		if err := r.group(1).snapshot(false); err != nil {
			t.Fatal(err)
		}
		r.stop()
	}
	run(10)
	copyTo("node", "old")
	run(10)
	for name, damage := range map[string]func(dir string) error{
		"no state":  func(dir string) error { return fs.RemoveAll(fs.PathJoin(dir, "state")) },
		"no log":    func(dir string) error { return fs.RemoveAll(fs.PathJoin(dir, "raft")) },
		"old state": func(dir string) error { return replace(fs, "old", dir, "state") },
		"old log":   func(dir string) error { return replace(fs, "old", dir, "raft") },
	} {
		dir := "damaged " + name
		copyTo("node", dir)
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		store := openStore(t, fs, dir)
		t.Cleanup(func() { _ = store.Close() })
		n, err := New(Config{Store: store})
		if err == nil {
			err = errors.Join(n.Open(t.Context()), n.Close(context.Background()))
		}
		if err == nil {
			t.Errorf("%s: it started", name)
		}
	}
}

func replace(fs vfs.FS, from, to, instance string) error {
	if err := fs.RemoveAll(fs.PathJoin(to, instance)); err != nil {
		return err
	}
	_, err := vfs.Clone(fs, fs, fs.PathJoin(from, instance), fs.PathJoin(to, instance))
	return err
}

func TestNode_TruncatesLogsAndRestarts(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	s := settings{fs: fs, dir: "node", shards: 2, tune: func(tu *tuning) {
		tu.snapshotBytes, tu.totalBytes, tu.trailing = 4<<10, 1<<30, 2
		tu.keepPrevious = false
	}}
	r := start(t, s)
	const rows = 400
	for i := range rows {
		r.mustPropose(t, 1, fmt.Sprint(i))
	}
	// The compactor works in the background. Its work shows in one more snapshot.
	if err := r.group(1).snapshot(false); err != nil {
		t.Fatal(err)
	}
	stats := r.ShardStats(1)
	if stats.LastIndex-stats.FirstIndex > 3 || stats.Applied != stats.LastIndex ||
		stats.Epoch == 0 || stats.Batches != rows || stats.Failed != nil {
		t.Fatalf("stats %+v", stats)
	}
	// Only synced writes survive, and they are enough.
	fs = fs.CrashClone(vfs.CrashCloneCfg{})
	s.fs = fs
	again := start(t, s)
	for i := range rows {
		if !again.has(t, 1, fmt.Sprint(i)) {
			t.Fatalf("row %d is missing", i)
		}
	}
}

func TestCompactor_BoundsAllLogsTogether(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 3, tune: func(tu *tuning) {
		tu.snapshotBytes, tu.totalBytes, tu.trailing = 1<<30, 8<<10, 1
		tu.keepPrevious = false
	}})
	value := strings.Repeat("x", 200)
	for i := 0; ; i++ {
		r.mustPropose(t, storage.Shard(i%4), value+fmt.Sprint(i%100))
		truncated := 0
		for shard := range storage.Shard(4) {
			if r.ShardStats(shard).FirstIndex > 10 {
				truncated++
			}
		}
		if truncated == 4 {
			break
		}
		if i == 20_000 { // the compactor has run by then
			t.Fatalf("%d of 4 logs were truncated, %d bytes are left", truncated, r.compactor.total.Load())
		}
	}
}

// A claim over another node's epoch waits out the lease that node may hold.
func TestNode_WaitsOutAPredecessorsLease(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	for name, c := range map[string]struct {
		last  func(*position)
		waits bool
	}{
		"another's, not released": {func(p *position) { p.owner, p.released = "other", false }, true},
		"another's, released":     {func(p *position) { p.owner, p.released = "other", true }, false},
		"its own, not released":   {func(p *position) { p.released = false }, false},
		"its own, never settled":  {func(p *position) { p.released, p.settled = false, false }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewMem()
			s := settings{fs: fs, dir: "node", shards: 1, tune: func(tu *tuning) { tu.lease = lease }}
			start(t, s).stop()
			store := openStore(t, fs, "node")
			p, err := readPosition(store.State(), 1)
			if err != nil || p.owner != DefaultNodeName || !p.released {
				t.Fatalf("the log ends with %+v, %v", p, err)
			}
			c.last(&p)
			if err := store.State().Set(positionKey(1), p.append(nil), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			start(t, s)
			if took := time.Since(began); c.waits && took < lease {
				t.Fatalf("served after %v", took)
			}
		})
	}
}

func TestNode_FailedShardIsServedNoMore(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 2})
	epoch, _ := r.Owner(1)
	// Like a batch of a newer version: its operation is of an unknown kind.
	broken := []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x77\x01a")
	err := r.propose(1, epoch, broken)
	var unknown interface{ NotApplied() bool }
	if !errors.As(err, &unknown) || unknown.NotApplied() {
		t.Fatalf("the proposer was told %v", err)
	}
	for !strings.Contains(fmt.Sprint(r.watcher.all()), fmt.Sprintf("lost 1/%d", epoch)) {
		select {
		case <-r.watcher.signal:
		case <-t.Context().Done():
			t.Fatal("the watcher was not told")
		}
	}
	if _, ok := r.Owner(1); ok || r.Ready() == nil || r.ShardStats(1).Failed == nil {
		t.Error("the shard still counts as served")
	}
	if err := r.ReadBarrier(1, time.Time{}); err == nil {
		t.Error("the shard still answers reads")
	}
	if err := r.propose(1, epoch, write(t, r.store, 1, "more")); err == nil {
		t.Error("the shard still takes writes")
	}
	r.mustPropose(t, 2, "others go on")
}

// A member that steps down and is elected again serves a new epoch. The Watcher is called
// for both, in order.
func TestNode_RegainsAfterStepDown(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1})
	before, _ := r.Owner(1)
	g := r.group(1)
	// An empty heartbeat of a later term deposes it, as a newer leader's would.
	depose(t, g, before+5)
	want := []string{fmt.Sprintf("gained 1/%d", before), fmt.Sprintf("lost 1/%d", before), ""}
	for {
		var rpcErr []string
		for _, what := range r.watcher.all() {
			if strings.Contains(what, " 1/") {
				rpcErr = append(rpcErr, what)
			}
		}
		if len(rpcErr) == 3 {
			after, _ := r.Owner(1)
			want[2] = fmt.Sprintf("gained 1/%d", after)
			if after <= before+5 || !reflect.DeepEqual(rpcErr, want) {
				t.Fatalf("told %v, want %v", rpcErr, want)
			}
			break
		}
		<-r.watcher.signal
	}
	if err := r.propose(1, before, write(t, r.store, 1, "old epoch")); err == nil {
		t.Error("the old epoch still writes")
	}
	r.mustPropose(t, 1, "new epoch")
}

func TestNode_CloseWithoutStart(t *testing.T) {
	t.Parallel()
	store := openStore(t, vfs.NewMem(), "node")
	n, err := New(Config{Store: store, Shards: 1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// A node that learns the owners of all shards before its own replicas are open is not ready: the next
// node of a rolling restart would stop.
func TestReady_NotBeforeTheReplicasAreOpen(t *testing.T) {
	t.Parallel()
	store := openStore(t, vfs.NewMem(), "data")
	defer func() { _ = store.Close() }()
	n, err := New(Config{Store: store, Shards: 2, NodeName: "a", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if err := n.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, shard := range n.id.allShards() {
		n.owners.Load().gained(shard, 1)
	}
	if n.Ready() == nil {
		t.Error("the node is ready, and no replica is open")
	}
	if err := n.Start(t.Context(), newRecorder()); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Ready(); err != nil {
		t.Error(err)
	}
}
