package cluster

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

// fill writes 12 keys and about 3 KB, as creating an issue does.
func fill(b *pebble.Batch, shard storage.Shard, n uint64) error {
	var key [40]byte
	start, _ := storage.WorkspaceRange(shard, storage.ID{9})
	copy(key[:], start)
	for i := range 12 {
		key[18] = byte(i)
		binary.BigEndian.PutUint64(key[19:], n*0x9E3779B97F4A7C15)
		binary.BigEndian.PutUint64(key[27:], n)
		value := payload[:40]
		if i == 0 {
			value = payload[:2000]
		}
		if err := b.Set(key[:], value, nil); err != nil {
			return err
		}
	}
	return nil
}

var payload = func() []byte {
	p := make([]byte, 4096)
	x := uint64(1)
	for i := range p {
		x = x*6364136223846793005 + 1442695040888963407
		p[i] = "abcdefghijklmnopqrstuvwxyz \"{}:,0123456789"[x>>33%42]
	}
	return p
}()

func concurrently(b *testing.B, workers int, do func(worker int, n uint64) error) {
	b.Helper()
	var next atomic.Uint64
	failed := make(chan error, workers)
	b.ReportAllocs()
	b.ResetTimer()
	began := time.Now()
	for w := range workers {
		go func() {
			for {
				n := next.Add(1)
				if n > uint64(b.N) {
					failed <- nil
					return
				}
				if err := do(w, n); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	for range workers {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "batches/s")
}

// BenchmarkPropose replicates batches on a node of one.
func BenchmarkPropose(b *testing.B) {
	for _, shards := range []int{1, 16} {
		for _, workers := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("shards=%d/proposers=%d", shards, workers), func(b *testing.B) {
				n := start(b, settings{fs: vfs.Default, dir: b.TempDir(), shards: shards})
				batches := make([]*pebble.Batch, workers)
				results := make([]chan error, workers)
				dones := make([]func(error), workers)
				for w := range workers {
					batches[w] = n.store.State().NewBatch()
					results[w] = make(chan error, 1)
					dones[w] = func(err error) { results[w] <- err }
				}
				concurrently(b, workers, func(w int, i uint64) error {
					shard := storage.Shard(1 + w%shards)
					epoch, _ := n.Owner(shard)
					batch := batches[w]
					batch.Reset()
					if err := fill(batch, shard, i); err != nil {
						return err
					}
					n.Propose(shard, epoch, batch.Repr(), dones[w])
					return <-results[w]
				})
				b.StopTimer()
				var entries, merged uint64
				for s := range n.groups {
					stats := n.ShardStats(storage.Shard(s))
					entries, merged = entries+stats.Entries, merged+stats.Batches
				}
				b.ReportMetric(float64(merged)/float64(entries), "batches/entry")
				n.stop()
			})
		}
	}
}

// BenchmarkPebbleSync commits the same batches to one Pebble instance, as the
// limit that BenchmarkPropose is read against.
func BenchmarkPebbleSync(b *testing.B) {
	for _, workers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("proposers=%d", workers), func(b *testing.B) {
			store := openStore(b, vfs.Default, b.TempDir())
			db := store.Raft()
			concurrently(b, workers, func(w int, i uint64) error {
				batch := db.NewBatch()
				if err := fill(batch, storage.Shard(1+w%16), i); err != nil {
					return err
				}
				if err := batch.Commit(pebble.Sync); err != nil {
					return err
				}
				return batch.Close()
			})
			b.StopTimer()
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
