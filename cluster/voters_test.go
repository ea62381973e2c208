package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// writeRow proposes a row and returns the outcome.
func (r *running) writeRow(t testing.TB, shard storage.Shard, row string) error {
	t.Helper()
	epoch, ok := r.Owner(shard)
	if !ok {
		return errNotOwner
	}
	return r.propose(shard, epoch, write(t, r.store, shard, row))
}

func TestVoters_GrowAndShrink(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a, b, c := w.nodes["a"], w.nodes["b"], w.nodes["c"]
	a.mustPropose(t, 1, "one")
	w.same(t, 1, "a", "b", "c")

	if err := b.changeReplica(t.Context(), 1, replicaChange{replicaRemove, "c"}); !errors.Is(err, errNotLeading) {
		t.Errorf("a follower changed the members: %v", err)
	}
	// A leader that is to be removed hands over first, and its successor serves at once.
	if err := a.changeReplica(t.Context(), 1, replicaChange{replicaRemove, "a"}); !errors.Is(err, errHandedOver) {
		t.Fatal(err)
	}
	w.owner(t, 1, "b", "c")
	w.lead(t, 1, "b")
	b.mustPropose(t, 1, "two")
	if err := b.ReadBarrier(1, time.Time{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "c"} {
		w.removeVoter(t, b, 1, name)
		if err := w.nodes[name].dropReplica(1); err != nil {
			t.Fatal(err)
		}
		if rows := shardRows(t, w.nodes[name], 1); len(rows) != 0 {
			t.Errorf("%s kept %s", name, rows)
		}
	}
	b.mustPropose(t, 1, "three")
	if err := b.changeReplica(t.Context(), 1, replicaChange{replicaRemove, "b"}); err == nil {
		t.Error("the only replica was removed")
	}
	// And back to where it was once.
	w.addVoter(t, b, 1, "c")
	w.same(t, 1, "b", "c")
	if !c.has(t, 1, "three") || !c.has(t, 1, "one") {
		t.Error("rows are missing on the new replica")
	}
}

func TestVoters_DroppedReplicaStaysDropped(t *testing.T) {
	t.Parallel()
	w, disks := threeNodes(t, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	a.mustPropose(t, 1, "row")
	w.same(t, 1, "a", "c")
	w.removeVoter(t, a, 1, "c")
	if err := c.dropReplica(1); err != nil {
		t.Fatal(err)
	}
	c.stop()
	c = w.boot(t, "c", disks["c"], false, 1)
	if c.group(1) != nil || len(shardRows(t, c, 1)) != 0 {
		t.Error("a dropped replica came back")
	}
	if c.group(0) == nil {
		t.Error("another replica is gone")
	}
	if err := c.dropReplica(1); err != nil {
		t.Errorf("dropped twice: %v", err)
	}
	// Nor does the node that created the cluster create it again.
	b := w.lead(t, 1, "b")
	w.removeVoter(t, b, 1, "a")
	if err := a.dropReplica(1); err != nil {
		t.Fatal(err)
	}
	a.stop()
	a = w.boot(t, "a", disks["a"], true, 1)
	if a.group(1) != nil {
		t.Error("the founder made a group anew that had moved away")
	}
}

// A request to drop a replica may wait for the work on other replicas. Meanwhile the replica may have
// become a member again: then it is kept.
func TestVoters_MemberAgainWhileADropWaits(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a, c := w.nodes["a"], w.nodes["c"]
	a.mustPropose(t, 1, "row")
	w.same(t, 1, "a", "c")
	w.removeVoter(t, a, 1, "c")
	point, err := a.group(1).report()
	if err != nil {
		t.Fatal(err)
	}
	c.hosting.Lock()
	release := sync.OnceFunc(c.hosting.Unlock)
	t.Cleanup(release)
	dropped := make(chan error, 1)
	go func() {
		_, err := placementHandlers(c.Node, nil)[rpcDrop](t.Context(), "a", fmt.Appendf(nil, `{"shard":1,"term":%d,"last":%d}`, point.Term, point.Last))
		dropped <- err
	}()
	if err := a.changeReplica(t.Context(), 1, replicaChange{replicaAdd, "c"}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "c has heard of its group", func() bool { _, last := c.group(1).log.Bounds(); return last > point.Last })
	release()
	if err := <-dropped; !errors.Is(err, errCounted) || c.group(1) == nil {
		t.Errorf("the replica of a member was dropped: %v", err)
	}
}

func TestVoters_OwnerDies(t *testing.T) {
	t.Parallel()
	w, disks := threeNodes(t, 1)
	a := w.nodes["a"]
	a.mustPropose(t, 1, "before")
	before, _ := a.Owner(1)
	w.isolate(true, "a", "b", "c")
	next := w.owner(t, 1, "b", "c")
	if after, _ := next.Owner(1); after <= before {
		t.Errorf("epoch %d after %d", after, before)
	}
	if !next.has(t, 1, "before") {
		t.Error("an acknowledged row is missing")
	}
	w.keep(t, 1, "after", "b", "c")
	// The node that was cut off refuses both, in bounded time.
	testkit.Eventually(t, "a gave up", func() bool { _, ok := a.Owner(1); return !ok })
	if err := a.ReadBarrier(1, time.Now().Add(time.Second)); err == nil {
		t.Error("a deposed owner answers reads")
	}
	if err := a.propose(1, before, write(t, a.store, 1, "late")); err == nil {
		t.Error("a deposed owner takes writes")
	}
	a.stop()
	w.isolate(false, "a", "b", "c")
	w.boot(t, "a", disks["a"], true, 1)
	w.same(t, 1, "a", "b", "c")
	if w.nodes["a"].has(t, 1, "late") {
		t.Error("a refused row is there")
	}
}

// A paused owner, whose successor writes meanwhile, must not answer from its old
// state when it goes on.
func TestVoters_LeaseOfACutOffOwnerRunsOut(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.nodes["a"]
	a.mustPropose(t, 1, "before")
	if err := a.ReadBarrier(1, time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.isolate(true, "a", "b", "c")
	w.keep(t, 1, "after", "b", "c")
	// The successor waited the lease out, so by now no barrier may pass here.
	if err := a.ReadBarrier(1, time.Now().Add(time.Second)); err == nil && !a.has(t, 1, "after") {
		t.Error("a stale read")
	}
}

func TestVoters_CloseHandsOver(t *testing.T) {
	t.Parallel()
	// Below an election's time-out: the quickest of a few tries, as the machine may be
	// busy in any one. An election takes longer in each.
	const tries = 5
	var took time.Duration
	for range tries {
		w, _ := threeNodes(t, 3)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := w.nodes["a"].Close(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for s := range storage.Shard(4) {
			w.owner(t, s, "b", "c").mustPropose(t, s, "on")
		}
		if took = time.Since(began); took <= electionTimeout {
			return
		}
	}
	t.Errorf("handed over %d times, the last within %s", tries, took)
}

// After a failed transfer one member serves, and never in an epoch that was given up:
// proposers of that epoch may not know yet that it has ended.
func TestVoters_FailedTransfer(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.nodes["a"]
	before, _ := a.Owner(1)
	w.isolate(true, "c", "a", "b")
	if err := a.changeReplica(t.Context(), 1, replicaChange{replicaTransfer, "c"}); err == nil {
		t.Fatal("handed over to a node that is cut off")
	}
	owner := w.keep(t, 1, "on", "a", "b")
	if after, _ := owner.Owner(1); after <= before {
		t.Errorf("epoch %d is served again after %d", after, before)
	}
	if err := a.propose(1, before, write(t, a.store, 1, "late")); err == nil || a.has(t, 1, "late") {
		t.Errorf("a proposal of the old epoch: %v", err)
	}
	// A target that is not a following voter is refused before the epoch is given up.
	at, _ := owner.Owner(1)
	for _, nobody := range []string{"nobody", "c"} {
		testkit.Eventually(t, nobody+" is refused", func() bool {
			return strings.Contains(fmt.Sprint(owner.changeReplica(t.Context(), 1, replicaChange{replicaTransfer, nobody})), "not a voter")
		})
	}
	if now, _ := owner.Owner(1); now < at {
		t.Errorf("epoch %d was given up for %d", at, now)
	}
}

func TestVoters_HandOverAll(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 2)
	if err := w.nodes["a"].handOverAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for s := range storage.Shard(3) {
		w.keep(t, s, "on", "b", "c")
	}
	// Alone it stays where it is.
	n := newNetwork()
	alone := n.boot(t, "a", vfs.NewMem(), true, 1)
	n.owner(t, 1, "a")
	if err := alone.handOverAll(t.Context()); err != nil {
		t.Error(err)
	}
	alone.mustPropose(t, 1, "still here")
}

// Writers go on during transfers, and every acknowledged write is there.
func TestVoters_TransfersUnderLoad(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	names := []string{"a", "b", "c"}
	quit, ended := make(chan struct{}), make(chan []string)
	var writes atomic.Int64
	go func() {
		var acked []string
		for i := 0; ; i++ {
			select {
			case <-quit:
				ended <- acked
				return
			default:
			}
			for _, name := range names {
				row := fmt.Sprintf("%s-%d", name, i)
				if w.nodes[name].writeRow(t, 1, row) == nil {
					acked = append(acked, row)
					writes.Add(1)
				}
			}
		}
	}()
	for i := range 9 {
		before := writes.Load()
		testkit.Eventually(t, "a write is acknowledged after the transfer", func() bool { return writes.Load() > before })
		owner := w.owner(t, 1, names...)
		to := names[i%3]
		if owner.id.Node == to {
			continue
		}
		if err := owner.changeReplica(t.Context(), 1, replicaChange{replicaTransfer, to}); err != nil {
			t.Logf("transfer to %s: %v", to, err)
		}
	}
	w.keep(t, 1, "last", names...)
	close(quit)
	acked := <-ended
	w.same(t, 1, names...)
	for _, row := range acked {
		if !w.nodes["b"].has(t, 1, row) {
			t.Errorf("%s was acknowledged and is gone", row)
		}
	}
}
