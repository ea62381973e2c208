package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// journal is the row that every test proposal merges its id into. Pebble appends
// merged values, so a proposal that is applied twice is in the row twice.
func journal(shard storage.Shard) []byte { return testKey(shard, "journal") }

// proposalOf proposer p, its nth: one merge into the journal and one row.
func proposalOf(b *pebble.Batch, shard storage.Shard, id uint64) error {
	b.Reset()
	if err := b.Merge(journal(shard), binary.BigEndian.AppendUint64(nil, id), nil); err != nil {
		return err
	}
	return b.Set(testKey(shard, fmt.Sprintf("row %d", id)), payload[:100+id%300], nil)
}

// load runs proposers until it is stopped, and records the acknowledged proposals.
type load struct {
	mu    sync.Mutex
	acked map[storage.Shard]map[uint64]uint64 // proposer -> newest acknowledged number
	quit  chan struct{}
	all   sync.WaitGroup
	count chan struct{} // a token per acknowledgement, dropped when nobody counts
}

// id of a proposer's nth proposal.
func id(proposer, n uint64) uint64 { return proposer<<32 | n }

func startLoad(r *running, proposers int, from map[storage.Shard]map[uint64]uint64) *load {
	l := &load{acked: map[storage.Shard]map[uint64]uint64{}, quit: make(chan struct{}), count: make(chan struct{}, 1024)}
	for s := range r.groups {
		l.acked[storage.Shard(s)] = maps.Clone(from[storage.Shard(s)])
		if l.acked[storage.Shard(s)] == nil {
			l.acked[storage.Shard(s)] = map[uint64]uint64{}
		}
	}
	for p := range proposers {
		shard := storage.Shard(p % len(r.groups))
		next := from[shard][uint64(p)] + 1
		l.all.Go(func() { l.propose(r, shard, uint64(p), next) })
	}
	return l
}

func (l *load) propose(r *running, shard storage.Shard, proposer, n uint64) {
	batch := r.store.State().NewBatch()
	for ; ; n++ {
		select {
		case <-l.quit:
			return
		default:
		}
		epoch, ok := r.Owner(shard)
		if !ok || proposalOf(batch, shard, id(proposer, n)) != nil || r.propose(shard, epoch, batch.Repr()) != nil {
			return
		}
		l.mu.Lock()
		l.acked[shard][proposer] = n
		l.mu.Unlock()
		select {
		case l.count <- struct{}{}:
		default:
		}
	}
}

func (l *load) await(acks int) {
	for range acks {
		<-l.count
	}
}

// acknowledged returns the newest acknowledged proposal of each proposer.
func (l *load) acknowledged() map[storage.Shard]map[uint64]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[storage.Shard]map[uint64]uint64{}
	for s, acked := range l.acked {
		out[s] = maps.Clone(acked)
	}
	return out
}

func (l *load) stop() {
	close(l.quit)
	l.all.Wait()
}

// check compares the state with the acknowledged proposals, and returns the proposals that
// are in the state.
func check(t *testing.T, r *running, acked map[storage.Shard]map[uint64]uint64) map[storage.Shard]map[uint64]uint64 {
	t.Helper()
	found := map[storage.Shard]map[uint64]uint64{}
	for s := range r.groups {
		shard := storage.Shard(s)
		if err := r.ReadBarrier(shard, time.Time{}); err != nil {
			t.Fatal(err)
		}
		row, err := raftstore.ReadRow(r.store.State(), journal(shard))
		if err != nil {
			t.Fatal(err)
		}
		found[shard] = map[uint64]uint64{}
		for _, n := range numbers(row) {
			proposer, n := n>>32, n&(1<<32-1)
			// Each proposer waits for an answer before its next proposal: its numbers
			// are there once, in order, without gaps.
			if want := found[shard][proposer] + 1; n != want {
				t.Fatalf("shard %d, proposer %d: %d is where %d should be", shard, proposer, n, want)
			}
			found[shard][proposer] = n
			if !r.has(t, shard, fmt.Sprintf("row %d", id(proposer, n))) {
				t.Fatalf("shard %d, proposer %d: half of %d is missing", shard, proposer, n)
			}
		}
		for proposer, n := range acked[shard] {
			if found[shard][proposer] < n {
				t.Fatalf("shard %d, proposer %d: %d was acknowledged, %d is the last one there", shard, proposer, n, found[shard][proposer])
			}
		}
	}
	return found
}

func TestRestart_AfterCrashAtAnyPoint(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			var stands map[storage.Shard]map[uint64]uint64
			for crash := range 4 {
				s := settings{fs: fs, dir: "node", shards: 3, tune: func(t *tuning) {
					t.inFlight = 1 + random.IntN(4)
					t.entryBatches = 1 + random.IntN(16)
					// Snapshots and truncations happen all the time.
					t.snapshotBytes, t.totalBytes = 8<<10, 20<<10
					t.trailing, t.keepPrevious = random.Uint64N(4), random.IntN(2) == 0
				}}
				r := start(t, s)
				stands = check(t, r, stands)
				l := startLoad(r, 16, stands)
				if crash%3 != 2 { // every third crash comes soon after the start
					l.await(50 + random.IntN(1500))
				}
				// Acknowledged proposals must survive the crash.
				stands = l.acknowledged()
				fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
				l.stop()
				r.stop()
			}
			check(t, start(t, settings{fs: fs, dir: "node"}), stands)
		})
	}
}

// A crash while the node closes. Release, the snapshots and the flush may each be missing.
func TestRestart_AfterCrashDuringClose(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(testkit.Seed(t), 2))
	fs := vfs.NewCrashableMem()
	stands := map[storage.Shard]map[uint64]uint64{}
	for range 5 {
		r := start(t, settings{fs: fs, dir: "node", shards: 2})
		check(t, r, stands)
		l := startLoad(r, 6, stands)
		l.await(300)
		l.stop()
		stands = l.acknowledged()
		closed := make(chan error, 1)
		go func() { closed <- r.Close(context.Background()) }()
		clones := make([]*vfs.MemFS, 1+random.IntN(30))
		for i := range clones {
			clones[i] = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		r.stop()
		fs = clones[len(clones)-1]
	}
	check(t, start(t, settings{fs: fs, dir: "node"}), stands)
}
