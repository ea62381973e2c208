package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

// readRows returns what the rows in a shard's log are called, behind an entry, and the last entry.
func readRows(r *running, after uint64) (rows []string, last uint64, err error) {
	last, err = r.ReadLog(1, after, func(e *LogEntry) (bool, error) {
		batch, err := e.Batch()
		if err != nil || batch == nil {
			return true, err
		}
		var read pebble.Batch
		if err := read.SetRepr(batch); err != nil {
			return false, err
		}
		for in := read.Reader(); ; {
			_, key, _, ok, err := in.Next()
			if err != nil || !ok {
				return true, err
			}
			if _, _, _, name, err := storage.SplitKey(key); err == nil {
				rows = append(rows, string(name))
			}
		}
	})
	return rows, last, err
}

func TestReadLog(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1})
	long := strings.Repeat("packed ", 1000)
	want := []string{"a", long, "b"}
	for _, name := range want {
		r.mustPropose(t, 1, name)
	}
	first := r.ShardStats(1).Applied
	rows, last, err := readRows(r, 0)
	if err != nil || !slices.Equal(rows, want) || last != first {
		t.Fatalf("%d rows up to %d of %d, %v", len(rows), last, first, err)
	}
	r.mustPropose(t, 1, "c")
	if rows, last, err = readRows(r, first); err != nil || !slices.Equal(rows, []string{"c"}) || last != r.ShardStats(1).Applied {
		t.Fatalf("%q up to %d, %v", rows, last, err)
	}
	if rows, again, err := readRows(r, last); err != nil || rows != nil || again != last {
		t.Fatalf("%q up to %d, %v behind the last entry", rows, again, err)
	}
	if _, _, err := readRows(r, last+1); !errors.Is(err, ErrLogTruncated) {
		t.Fatalf("%v behind an entry that there is not", err)
	}
	if _, err := r.ReadLog(9, 0, func(*LogEntry) (bool, error) { return true, nil }); !errors.Is(err, errNotOwner) {
		t.Fatalf("%v in a shard that there is not", err)
	}
}

func TestReadLog_OfWhatWasTruncated(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1, tune: func(tu *tuning) {
		tu.snapshotBytes, tu.totalBytes, tu.sendingBytes, tu.trailing = 1, 1<<30, 16<<10, 1
		tu.keepPrevious = false
	}})
	// The log is truncated by fill alone. In the background it could have begun before it is held.
	if err := r.compactor.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := r.ShardStats(1).Applied
	fill := func(rows int) {
		t.Helper()
		for i := range rows {
			r.mustPropose(t, 1, fmt.Sprint(i))
		}
		if !r.compactor.compact() {
			t.Fatal("the logs could not be truncated")
		}
	}
	r.HoldLog(1, time.Hour)
	fill(100)
	if rows, _, err := readRows(r, after); err != nil || len(rows) != 100 {
		t.Fatalf("%d rows, %v, of a log that is held", len(rows), err)
	}
	fill(1000) // past the bound
	if _, _, err := readRows(r, after); !errors.Is(err, ErrLogTruncated) {
		t.Fatalf("%v past the bound of a held log", err)
	}
	r.HoldLog(1, -time.Hour)
	after = r.ShardStats(1).Applied
	fill(100)
	if _, _, err := readRows(r, after); !errors.Is(err, ErrLogTruncated) {
		t.Fatalf("%v of a log that is not held any more", err)
	}
}
