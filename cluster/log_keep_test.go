package cluster

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

// Entries that no archive has stay in the log behind a snapshot, within the bound and while the disk
// has room.
func TestKeepLog(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1, tune: func(tu *tuning) {
		tu.snapshotBytes, tu.totalBytes, tu.keepBytes, tu.trailing = 1, 1<<30, 32<<10, 1
		tu.keepPrevious = false
	}})
	// The log is truncated by fill alone, which would pass over a snapshot that is under way.
	if err := r.compactor.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill := func(rows int) {
		t.Helper()
		for i := range rows {
			r.mustPropose(t, 1, fmt.Sprint(i))
		}
		if !r.compactor.compact() {
			t.Fatal("the logs could not be truncated")
		}
	}
	after := r.ShardStats(1).Applied
	r.KeepLog(1, after, time.Hour)
	fill(100)
	fill(10)
	if rows, _, err := readRows(r, after); err != nil || len(rows) != 110 {
		t.Fatalf("%d rows, %v, of a log that is kept", len(rows), err)
	}
	if pending := r.ShardStats(1).PendingBytes; pending > 1<<10 {
		t.Errorf("%d bytes of log have no snapshot: a restart would read all that is kept", pending)
	}
	select {
	case <-r.KeptLogs():
	default:
		t.Error("nobody is told that the log is kept")
	}

	// The archive has gone on: the log loses the entries that the archive has.
	r.KeepLog(1, after+60, time.Hour)
	fill(1)
	if _, _, err := readRows(r, after+59); !errors.Is(err, ErrLogTruncated) {
		t.Errorf("%v of entries that are in the archive", err)
	}
	if rows, _, err := readRows(r, after+60); err != nil || len(rows) != 51 {
		t.Errorf("%d rows, %v, of those that are not", len(rows), err)
	}
	r.KeepLog(1, after, time.Hour) // an older state of the archive changes nothing
	if rows, _, err := readRows(r, after+60); err != nil || len(rows) != 51 {
		t.Errorf("%d rows, %v", len(rows), err)
	}

	// The bound: with two shards each may have half, and more while the other one needs less.
	r.KeepLog(0, r.ShardStats(0).Applied, time.Hour)
	after += 111
	r.KeepLog(1, after, time.Hour)
	fill(120) // more than half
	if rows, _, err := readRows(r, after); err != nil || len(rows) != 120 {
		t.Errorf("%d rows, %v, below the bound", len(rows), err)
	}
	fill(400)
	if _, _, err := readRows(r, after); !errors.Is(err, ErrLogTruncated) {
		t.Errorf("%v beyond the bound", err)
	}

	// Time, and a short disk.
	for what, end := range map[string]func(){
		"when its time is over": func() { r.KeepLog(1, r.ShardStats(1).Applied-50, -time.Second) },
		"on a short disk":       func() { r.compactor.reclaimNow.Store(true) },
	} {
		after = r.ShardStats(1).Applied
		r.KeepLog(1, after, time.Hour)
		fill(50)
		if _, _, err := readRows(r, after); err != nil {
			t.Errorf("%v %s, before", err, what)
		}
		end()
		fill(1)
		if _, _, err := readRows(r, after); !errors.Is(err, ErrLogTruncated) {
			t.Errorf("%v %s", err, what)
		}
	}
}

