package cluster

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"switchyard/cluster/placement"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// hangingDisk is a disk whose writes below a directory wait while it hangs.
type hangingDisk struct {
	dir   string
	gate  atomic.Pointer[chan struct{}] // nil: it works
	waits atomic.Int64                  // writes that have met the gate
}

func (d *hangingDisk) fs() vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if gate := d.gate.Load(); gate != nil && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, d.dir) {
			d.waits.Add(1)
			<-*gate
		}
		return nil
	}))
}

// hang makes writes wait until the returned function is called.
func (d *hangingDisk) hang() (resume func()) {
	gate := make(chan struct{})
	d.gate.Store(&gate)
	return func() {
		d.gate.Store(nil)
		close(gate)
	}
}

// stuckNetwork starts a shard on three nodes, of which a owns it and has the disk for its log.
func stuckNetwork(t *testing.T) (*network, *hangingDisk) {
	t.Helper()
	return stuckNetworkOf(t, 1)
}

func stuckNetworkOf(t *testing.T, shards int) (*network, *hangingDisk) {
	t.Helper()
	w, disk := newNetwork(), &hangingDisk{dir: "raft"}
	for _, name := range []string{"a", "b", "c"} {
		fs := vfs.FS(vfs.NewMem())
		if name == "a" {
			fs = disk.fs()
		}
		w.boot(t, name, fs, name == "a", shards)
	}
	for n := range shards {
		shard := storage.Shard(n + 1)
		for _, name := range []string{"b", "c"} {
			w.addVoter(t, w.owner(t, shard, "a"), shard, name)
		}
	}
	return w, disk
}

// An owner whose log can't be written answers heartbeats of its followers for ever. It gives its
// leadership up, and serves again when its disk does.
func TestStuck_LogOfTheOwner(t *testing.T) {
	t.Parallel()
	w, disk := stuckNetwork(t)
	a := w.nodes["a"]
	a.mustPropose(t, 1, "before")
	resume := sync.OnceFunc(disk.hang())
	t.Cleanup(resume)
	epoch, _ := a.Owner(1)
	answered := make(chan error, 1)
	a.Propose(1, epoch, write(t, a.store, 1, "stuck"), func(err error) { answered <- err })
	w.keep(t, 1, "after", "b", "c")
	resume()
	if err := <-answered; err == nil {
		t.Error("a write of a deposed owner was acknowledged")
	}
	testkit.Eventually(t, "the former owner follows", func() bool { return a.has(t, 1, "after") })
	w.same(t, 1, "a", "b", "c")
}

// A node whose disk takes nothing leaves all shards that it leads, also those in which nothing is written: the
// first write of each would wait in vain.
func TestStuck_IdleShards(t *testing.T) {
	t.Parallel()
	w, disk := stuckNetworkOf(t, 2)
	a := w.nodes["a"]
	resume := sync.OnceFunc(disk.hang())
	t.Cleanup(resume)
	epoch, _ := a.Owner(1)
	a.Propose(1, epoch, write(t, a.store, 1, "stuck"), func(error) {})
	testkit.Eventually(t, "another node owns the idle shard", func() bool {
		return w.nodes["b"].group(2).epoch.Load() != 0 || w.nodes["c"].group(2).epoch.Load() != 0
	})
}

// The owner of an idle shard whose log can't be written is found out when it should hand the shard over:
// the first entry that waits is the one that ends its ownership.
func TestStuck_HandOverOfAnIdleShard(t *testing.T) {
	t.Parallel()
	w, disk := stuckNetwork(t)
	a := w.nodes["a"]
	a.mustPropose(t, 1, "before")
	testkit.Eventually(t, "there is a successor", func() bool { return len(a.group(1).successors("")) > 0 })
	resume := sync.OnceFunc(disk.hang())
	t.Cleanup(resume)
	go func() { _ = a.group(1).handOver(t.Context(), "", true) }()
	w.keep(t, 1, "after", "b", "c")
	resume()
	testkit.Eventually(t, "the former owner follows", func() bool { return a.has(t, 1, "after") })
	w.same(t, 1, "a", "b", "c")
}

