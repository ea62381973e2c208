package storage

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// failingTables is a file system that fails writes of tables while on is set, and no other
// write.
type failingTables struct {
	on   atomic.Bool
	with error

	mu       sync.Mutex
	attempts map[string]int // to write a table, by the instance's directory
}

// mostAttempts ends the failures if nothing paces the attempts, since the test would never end.
const mostAttempts = 100

func (f *failingTables) over(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !f.on.Load() || !strings.HasSuffix(op.Path, ".sst") {
			return nil
		}
		switch op.Kind {
		case errorfs.OpCreate:
			f.mu.Lock()
			defer f.mu.Unlock()
			instance := filepath.Base(filepath.Dir(op.Path))
			f.attempts[instance]++
			if f.attempts[instance] == mostAttempts {
				f.on.Store(false)
			}
		case errorfs.OpFileWrite:
			return f.with
		}
		return nil
	}))
}

func (f *failingTables) tried(instance string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attempts[instance]
}

// Pebble tries a failed flush again at once, forever. That must neither keep the machine
// busy nor delay the log's writes. Time in the bubble passes only while every goroutine
// waits, so a goroutine that waits for a pause shows.
func TestFlush_FailingHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for _, with := range []error{syscall.ENOSPC, syscall.EIO} {
		t.Run(with.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tables := failingTables{with: with, attempts: map[string]int{}}
				s := ok(Open(Config{Dir: "store", FS: tables.over(vfs.NewMem()), CacheBytes: 1 << 20, Logger: quiet}))(t)
				tx := NewTx(s.State(), 1, wsA)
				insert(t, tx, newNote(1))
				apply(t, s, tx)
				must(t, tx.Close())

				tables.on.Store(true)
				start := time.Now()
				flushed := ok(s.State().AsyncFlush())(t)
				must(t, s.Raft().Set([]byte("key"), nil, pebble.Sync))
				ok(s.Raft().AsyncFlush())(t) // the log's tables fail too
				time.Sleep(tablePause / 2)
				for pauses := range 5 {
					for _, instance := range []string{"state", "raft"} {
						if n := tables.tried(instance); n != 1+pauses {
							t.Errorf("%s: %d attempts to write a table of %s, want %d", time.Since(start), n, instance, 1+pauses)
						}
					}
					began := time.Now()
					for range 100 {
						must(t, s.Raft().Set([]byte("key"), nil, pebble.Sync))
					}
					if took := time.Since(began); took > 0 {
						t.Errorf("the log's writes waited for %s", took)
					}
					time.Sleep(tablePause)
				}
				tables.on.Store(false)
				<-flushed
				verifyClean(t, s)
				must(t, s.Close())
			})
		})
	}
}