// The entries of a log are applied to an older image as the shard applied them: late batches of an
// earlier epoch are fenced off.
func TestCreation_Replays(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	r := start(t, settings{fs: fs, dir: "old", shards: 1})
	r.mustPropose(t, 1, "before")
	image, stream := r.image(t, 1)
	r.mustPropose(t, 1, "one")
	first := image.Epoch
	depose(t, r.group(1), r.ShardStats(1).Term+1)
	waitEpoch(t, r, 1, first)
	// The batch of the epoch before is in the log, as one that came late.
	if err := r.group(1).propose(appendEntry(nil, entryBatch, first, string(write(t, r.store, 1, "late"))), 0).Error(); err != nil {
		t.Fatal(err)
	}
	r.mustPropose(t, 1, "two")
	end, epoch := r.ShardStats(1).Applied, r.ShardStats(1).Epoch
	r.mustPropose(t, 1, "beyond")
	var entries []LogEntry
	if _, err := r.ReadLog(1, image.Index-1, func(e *LogEntry) (bool, error) { // one that the image has
		own := *e
		own.Data = append([]byte(nil), e.Data...)
		entries = append(entries, own)
		return e.Index < end, nil
	}); err != nil {
		t.Fatal(err)
	}
	replay := func(name string, entries []LogEntry) (*running, *Creation, uint64, uint64, error) {
		made := &running{store: openStore(t, fs, name)}
		t.Cleanup(func() { _ = made.store.Close() })
		c, err := NewCreation(made.store, "made", 1, storage.FormatFirst)
		if err != nil {
			t.Fatal(err)
		}
		in, err := made.store.Import(1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = in.Write(stream)
		if err := errors.Join(err, in.Finish(t.Context()), in.Ingest(t.Context()), in.Close()); err != nil {
			t.Fatal(err)
		}
		index, epoch, _, err := c.Replay(t.Context(), 1, func(e *LogEntry) error {
			if len(entries) == 0 {
				return io.EOF
			}
			*e, entries = entries[0], entries[1:]
			return nil
		})
		return made, c, index, epoch, err
	}
	made, c, index, at, err := replay("made", entries)
	if err != nil || index != end || at != epoch || at == first {
		t.Fatalf("it is at entry %d of epoch %d, %v; not at %d of %d", index, at, err, end, epoch)
	}
	for row, want := range map[string]bool{"before": true, "one": true, "late": false, "two": true, "beyond": false} {
		if has := made.has(t, 1, row); has != want {
			t.Errorf("row %q: %t", row, has)
		}
	}
	if err := c.TakeOver(1, index, at); err != nil {
		t.Error(err)
	}
	if _, _, _, _, err := replay("gap", append(entries[:2:2], entries[3:]...)); err == nil {
		t.Error("a missing entry was not found")
	}
	unknown := entries[1] // "one"
	unknown.Data = append([]byte{99}, unknown.Data[1:]...)
	if _, _, _, _, err := replay("unknown", []LogEntry{unknown}); !errors.Is(err, errEntry) {
		t.Errorf("%v of an entry of an unknown kind", err)
	}
	if err := c.Raise(storage.FormatNewest + 1); err == nil {
		t.Error("entries of a format that nobody knows were taken")
	}
}

// waitEpoch waits until a node owns a shard in another epoch.
func waitEpoch(t *testing.T, r *running, shard storage.Shard, before uint64) {
	t.Helper()
	for {
		if epoch, ok := r.Owner(shard); ok && epoch != before {
			return
		}
		select {
		case <-r.watcher.signal:
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// A truncation leaves the entries since the snapshot before, but not where the disk is short of space.
func TestSnapshot_KeepsEntriesSinceTheOneBefore(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1, tune: func(tu *tuning) {
		tu.snapshotBytes, tu.totalBytes, tu.trailing = 1<<30, 1<<30, 1
	}})
	fill := func(rows int) (snapshot uint64) {
		t.Helper()
		for i := range rows {
			r.mustPropose(t, 1, fmt.Sprint(i))
		}
		if err := r.group(1).snapshot(false); err != nil {
			t.Fatal(err)
		}
		newest, err := r.group(1).snapshots.Latest()
		if err != nil || newest == nil {
			t.Fatalf("%+v, %v instead of a snapshot", newest, err)
		}
		if pending := r.ShardStats(1).PendingBytes; pending > 1<<10 {
			t.Errorf("%d bytes of log have no snapshot", pending)
		}
		return newest.Index
	}
	begins := func(want uint64) {
		t.Helper()
		if s := r.ShardStats(1); s.FirstIndex != want {
			t.Errorf("the log begins at %d, want %d; stats %+v", s.FirstIndex, want, s)
		}
	}
	first := fill(100)
	begins(1)
	second := fill(20)
	begins(first + 1)
	fill(30)
	begins(second + 1)

	// An archive that lacks older entries keeps them, too; one that has all of them changes nothing.
	after := r.ShardStats(1).Applied - 20
	r.KeepLog(1, after, time.Hour)
	third := fill(1)
	begins(after + 1)
	r.KeepLog(1, r.ShardStats(1).Applied, time.Hour)
	fill(5)
	begins(third + 1)

	r.mustPropose(t, 1, "last")
	if err := r.group(1).snapshot(true); err != nil {
		t.Fatal(err)
	}
	if s := r.ShardStats(1); s.LastIndex-s.FirstIndex > 2 {
		t.Errorf("a log that is short of space has entries %d to %d", s.FirstIndex, s.LastIndex)
	}
}