// A follower whose log can't be written answers heartbeats, so its leader takes it for one that could lead
// a shard in which nothing is written. Its node says in the reports of all its replicas that it should not.
func TestStuck_LogOfAFollower(t *testing.T) {
	t.Parallel()
	w, disk := stuckNetwork(t)
	a := w.nodes["a"]
	w.lead(t, 1, "b")
	if a.diskHangs() {
		t.Fatal("a disk that works hangs")
	}
	resume := sync.OnceFunc(disk.hang())
	t.Cleanup(resume)
	w.keep(t, 1, "after", "b", "c")
	testkit.Eventually(t, "the node should lead nothing", a.diskHangs)
	for _, r := range a.report() {
		if !r.Full || !r.Stuck {
			t.Errorf("the replica of shard %d says full %t, stuck %t", r.Shard, r.Full, r.Stuck)
		}
	}
	resume()
	testkit.Eventually(t, "the node may lead again", func() bool { return !a.diskHangs() })
	for _, r := range a.report() {
		if r.Stuck || !r.Hung {
			t.Errorf("after that the replica of shard %d says stuck %t, hung %t", r.Shard, r.Stuck, r.Hung)
		}
	}
	testkit.Eventually(t, "it follows", func() bool { return a.has(t, 1, "after") })
}

// The disk of a node begins to hang between the two halves of its answer. It must not pass for a node that should keep
// no replicas for another reason, whose replicas would be made anew at once.
func TestStuck_WhileANodeAnswers(t *testing.T) {
	t.Parallel()
	w, disk := stuckNetwork(t)
	a := w.nodes["a"]
	w.lead(t, 1, "b")
	hangs := &beginsToHang{hosting: a.Node, begin: func() {
		t.Cleanup(disk.hang())
		w.keep(t, 1, "after", "b", "c")
		testkit.Eventually(t, "the disk hangs", a.diskHangs)
	}}
	answer := answerReport(hangs)
	if answer.Groups[0].Stuck || answer.full() {
		t.Errorf("the answer says stuck %t, full %t", answer.Groups[0].Stuck, answer.full())
	}
	answer = answerReport(a.Node)
	if !answer.Groups[0].Stuck || !answer.full() {
		t.Errorf("the next answer says stuck %t, full %t", answer.Groups[0].Stuck, answer.full())
	}
}

// beginsToHang is a node whose disk begins to hang when it has reported.
type beginsToHang struct {
	hosting
	begin func()
}

func (h *beginsToHang) report() []placement.GroupReport {
	defer h.begin()
	return h.hosting.report()
}

// A group is stuck by its own disk's fault only: entries that wait for other voters don't count.
func TestStuckWatch(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	// Looks of a leader at seconds 1 to 20 of an entry in flight since second 1.
	for name, test := range map[string]struct {
		look func(second int64) progress
		at   int64 // second of the first look that finds it stuck; 0: none
	}{
		"nothing in flight": {look: func(int64) progress { return progress{} }},
		"new entries all the time": {look: func(s int64) progress {
			return progress{waiting: (s - 3) * second, applied: 7, committed: 9}
		}},
		"waits for other voters": {look: func(int64) progress { return progress{waiting: second, applied: 7, committed: 7, hears: true} }},
		"many entries that are applied": {look: func(s int64) progress {
			return progress{waiting: second, applied: uint64(s), committed: 99, hears: true}
		}},
		"the state takes nothing": {look: func(int64) progress { return progress{waiting: second, applied: 7, committed: 8, hears: true} }, at: 10},
		"the log takes nothing":   {look: func(int64) progress { return progress{waiting: second, applied: 7, committed: 7} }, at: 6},
		"Raft hears for the last time at 6": {look: func(s int64) progress {
			return progress{waiting: second, applied: 7, committed: 7, hears: s <= 6}
		}, at: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w stuckWatch
			found := int64(0)
			for s := int64(1); s <= 20 && found == 0; s++ {
				p := test.look(s)
				p.now = s * second
				if w.stuck(p) {
					found = s
				}
			}
			if found != test.at {
				t.Errorf("found at second %d, want %d", found, test.at)
			}
		})
	}
}
