package cluster

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Far from its bounds, a log is truncated when the disk runs short of space.
func TestReclaim_GivesTheLogsSpaceBack(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 2, tune: func(tu *tuning) {
		tu.snapshotBytes, tu.totalBytes, tu.trailing = 1<<30, 1<<30, 1
	}})
	noise := make([]byte, 1<<20) // which can't be compressed
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	row := string(noise)
	for i := range 20 {
		r.mustPropose(t, 1, row+string(rune('a'+i)))
	}
	if err := r.store.Raft().Flush(); err != nil {
		t.Fatal(err)
	}
	used := func() int64 { total := r.store.Raft().Metrics().Total(); return total.TablesSize }
	if used() < 20<<20 {
		t.Fatalf("the log takes %d bytes", used())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for used() > 4<<20 { // one entry stays
		// It is asked for again as long as space is short: a round gives back nothing of a log whose
		// Raft is busy for longer than the round waits.
		r.Reclaim()
		select {
		case <-ctx.Done():
			t.Fatalf("the log still takes %d bytes: %+v", used(), r.ShardStats(1))
		case <-tick.C: // the compactor works in the background
		}
	}
	if s := r.ShardStats(1); s.LastIndex-s.FirstIndex > 2 {
		t.Errorf("stats %+v", s)
	}
}
