package storage

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// failingTables is a file system on which tables can't be written while on is
// set; everything else can.
type failingTables struct {
	on       atomic.Bool
	with     error
	attempts atomic.Int64
}

func (f *failingTables) over(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !f.on.Load() || !strings.HasSuffix(op.Path, ".sst") {
			return nil
		}
		switch op.Kind {
		case errorfs.OpCreate:
			f.attempts.Add(1)
		case errorfs.OpFileWrite:
			return f.with
		}
		return nil
	}))
}

// Pebble tries a failed flush again at once and for ever. That must keep neither
// the machine busy nor the log's writes waiting.
func TestFlush_FailingHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for _, with := range []error{syscall.ENOSPC, syscall.EIO} {
		t.Run(with.Error(), func(t *testing.T) {
			t.Parallel()
			tables := failingTables{with: with}
			s := ok(Open(Config{Dir: "store", FS: tables.over(vfs.NewMem()), CacheBytes: 1 << 20, Logger: quiet}))(t)
			tx := NewTx(s.State(), 1, wsA)
			insert(t, tx, newNote(1))
			apply(t, s, tx)
			must(t, tx.Close())

			tables.on.Store(true)
			flushed := ok(s.State().AsyncFlush())(t)
			start, slowest := time.Now(), time.Duration(0)
			for time.Since(start) < 3*tablePause {
				began := time.Now()
				must(t, s.Raft().Set([]byte("key"), nil, pebble.Sync))
				slowest = max(slowest, time.Since(began))
			}
			if slowest > tablePause/2 {
				t.Errorf("a write of the log took %s", slowest)
			}
			if n, most := tables.attempts.Load(), int64(time.Since(start)/tablePause)+2; n > most {
				t.Errorf("%d attempts to write a table, want at most %d", n, most)
			}
			tables.on.Store(false)
			<-flushed
			verifyClean(t, s)
			must(t, s.Close())
		})
	}
}
