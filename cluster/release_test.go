package cluster

import (
	"context"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// lackingRoom returns the owner of shard 1, voter a, while voter c has no room for changes and lacks one that
// is committed.
func lackingRoom(t *testing.T) (w *network, a *running) {
	t.Helper()
	w, _ = threeNodes(t, 1)
	t.Cleanup(w.mend)
	a = w.owner(t, 1, "a")
	a.mustPropose(t, 1, "before")
	w.same(t, 1, "a", "b", "c")
	w.nodes["c"].spent.Store(true)
	a.owners.Load().update("c", &heartbeatMessage{Seq: 1, NoRoom: true})
	a.mustPropose(t, 1, "without c")
	w.same(t, 1, "a", "b")
	return w, a
}

// A voter that lacks committed changes and has no room for them can't take the shard over. The owner serves on.
func TestHandOver_ToAVoterThatCanNotCatchUp(t *testing.T) {
	t.Parallel()
	w, a := lackingRoom(t)
	epoch, _ := a.Owner(1)
	w.isolate(true, "b", "a", "c")
	for _, to := range []string{"c", ""} {
		testkit.Eventually(t, "b does not follow any more", func() bool { return len(a.group(1).successors("b")) == 0 })
		if err := a.group(1).handOver(t.Context(), to, true); err == nil {
			t.Errorf("the shard was handed over to %q", to)
		}
	}
	if now, _ := a.Owner(1); now != epoch {
		t.Errorf("owned in epoch %d, want %d", now, epoch)
	}
	if err := a.ReadBarrier(1, time.Now().Add(10*time.Second)); err != nil {
		t.Errorf("read: %v", err)
	}
}

// A release that can't be committed ends the hand-over, although the owner still leads: a voter that answers
// and takes no entries lets it.
func TestHandOver_ReleaseWithoutQuorum(t *testing.T) {
	t.Parallel()
	w, a := lackingRoom(t)
	epoch, _ := a.Owner(1)
	w.isolate(true, "b", "a", "c")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := a.group(1).handOver(ctx, "b", true); err == nil || ctx.Err() != nil {
		t.Errorf("the hand-over to a voter that is away ended with %v", err)
	}
	w.nodes["c"].spent.Store(false)
	w.ownerAfter(t, epoch)
}
